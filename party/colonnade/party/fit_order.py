"""What a local fit is asked for and the rows that it reads; `local_fit` makes it."""

import hashlib
import json
import math
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arrays import Int16Array
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.data.model import LossName
from colonnade.data.table import Table
from colonnade.ledger.ledger import Ledger
from colonnade.linear.losses import LOSSES
from colonnade.linear.penalties import Penalty
from colonnade.party.data.binding import Rows, rows_of
from colonnade.party.data.bounds import bought_bounds
from colonnade.party.data.clients import refuse_clients
from colonnade.party.data.columns import columns_for
from colonnade.party.data.dataset import Dataset, rows_digest
from colonnade.privacy.accounting import delta_for
from colonnade.solvers.defaults import settled
from colonnade.solvers.design import DenseDesign, design_units
from colonnade.solvers.fit import NoiseName, Objective
from colonnade.solvers.fit import Table as SolverTable
from colonnade.solvers.problem import Problem
from colonnade.solvers.solve import Solver, check, check_promise

_LONGEST_NAME = 200
_LEAST_ROWS = 10


@dataclass(frozen=True, slots=True)
class FitOrder:
    """What is asked for; all of it is public.

    Parameters
    ----------
    name
        Of the run: the same order under another name is a new fit.
    delta
        ``min(1e-6, 1 / (10 n))`` if None.
    """

    name: str
    loss: LossName
    solver: Solver
    epsilon: float
    delta: float | None = None
    l1: float = 0.0
    l2: float = 0.0
    box: float = math.inf
    intercept: bool = True
    noise: NoiseName = "exact"

    def __post_init__(self) -> None:
        if not (self.name.isprintable() and 1 <= len(self.name) <= _LONGEST_NAME):
            raise ValueError(f"a name has 1 to {_LONGEST_NAME} printable characters")
        # What makes no sense for any table is refused before one is read.
        scales = np.array([1.0] + [0.0] * self.intercept)
        penalty = Penalty(self.l1, self.l2, self.box)
        check(Problem(LOSSES[self.loss], penalty, scales), self.solver)
        check_promise(self.epsilon, self.delta)

    @property
    def objective(self) -> Objective:
        """The loss and its penalty."""
        return Objective(LOSSES[self.loss], self.l1, self.l2, self.box)

    def delta_for(self, n_rows: int) -> float:
        """Return delta, or its default for so many rows."""
        return delta_for(self.delta, n_rows)


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
    """

    features: Int16Array
    label: Int16Array
    names: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    fills: tuple[float, ...]
    rows: Rows

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return int(self.label.size)

    def solver_table(self, order: FitOrder) -> SolverTable:
        """Return the columns as the solvers read them: a copy, with the intercept's if wanted."""
        n_features = len(self.features)
        shape = (n_features + order.intercept, self.n_rows)
        columns = np.empty(shape, np.int16, order="F" if order.solver.reads_rows else "C")
        columns[:n_features], columns[n_features:] = self.features, GRID
        classes = order.objective.loss.classifies
        return SolverTable(
            design=DenseDesign(columns, design_units(self.bounds[:-1], intercept=order.intercept)),
            bounds=self.bounds[:-1],
            label=np.where(self.label > 0, 1.0, -1.0) if classes else self.label / GRID,
            label_bounds=None if classes else self.bounds[-1],
            intercept=order.intercept,
        )

    def settled(self, order: FitOrder, *, charged: bool) -> FitOrder:
        """Return the order with every setting of its solver chosen, for this many rows."""
        solver = settled(
            order.solver,
            order.objective.loss,
            (self.n_rows, len(self.features) + order.intercept),
            epsilon=order.epsilon,
            delta=order.delta_for(self.n_rows),
            enforced=charged,
        )
        return replace(order, solver=solver)

    def steps(self, order: FitOrder) -> int:
        """Return the number of steps that an order takes here."""
        return order.solver.steps(self.n_rows, len(self.features) + order.intercept)

    def spec(self, order: FitOrder) -> bytes:
        """Return everything public that shapes the fit, whose settings are chosen.

        Nothing of the rows: a digest of them in a published model would tell two tables apart.
        """
        facts = {
            "name": order.name,
            "n_rows": self.n_rows,
            "columns": [
                [name, bounds.low, bounds.high]
                for name, bounds in zip(self.names, self.bounds, strict=True)
            ],
            "fills": self.fills,
            "dataset": self.rows.dataset,
            "loss": order.loss,
            "penalty": [order.l1, order.l2, repr(order.box)],
            "intercept": order.intercept,
            "solver": repr(order.solver),
            "epsilon": order.epsilon,
            "delta": order.delta_for(self.n_rows),
            "noise": order.noise,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()

    def job_id(self, order: FitOrder) -> str:
        """Return the name of the fit in its model: SHA-256 of all that is public of it."""
        return hashlib.sha256(self.spec(order)).hexdigest()


def file_table(table: Table) -> FitTable:
    """Return the table of a file that was read for one fit, under its declared bounds."""
    # Without the random name of the ingest, which would make every fit of the file another one.
    return _declared(table, Rows(rows_digest(table, None), "", table.header.client_ids))


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


def _declared(table: Table, rows: Rows) -> FitTable:
    if table.label is None:
        raise BadInput(f"{table.path}: there is no label; declare it in the schema's [label]")
    if table.header.n_rows < _LEAST_ROWS:
        raise BadInput(
            f"the table has {table.header.n_rows} rows; a fit needs {_LEAST_ROWS}: the noise of "
            "fewer is larger than anything that they could say"
        )
    columns = table.header.columns
    return FitTable(
        table.columns,
        table.label,
        tuple(column.name for column in columns),
        tuple(column.bounds for column in columns),
        tuple(column.fill for column in columns[:-1]),
        rows,
    )
