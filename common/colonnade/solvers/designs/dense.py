"""Rows as integers: what a solver may read.

A value is an ``int16`` on the grid times its column's public unit, so a solver works either on
features scaled to ``[-1, 1]`` (unit ``1 / GRID``) or in the users' own units, centred.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, Int16Array, Int32Array, IntArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.linear.kernels import score
from colonnade.solvers.designs import column_kernels as kernels

# Rows quantised at a time: what `quantise` works on stays in a processor's cache.
_ROWS_AT_ONCE = 1 << 14

EVERY_ROW = slice(None)

Moved: TypeAlias = tuple[int, float]
"""A feature and by how much its coefficient changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The values row by row; ``columns`` is one row's if ``shared``.

    Examples
    --------
    >>> rows = DenseDesign(np.array([[1, 2], [3, 4]], np.int16), np.ones(2)).by_rows()
    >>> rows.values, rows.shared
    (array([1, 3, 2, 4], dtype=int16), True)
    """

    values: Int16Array
    columns: Int32Array
    starts: IntArray
    shared: bool
    units: FloatArray

    @property
    def arrays(self) -> tuple[Int16Array, Int32Array, IntArray, bool, FloatArray]:
        """The fields in the order in which the kernels take them."""
        return self.values, self.columns, self.starts, self.shared, self.units


class Design(Protocol):
    """A table of integers."""

    @property
    def units(self) -> FloatArray:
        """What one step of the grid stands for, for each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    def by_columns(self) -> "Columns":
        """Return the same values column by column: a copy, unless they lie in memory like that."""

    def by_rows(self) -> Rows:
        """Return the same values row by row: a copy, unless they lie in memory like that."""


