"""A small table, and releases that remember, for the tests of the solvers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import SQUARED, Loss
from colonnade.linear.penalties import no_penalty, ridge
from colonnade.privacy.mechanisms import Mechanism, SignedSelection
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.defaults import with_defaults
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.designs.sparse import SparseDesign
from colonnade.solvers.problem import plain
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import make_plan, solve

UNIT = 1.0 / GRID


@dataclass(frozen=True)
class Toy:
    """Rows with a label for regression and one for classification."""

    design: DenseDesign
    target: FloatArray
    sign: FloatArray

    @property
    def X(self) -> FloatArray:
        return np.asarray(self.design.columns.T * UNIT)


def toy(n_rows: int = 500, n_features: int = 5, *, seed: int = 3, zeros: float = 0.0) -> Toy:
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1.0, 1.0, (n_rows, n_features))
    X[draw.random(X.shape) < zeros] = 0.0
    columns = np.ascontiguousarray(np.rint(X.T * GRID).astype(np.int16))
    signal = X @ np.array([0.5, -0.3, 0.0, 0.2, 0.0])[:n_features]
    noise = draw.normal(size=n_rows)
    target = np.clip(signal + 0.1 * noise, -1.0, 1.0)
    sign = np.where(signal + 0.2 * noise > 0.0, 1.0, -1.0)
    return Toy(DenseDesign(columns, np.full(n_features, UNIT)), target, sign)


def sparse_of(design: DenseDesign) -> SparseDesign:
    """Return the same table with its non-zeros only."""
    values, indices, starts = [], [], [0]
    for column in design.columns:
        rows = np.flatnonzero(column)
        values.append(column[rows])
        indices.append(rows.astype(np.int32))
        starts.append(starts[-1] + rows.size)
    return SparseDesign(
        np.concatenate(values),
        np.concatenate(indices),
        np.array(starts, np.int64),
        design.shape[0],
        design.units,
    )


def resolved(solver: Solver, loss: Loss = SQUARED) -> Solver:
    """Return the solver with every default chosen, for a small table."""
    return with_defaults(solver, loss, (500, 5), epsilon=1.0, delta=1e-6)


@dataclass
class Recorder:
    """Release the exact value, or a selection's best, and remember what was asked."""

    asked: list[tuple[str, Mechanism, IntArray]] = field(default_factory=list)

    def __call__(
        self, kind: str, round_: int, mechanism: Mechanism, compute: Callable[[], IntArray]
    ) -> IntArray:
        value = compute()
        self.asked.append((kind, mechanism, value.copy()))
        if isinstance(mechanism, SignedSelection):
            return np.array([int(np.argmax(np.abs(value))), 1], np.int64)
        return value


SMALL_CLIP: list[Solver] = [
    CoordinateDescent(passes=2, clip=0.1),
    GreedyDescent(iterations=3, clip=0.1),
    StochasticDescent(passes=3, batch_size="full", clip=0.01),
    FrankWolfe(iterations=3, clip=0.1),
    Admm(iterations=3, clip=0.01),
    DualDescent(epochs=2, batch_size=20, clip=0.01),
    DualDescent(epochs=2, batch_size=20, clip=0.01, noisy_alpha=True),
    DualDescent(epochs=2, batch_size=20, clip=0.01, sequential=True),
    DualDescent(epochs=2, batch_size=20, clip=0.01, sequential=True, noisy_alpha=True),
    Gram(refinements=2),
    Gram(refinements=1, keep=2, widest=2),
]
ROW = 7


def neighbours(n_features: int = 3) -> tuple[DenseDesign, DenseDesign]:
    """Return two tables that differ in one row, from one corner of the bounds to the other."""
    columns = toy(60, n_features).design.columns
    low, high = columns.copy(), columns.copy()
    low[:, ROW], high[:, ROW] = -GRID, GRID
    units = np.full(n_features, UNIT)
    return DenseDesign(low, units), DenseDesign(high, units)


def record(
    solver: Solver,
    loss: Loss,
    *,
    n_features: int = 3,
    tables: Sequence[DenseDesign] | None = None,
    labels: Sequence[FloatArray] | None = None,
    epsilon: float = 1.0,
) -> list[list[tuple[str, Mechanism, IntArray]]]:
    """Run on both neighbours with no noise; the second sees the first one's releases."""
    penalty = no_penalty() if isinstance(solver, FrankWolfe) else ridge(0.1)
    asked = []
    told: list[IntArray] = []
    label = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    for side, design in enumerate(tables or neighbours(n_features)):
        recorder = Recorder()

        def release(kind, round_, mechanism, compute, recorder=recorder, side=side):  # type: ignore[no-untyped-def]
            said = recorder(kind, round_, mechanism, compute)
            if side == 0:
                told.append(said)
                return said
            return told[len(recorder.asked) - 1]  # the same history: what composition is about

        problem = plain(loss, penalty, design.shape[1])
        plan = make_plan(solver, design.shape, epsilon=epsilon, delta=1e-6)
        own = label if labels is None else labels[side]
        solve(problem, design, own, solver, plan=plan, release=release)
        asked.append(recorder.asked)
    return asked
