"""Compiled loops over columns: clipped gradient sums in integers, and margins.

Privacy: what one row adds to a sum depends on that row and public numbers alone, and its size is
at most ``TOP`` whatever the floating-point numbers before the clip were (a NaN counts as ``TOP``).
Truncation is towards zero and comes last, so replacing one row moves a sum by at most ``2 * TOP``
exactly.
"""

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba
import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, Int32Array, IntArray
from colonnade.linear.losses import LOGISTIC_CODE, SQUARED_CODE

TOP = 2**30
"""A clipped entry is an integer of at most this size; it fits 32 bits."""

_TOP = float(TOP)

P = ParamSpec("P")
R = TypeVar("R")


def njit(kernel: Callable[P, R]) -> Callable[P, R]:
    """Compile like `colonnade.core.jit.njit`, with divisions as the processor does them.

    Python's check for a divisor of zero in every row keeps a loop from becoming vectors.
    """
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy")(kernel)
    return compiled


@njit
def sigmoid(x: float) -> float:
    """Return ``1 / (1 + exp(-x))`` to ten digits, in operations that vectors have.

    ``exp(x)`` is the Taylor sum of ``exp(x / 128)`` to the power 128; beyond 36 it is cut.
    """
    below = -x if -x < 36.0 else 36.0  # noqa: FURB136
    inside = below if below > -36.0 else -36.0  # noqa: FURB136
    h = inside / 128.0
    e = 1 / 40320 + h * (1 / 362880)
    e = 1 / 24 + h * (1 / 120 + h * (1 / 720 + h * (1 / 5040 + h * e)))
    e = 1.0 + h * (1.0 + h * (1 / 2 + h * (1 / 6 + h * e)))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return 1.0 / (1.0 + e)


@njit
def slope(kind: int, margin: float, label: float) -> float:
    """Return the derivative of the loss in the margin."""
    if kind == SQUARED_CODE:
        return margin - label
    if kind == LOGISTIC_CODE:
        return -label * sigmoid(-label * margin)
    return -label if label * margin < 1.0 else 0.0


@njit
def truncate(x: float) -> np.int64:
    """Clip to ``+-TOP``, a NaN to ``TOP``, and round towards zero."""
    below = x if x < _TOP else _TOP  # noqa: FURB136 - so that a NaN is the top
    inside = below if below > -_TOP else -_TOP  # noqa: FURB136
    return np.int64(np.int32(inside))


@njit
def slopes(kind: int, margins: FloatArray, label: FloatArray, out: FloatArray) -> None:
    """Write the slope of every row to ``out``."""
    for i in range(margins.size):
        out[i] = slope(kind, margins[i], label[i])


@njit
def dense_gradient(
    kind: int,
    before: Int16Array,
    amount: float,
    column: Int16Array,
    factor: float,
    margins: FloatArray,
    label: FloatArray,
) -> np.int64:
    """Add ``amount`` times ``before`` to ``margins``, then sum slope times value times ``factor``.

    The sum is of clipped and truncated terms. ``margins`` change in place, by the step that was
    taken last: one pass over the rows does both.
    """
    total = np.int64(0)
    if kind == SQUARED_CODE:  # a loop of its own, which the compiler turns into vectors
        for i in range(column.size):
            margins[i] += amount * before[i]
            total += truncate((margins[i] - label[i]) * (factor * column[i]))
        return total
    if kind == LOGISTIC_CODE:
        for i in range(column.size):
            margins[i] += amount * before[i]
            steep = -label[i] * sigmoid(-label[i] * margins[i])
            total += truncate(steep * (factor * column[i]))
        return total
    for i in range(column.size):
        margins[i] += amount * before[i]
        total += truncate(slope(kind, margins[i], label[i]) * (factor * column[i]))
    return total


@njit
def dense_shift(column: Int16Array, amount: float, margins: FloatArray) -> None:
    """Add ``amount`` times the column to ``margins`` in place."""
    for i in range(column.size):
        margins[i] += amount * column[i]


@njit
def sweep(
    kind: int,
    columns: Int16Array,
    units: FloatArray,
    clips: FloatArray,
    steps: FloatArray,
    scales: FloatArray,
    order: IntArray,
    first: int,
    noise: IntArray,
    l1: float,
    l2: float,
    bound: float,
    margins: FloatArray,
    label: FloatArray,
    u: FloatArray,
) -> None:
    """Take one proximal coordinate step for every entry of ``noise``; ``u`` changes in place.

    The same operations in the same order as the iteration in `iteration`, without leaving
    compiled code. At the end ``margins`` have followed.
    """
    before, amount = 0, 0.0
    for k in range(noise.size):
        j = order[(first + k) % order.size]
        factor = units[j] / clips[j] * _TOP
        moved = amount * units[before]
        total = dense_gradient(kind, columns[before], moved, columns[j], factor, margins, label)
        derivative = float(total + noise[k]) * (clips[j] / _TOP) / margins.size
        point = u[j] - steps[j] * derivative
        shrunk = max(abs(point) - steps[j] * l1 * scales[j], 0.0)
        target = math.copysign(shrunk / (1.0 + steps[j] * l2 * scales[j] * scales[j]), point)
        if scales[j] > 0.0 and bound < math.inf:
            target = min(max(target, -bound / scales[j]), bound / scales[j])
        before, amount = j, target - u[j]
        u[j] += amount
    dense_shift(columns[before], amount * units[before], margins)


@njit
def sparse_gradient(
    kind: int,
    values: Int16Array,
    rows: Int32Array,
    factor: float,
    margins: FloatArray,
    label: FloatArray,
) -> np.int64:
    """Do the same for a column of which only the non-zeros are stored."""
    total = np.int64(0)
    for k in range(values.size):
        i = rows[k]
        total += truncate(slope(kind, margins[i], label[i]) * (factor * values[k]))
    return total


@njit
def sparse_shift(values: Int16Array, rows: Int32Array, amount: float, margins: FloatArray) -> None:
    """Do the same for a column of which only the non-zeros are stored."""
    for k in range(values.size):
        margins[rows[k]] += amount * values[k]


@njit
def dense_weighted(column: Int16Array, factor: float, weights: FloatArray) -> np.int64:
    """Sum weight times value times ``factor``, each clipped and truncated."""
    total = np.int64(0)
    for i in range(column.size):
        total += truncate(weights[i] * (factor * column[i]))
    return total


@njit
def sparse_weighted(
    values: Int16Array, rows: Int32Array, factor: float, weights: FloatArray
) -> np.int64:
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
def square_sum(values: Int16Array) -> np.int64:
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
        below = x if x < top else top  # noqa: FURB136 - so that a NaN is the top
        inside = below if below > -top else -top  # noqa: FURB136
        out[i] = np.int16(inside)
