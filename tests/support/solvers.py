"""A small table, and releases that remember, for the tests of the solvers."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.solvers.design import DenseDesign, SparseDesign
from colonnade.privacy.mechanisms import Mechanism, SignedSelection

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