class Columns(Protocol):
    """What a solver asks of a table that it reads column by column."""

    @property
    def units(self) -> FloatArray:
        """What one step of the grid stands for, for each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    def gradient(
        self, j: int, clip: float, kind: int, margins: FloatArray, label: FloatArray, last: Moved
    ) -> int:
        """Move ``margins`` by ``last``; then sum slope times feature ``j``, in ``clip / TOP``."""

    def weighted(self, j: int, clip: float, weights: FloatArray) -> int:
        """Sum weight times feature ``j`` over the rows, clipped as above."""

    def scores(self, residual: Int16Array) -> IntArray:
        """Return the exact inner product of every column of integers with ``residual``."""

    def shift(self, j: int, amount: float, margins: FloatArray) -> None:
        """Add ``amount`` times feature ``j`` to ``margins`` in place."""

    def square_sums(self) -> IntArray:
        """Return the exact sum of squares of every column of integers."""

    def dense(self, features: IntArray, rows: slice = EVERY_ROW) -> Int16Array:
        """Return some columns of integers, zeros and all, each contiguous."""


@dataclass(frozen=True, slots=True, eq=False)
class DenseDesign:
    """Columns of ``int16``, shape ``(n_features, n_rows)``.

    In memory each column is contiguous, or each row is: the same numbers for every solver, but
    one that reads rows then needs no second copy, and one that reads columns is slow.

    Examples
    --------
    >>> design = DenseDesign(np.array([[1, 2, 3]], np.int16), np.ones(1))
    >>> design.shape, design.square_sums()
    ((3, 1), array([14]))
    """

    columns: Int16Array
    units: FloatArray

    def __post_init__(self) -> None:
        check_units(self.units, self.columns.shape[0])
        if self.columns.dtype != np.int16 or not self.columns.flags.forc:
            raise ValueError("columns are contiguous, or rows are, and of type int16")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.columns.shape[1], self.columns.shape[0]

    def gradient(
        self, j: int, clip: float, kind: int, margins: FloatArray, label: FloatArray, last: Moved
    ) -> int:
        """Move ``margins`` by ``last``; then sum slope times feature ``j``, in ``clip / TOP``."""
        before, amount = last
        columns, units = self.columns, self.units
        return int(
            kernels.dense_gradient(
                kind,
                columns[before],
                amount * float(units[before]),
                columns[j],
                float(units[j]) / clip * kernels.TOP,
                margins,
                label,
            )
        )

    def weighted(self, j: int, clip: float, weights: FloatArray) -> int:
        """Sum weight times feature ``j`` over the rows, clipped as above."""
        factor = float(self.units[j]) / clip * kernels.TOP
        return int(kernels.dense_weighted(self.columns[j], factor, weights))

    def scores(self, residual: Int16Array) -> IntArray:
        """Return the exact inner product of every column of integers with ``residual``."""
        return score(self.columns, residual)

    def shift(self, j: int, amount: float, margins: FloatArray) -> None:
        """Add ``amount`` times feature ``j`` to ``margins`` in place."""
        kernels.dense_shift(self.columns[j], amount * float(self.units[j]), margins)

    def square_sums(self) -> IntArray:
        """Return the exact sum of squares of every column of integers."""
        return np.array([kernels.square_sum(column) for column in self.columns], np.int64)

    def dense(self, features: IntArray, rows: slice = EVERY_ROW) -> Int16Array:
        """Return some columns of integers, each contiguous: a copy."""
        return np.ascontiguousarray(self.columns[:, rows][features])

    def by_columns(self) -> "DenseDesign":
        """Return this, also if rows are contiguous: a solver that reads columns is slow then."""
        return self

    def by_rows(self) -> Rows:
        """Return the same values row by row: a copy, unless they lie in memory like that."""
        n_rows, n_features = self.shape
        flat = np.ascontiguousarray(self.columns.T).reshape(-1)
        starts = np.arange(0, n_rows * n_features + 1, n_features, dtype=np.int64)
        return Rows(flat, np.arange(n_features, dtype=np.int32), starts, True, self.units)


def dense_design(
    X: AnyArray,
    bounds: Sequence[Bounds],
    *,
    intercept: bool = False,
    users_units: bool = False,
    row_wise: bool = False,
) -> DenseDesign:
    """Clip and round float columns under declared bounds.

    Parameters
    ----------
    X
        Shape ``(n_rows, n_features)``, no NaN; read a piece of a column at a time.
    intercept
        Whether to append a column of ones.
    users_units
        Whether the solver sees the users' units, centred on the middle of the bounds, instead of
        features scaled to ``[-1, 1]``.
    row_wise
        Whether rows are to be contiguous in memory, for a solver that reads rows.

    Examples
    --------
    >>> design = dense_design(np.array([[0.0], [5.0], [99.0]]), [Bounds(0.0, 10.0)])
    >>> design.columns * design.units[0]  # clipped, centred and scaled to [-1, 1]
    array([[-1.,  0.,  1.]])
    """
    n_rows, n_features = X.shape
    if len(bounds) != n_features:
        raise ValueError(f"there are {len(bounds)} bounds for {n_features} features")
    shape = (n_features + int(intercept), n_rows)
    columns = np.empty(shape, np.int16, order="F" if row_wise else "C")
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        for j, bound in enumerate(bounds):
            columns[j, part] = quantise(X[part, j], bound, grid=GRID)
    columns[n_features:] = GRID
    return DenseDesign(columns, design_units(bounds, intercept=intercept, users_units=users_units))


def design_units(
    bounds: Sequence[Bounds], *, intercept: bool = False, users_units: bool = False
) -> FloatArray:
    """Return what one step of the grid stands for, for each column."""
    widths = [bound.half_width if users_units else 1.0 for bound in bounds] + [1.0] * intercept
    return np.array(widths) / GRID


def check_units(units: FloatArray, n_features: int) -> None:
    """Raise `ValueError` unless every column has a unit."""
    if units.shape != (n_features,) or n_features == 0:
        raise ValueError("every column has a unit, and there is at least one")
    if not (np.isfinite(units).all() and (units > 0.0).all()):
        raise ValueError("units are finite and positive")
