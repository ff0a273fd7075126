"""What a local fit is asked for and the rows that it reads; `local_fit` makes it."""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colonnade.core.arrays import Int16Array
from colonnade.core.errors import BadInput, ReleasePurged
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.core.table import Table, open_pair
from colonnade.optim.model import LossName
from colonnade.optim.solvers.defaults import settled
from colonnade.optim.solvers.design import DenseDesign, design_units
from colonnade.optim.solvers.fitting import NoiseName, Objective
from colonnade.optim.solvers.fitting import Table as SolverTable
from colonnade.optim.solvers.losses import LOSSES
from colonnade.optim.solvers.penalties import Penalty
from colonnade.optim.solvers.problem import Problem
from colonnade.optim.solvers.solve import Solver, check, check_promise
from colonnade.party.bounds import bought_bounds, buy_bounds
from colonnade.party.clients import is_divided, refuse_clients
from colonnade.party.versions import columns_for, version_of
from colonnade.privacy.accounting import delta_for
from colonnade.privacy.gate import Gate
from colonnade.privacy.ledger import Ledger
from colonnade.privacy.sampling import OsNoise

_LONGEST_NAME = 200


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
    dataset
        The random name of the ingest; empty for a file that was read for this fit only.
    digest
        Of all stored columns. A fact about the rows: it stays here.
    divided
        Whether the rows are of clients: a ledger then protects clients, and pays for no fit.
    """

    features: Int16Array
    label: Int16Array
    names: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    dataset: str
    digest: bytes
    divided: bool = False

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
            "dataset": self.dataset,
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


def read_table(table: Table, *, dataset: str) -> FitTable:
    """Return a table under its declared bounds."""
    if table.label is None:
        raise BadInput(f"{table.path}: there is no label; declare it in the schema's [label]")
    columns = table.header.columns
    return FitTable(
        table.columns,
        table.label,
        tuple(column.name for column in columns),
        tuple(column.bounds for column in columns),
        dataset,
        bytes.fromhex(table.content_digest),
        is_divided(table.path.parent),
    )


def party_table(folder: Path, ledger: Ledger, *, declared: bool) -> FitTable:
    """Return a party's table, checked, under the bounds that it bought unless ``declared``."""
    refuse_clients(ledger, divided=is_divided(folder))
    coarse, fine = open_pair(folder)
    for each in (coarse, fine):
        each.verify()
    version = version_of(coarse)
    plain = read_table(coarse, dataset=version)
    tight = {} if declared else _bought(folder, version, ledger)
    bounds = tuple(
        tight.get(name, known) for name, known in zip(plain.names, plain.bounds, strict=True)
    )
    if bounds == plain.bounds:
        return plain
    *features, label = zip(plain.names, bounds, strict=True)
    found = columns_for(folder, [name for name, _ in features], bounds[:-1], label)
    if found.label is None:
        raise TypeError("a label was asked for")
    return FitTable(found.features, found.label, plain.names, bounds, version, plain.digest)


def _bought(folder: Path, version: str, ledger: Ledger) -> dict[str, Bounds]:
    try:
        if bought_bounds(version, ledger) is None:
            return {}
    except ReleasePurged:
        return {}  # the declared ones remain
    bought = buy_bounds(folder, ledger, Gate(ledger, OsNoise()), units=0, label=False)  # a replay
    names = [column.name for column in bought.columns]
    return dict(zip(names, bought.tight, strict=True))
