"""Compiled loops over columns: clipped gradient sums in integers, and margins.

Privacy: what one row adds to a sum depends on that row and public numbers alone, and its size is
at most ``TOP`` whatever the floating-point numbers before the clip were (a NaN counts as ``TOP``).
Truncation is towards zero and comes last, so replacing one row moves a sum by at most ``2 * TOP``
exactly.
"""

import math

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, Int32Array, IntArray
from colonnade.core.jit import njit
from colonnade.optim.solvers.losses import LOGISTIC_CODE, SQUARED_CODE

TOP = 2**30
"""A clipped entry is an integer of at most this size; it fits 32 bits."""

_TOP = float(TOP)
# Beyond this a sigmoid is 0 to the last bit; the exponential would leave the floats.
_FAR = 700.0


@njit
def slope(kind: int, margin: float, label: float) -> float:
    """Return the derivative of the loss in the margin."""
    if kind == SQUARED_CODE:
        return margin - label
    if kind == LOGISTIC_CODE:
        return -label / (1.0 + math.exp(min(label * margin, _FAR)))
    return -label if label * margin < 1.0 else 0.0


@njit
def truncate(x: float) -> int:
    """Clip to ``+-TOP``, a NaN to ``TOP``, and round towards zero."""
    below = x if x < _TOP else _TOP
    inside = below if below > -_TOP else -_TOP
    return np.int64(np.int32(inside))


@njit
def slopes(kind: int, margins: FloatArray, label: FloatArray, out: FloatArray) -> None:
    """Write the slope of every row to ``out``."""
    for i in range(margins.size):
        out[i] = slope(kind, margins[i], label[i])


@njit
def dense_gradient(
    kind: int, column: Int16Array, factor: float, margins: FloatArray, label: FloatArray
) -> int:
    """Sum slope times value times ``factor``, each clipped and truncated."""
    total = np.int64(0)
    if kind == SQUARED_CODE:  # a loop of its own, which the compiler turns into vectors
        for i in range(column.size):
            total += truncate((margins[i] - label[i]) * (factor * column[i]))
        return total
    for i in range(column.size):
        total += truncate(slope(kind, margins[i], label[i]) * (factor * column[i]))
    return total


@njit
def sparse_gradient(
    kind: int,
    values: Int16Array,
    rows: Int32Array,
    factor: float,
    margins: FloatArray,
    label: FloatArray,
) -> int:
    """Do the same for a column of which only the non-zeros are stored."""
    total = np.int64(0)
    for k in range(values.size):
        i = rows[k]
        total += truncate(slope(kind, margins[i], label[i]) * (factor * values[k]))
    return total


@njit
def dense_shift(column: Int16Array, amount: float, margins: FloatArray) -> None:
    """Add ``amount`` times the column to ``margins`` in place."""
    for i in range(column.size):
        margins[i] += amount * column[i]


@njit
def sparse_shift(
    values: Int16Array, rows: Int32Array, amount: float, margins: FloatArray
) -> None:
    """Do the same for a column of which only the non-zeros are stored."""
    for k in range(values.size):
        margins[rows[k]] += amount * values[k]


@njit
def dense_weighted(column: Int16Array, factor: float, weights: FloatArray) -> int:
    """Sum weight times value times ``factor``, each clipped and truncated."""
    total = np.int64(0)
    for i in range(column.size):
        total += truncate(weights[i] * (factor * column[i]))
    return total


@njit
def sparse_weighted(
    values: Int16Array, rows: Int32Array, factor: float, weights: FloatArray
) -> int:
    """Do the same for a column of which only the non-zeros are stored."""
    total = np.int64(0)
    for k in range(values.size):
        total += truncate(weights[rows[k]] * (factor * values[k]))
    return total


@njit
def sparse_scores(
    values: Int16Array, rows: Int32Array, starts: IntArray, residual: Int16Array, out: IntArray
) -> None:
    """Write the exact inner product of every sparse column with ``residual`` to ``out``."""
    for j in range(out.size):
        total = np.int64(0)
        for k in range(starts[j], starts[j + 1]):
            total += np.int64(values[k]) * np.int64(residual[rows[k]])
        out[j] = total


@njit
def square_sum(values: Int16Array) -> int:
    """Return the exact sum of squares."""
    total = np.int64(0)
    for i in range(values.size):
        total += np.int64(values[i]) * np.int64(values[i])
    return total


@njit
def quantise_slopes(slopes_: FloatArray, factor: float, grid: int, out: Int16Array) -> None:
    """Write ``factor`` times every slope, clipped to ``+-grid`` and truncated, to ``out``."""
    top = float(grid)
    for i in range(slopes_.size):
        x = slopes_[i] * factor
        below = x if x < top else top
        inside = below if below > -top else -top
        out[i] = np.int16(inside)
