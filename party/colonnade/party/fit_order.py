"""What a local fit is asked for, the rows that it reads, and the two brought together."""

import hashlib
import json
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from colonnade.core.arrays import Int16Array
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.data.encoding import Encoding
from colonnade.data.table import Table
from colonnade.data.table_header import PRESENCE
from colonnade.ledger.ledger import Ledger
from colonnade.linear.losses import find_loss
from colonnade.linear.penalties import AnyPenalty, no_penalty
from colonnade.party.data.binding import BoundRows, rows_of
from colonnade.party.data.bounding.bounds import bought_bounds
from colonnade.party.data.clients import refuse_clients
from colonnade.party.data.columns import columns_for
from colonnade.party.data.dataset import Dataset, rows_digest
from colonnade.solvers.designs.dense import DenseDesign, design_units
from colonnade.solvers.fit import NoiseName, Objective, ResolvedFit, SolverTable, resolve_fit
from colonnade.solvers.problem import Problem
from colonnade.solvers.registry import Solver, check
from colonnade.solvers.solve import check_promise

_LONGEST_NAME = 200
_LEAST_ROWS = 10


@dataclass(frozen=True, slots=True)
class FitOrder:
    """What is asked for; all of it is public.

    Parameters
    ----------
    name
        Of the run: the same order under another name is a new fit.
    loss
        The name of a registered loss.
    delta
        None for the default of `resolve_fit`.
    penalty
        In the units of the file.
    """

    name: str
    loss: str
    solver: Solver
    epsilon: float
    delta: float | None = None
    penalty: AnyPenalty = field(default_factory=no_penalty)
    intercept: bool = True
    noise: NoiseName = "exact"

    def __post_init__(self) -> None:
        if not (self.name.isprintable() and 1 <= len(self.name) <= _LONGEST_NAME):
            raise ValueError(f"a name has 1 to {_LONGEST_NAME} printable characters")
        # What makes no sense for any table is refused before one is read.
        scales = np.array([1.0] + [0.0] * self.intercept)
        check(Problem(self.objective.loss, self.penalty, scales), self.solver)
        check_promise(self.epsilon, self.delta)

    @property
    def objective(self) -> Objective:
        """The loss and its penalty."""
        return Objective(find_loss(self.loss), self.penalty)


@dataclass(frozen=True, slots=True, eq=False)
class FitTable:
    """The columns of a fit on the grid, under the bounds that it uses.

    Parameters
    ----------
    features, label
        Shapes ``(n_features, n_rows)`` and ``(n_rows,)``.
    names, bounds
        Of the features, then of the label.
    fills
        Of the features: what stands for a missing value, as declared.
    rows
        What a ledger that pays for the fit is bound to.
    groups
        Of the features: name of the category that each is a level of, or empty.
    encodings
        How raw columns became these.
    """

    features: Int16Array
    label: Int16Array
    names: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    fills: tuple[float, ...]
    rows: BoundRows
    groups: tuple[str, ...] = ()
    encodings: tuple[Encoding, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return int(self.label.size)

    def resolve(self, order: FitOrder, *, charged: bool) -> "LocalFit":
        """Return the order on these rows, with every default chosen."""
        resolved = resolve_fit(
            order.objective,
            order.solver,
            (self.n_rows, len(self.features) + order.intercept),
            epsilon=order.epsilon,
            delta=order.delta,
            noise=order.noise,
            enforced=charged,
        )
        return LocalFit(order, self, resolved)


@dataclass(frozen=True, slots=True, eq=False)
class LocalFit:
    """An order on a table; ``resolved`` holds what was left open, chosen."""

    order: FitOrder
    table: FitTable
    resolved: ResolvedFit

    def solver_table(self) -> SolverTable:
        """Return the columns as the solvers read them: a copy, with the intercept's if wanted."""
        table, intercept = self.table, self.order.intercept
        n_features = len(table.features)
        shape = (n_features + intercept, table.n_rows)
        columns = np.empty(shape, np.int16, order="F" if self.order.solver.reads_rows else "C")
        columns[:n_features], columns[n_features:] = table.features, GRID
        classes = self.resolved.objective.loss.classifies
        return SolverTable(
            design=DenseDesign(columns, design_units(table.bounds[:-1], intercept=intercept)),
            bounds=table.bounds[:-1],
            label=np.where(table.label > 0, 1.0, -1.0) if classes else table.label / GRID,
            label_bounds=None if classes else table.bounds[-1],
            intercept=intercept,
        )

    def spec(self) -> bytes:
        """Return everything public that shapes the fit.

        Nothing of the rows: a digest of them in a published model would tell two tables apart.
        """
        order, table, resolved = self.order, self.table, self.resolved
        facts = {
            "name": order.name,
            "n_rows": table.n_rows,
            "columns": [
                [name, bounds.low, bounds.high]
                for name, bounds in zip(table.names, table.bounds, strict=True)
            ],
            "fills": table.fills,
            "dataset": table.rows.dataset,
            "loss": order.loss,
            "penalty": repr(order.penalty),
            "intercept": order.intercept,
            "solver": repr(resolved.solver),
            "epsilon": resolved.epsilon,
            "delta": resolved.delta,
            "noise": resolved.noise,
        }
        if table.encodings:
            facts["encodings"] = msgspec.to_builtins(table.encodings)
        return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()

    @property
    def job_id(self) -> str:
        """The name of the fit in its model: SHA-256 of all that is public of it."""
        return hashlib.sha256(self.spec()).hexdigest()


def file_table(table: Table) -> FitTable:
    """Return the table of a file that was read for one fit, under its declared bounds."""
    # Without the random name of the ingest, which would make every fit of the file another one.
    return _declared(table, BoundRows(rows_digest(table, None), "", table.header.client_ids))


def folder_table(dataset: Dataset) -> FitTable:
    """Return an ingested table under its declared bounds."""
    return _declared(dataset.coarse, rows_of(dataset))


def party_table(dataset: Dataset, ledger: Ledger, *, declared: bool) -> FitTable:
    """Return a party's table under the bounds that it bought unless ``declared``."""
    refuse_clients(ledger, divided=dataset.clients is not None)
    plain = folder_table(dataset)
    tight = {} if declared else bought_bounds(dataset, ledger)
    bounds = tuple(
        tight.get(name, known) for name, known in zip(plain.names, plain.bounds, strict=True)
    )
    if bounds == plain.bounds:
        return plain
    label = plain.names[-1], bounds[-1]
    found = columns_for(dataset.coarse, dataset.fine, plain.names[:-1], bounds[:-1], label)
    if found.label is None:
        raise TypeError("a label was asked for")
    return replace(plain, features=found.features, label=found.label, bounds=bounds)


def _declared(table: Table, rows: BoundRows) -> FitTable:
    if table.label is None:
        raise BadInput(f"{table.path}: there is no label; declare it in the schema's [label]")
    if table.header.n_rows < _LEAST_ROWS:
        raise BadInput(
            f"the table has {table.header.n_rows} rows; a fit needs {_LEAST_ROWS}: the noise of "
            "fewer is larger than anything that they could say"
        )
    columns = [column for column in table.header.columns if column.role != PRESENCE]
    return FitTable(
        table.columns,
        table.label,
        tuple(column.name for column in columns),
        tuple(column.bounds for column in columns),
        tuple(column.fill for column in columns[:-1]),
        rows,
        tuple(column.group for column in columns[:-1]),
        table.header.encodings,
    )
