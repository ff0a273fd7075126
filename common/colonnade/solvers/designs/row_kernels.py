"""Compiled loops over rows: a row's vector is clipped in norm and truncated to integers.

Rows lie one after another in ``values``; ``columns`` names the columns of the stored values, or
is the same for all rows of a dense table (``shared``).

Privacy: what one row adds is a vector of integers of norm at most ``TOP``, checked in integers, a
function of that row, of its own hidden state and of public numbers. A row that would break the
bound, or is not finite, adds nothing. So replacing one row moves a sum by at most ``2 * TOP``.
"""

import math

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, Int32Array, IntArray
from colonnade.linear.losses import HINGE_CODE, LOGISTIC_CODE, SQUARED_CODE
from colonnade.solvers.designs.column_kernels import TOP, njit, sigmoid, slope

_TOP = float(TOP)
_TOP2 = TOP * TOP
# Clipped a little below the bound, so that rounding does not cost whole rows.
_INSIDE = 1.0 - 2.0**-40


@njit
def _norm2(values: Int16Array, columns: Int32Array, units: FloatArray) -> float:
    norm2 = 0.0
    for k in range(values.size):
        x = units[columns[k]] * values[k]
        norm2 += x * x
    return norm2


@njit
def _add_row(
    values: Int16Array,
    columns: Int32Array,
    units: FloatArray,
    weight: float,
    clip: float,
    scratch: IntArray,
    out: IntArray,
) -> float:
    """Add ``weight`` times the row, in units of ``clip / TOP``, to ``out``; return what was used.

    The weight is scaled down so that the vector's norm is at most ``clip``.
    """
    length = abs(weight) * math.sqrt(_norm2(values, columns, units))
    if not length < math.inf:
        return 0.0
    if length > clip * _INSIDE:
        weight *= clip * _INSIDE / length
    factor = weight / clip * _TOP
    check = np.int64(0)
    for k in range(values.size):
        x = factor * (units[columns[k]] * values[k])
        below = x if x < _TOP else _TOP  # noqa: FURB136 - so that a NaN is the top
        inside = below if below > -_TOP else -_TOP  # noqa: FURB136
        scratch[k] = np.int64(inside)
        if check <= _TOP2:  # stop adding before 64 bits could overflow
            check += scratch[k] * scratch[k]
    if check > _TOP2:
        return 0.0
    for k in range(values.size):
        out[columns[k]] += scratch[k]
    return weight


@njit
def _margin(values: Int16Array, columns: Int32Array, units: FloatArray, coef: FloatArray) -> float:
    total = 0.0
    for k in range(values.size):
        total += coef[columns[k]] * (units[columns[k]] * values[k])
    return total


@njit
def _cut(starts: IntArray, i: int, shared: bool) -> tuple[int, int]:
    """Return where the columns of row ``i`` begin and end."""
    width = starts[i + 1] - starts[i]
    return (0, width) if shared else (starts[i], starts[i + 1])


@njit
def gradient_rows(
    kind: int,
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    batch: IntArray,
    coef: FloatArray,
    label: FloatArray,
    clip: float,
    out: IntArray,
) -> None:
    """Add the clipped gradients of the rows in ``batch`` at ``coef`` to ``out``."""
    scratch = np.empty(units.size, np.int64)
    for b in range(batch.size):
        i = batch[b]
        low, high = _cut(starts, i, shared)
        row, where = values[starts[i] : starts[i + 1]], columns[low:high]
        steep = slope(kind, _margin(row, where, units, coef), label[i])
        _add_row(row, where, units, steep, clip, scratch, out)


@njit
def margins_of_rows(
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    batch: IntArray,
    coef: FloatArray,
    out: FloatArray,
) -> None:
    """Write the margins of the rows in ``batch`` at ``coef`` to ``out``."""
    for b in range(batch.size):
        i = batch[b]
        low, high = _cut(starts, i, shared)
        out[b] = _margin(values[starts[i] : starts[i + 1]], columns[low:high], units, coef)


@njit
def norms2_of_rows(
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    out: FloatArray,
) -> None:
    """Write the squared norm of every row to ``out``."""
    for i in range(out.size):
        low, high = _cut(starts, i, shared)
        out[i] = _norm2(values[starts[i] : starts[i + 1]], columns[low:high], units)


@njit
def add_rows(
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    batch: IntArray,
    weights: FloatArray,
    clip: float,
    out: IntArray,
) -> None:
    """Add weight times row, clipped, to ``out`` for a batch; ``weights`` become those used."""
    scratch = np.empty(units.size, np.int64)
    for b in range(batch.size):
        i = batch[b]
        low, high = _cut(starts, i, shared)
        row = values[starts[i] : starts[i + 1]]
        weights[b] = _add_row(row, columns[low:high], units, weights[b], clip, scratch, out)


@njit
def proximal_weight(kind: int, margin: float, label: float, gamma: float, norm2: float) -> float:
    """Return ``t`` such that ``v + t x`` is the proximal point of ``gamma`` times the row's loss.

    ``margin`` is ``x'v``, ``norm2`` is ``|x|**2``; ``t = -gamma slope(margin + t norm2)``.
    """
    reach = gamma * norm2
    if kind == SQUARED_CODE:
        return -gamma * (margin - label) / (1.0 + reach)
    if kind == HINGE_CODE:
        if label * margin >= 1.0:
            return 0.0
        if reach <= 0.0 or label * margin + reach <= 1.0:
            return gamma * label
        return (label - margin) / norm2
    # Newton's method on s - y margin - reach / (1 + exp(s)) with s = y m, which increases at rate
    # >= 1, within an interval that holds the root and is halved where steps do not shrink fast.
    s = low = label * margin
    high, last = low + reach * sigmoid(-low), math.inf
    for _ in range(60):
        tail = sigmoid(-s)
        excess = s - label * margin - reach * tail
        low, high = (low, s) if excess > 0.0 else (s, high)
        change = excess / (1.0 + reach * tail * (1.0 - tail))
        s -= change
        if abs(change) < 1e-14:
            break
        if abs(change) > 0.5 * last or not low < s < high:
            change, s = 0.5 * (high - low), 0.5 * (low + high)
        last = abs(change)
    return gamma * label * sigmoid(-s)


@njit
def proximal_rows(
    kind: int,
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    point: FloatArray,
    along: FloatArray,
    label: FloatArray,
    gamma: float,
    clip: float,
    weights: FloatArray,
    out: IntArray,
) -> None:
    """Sum the displacements of the proximal maps of all rows at ``point - along_i x_i``.

    Writes the weights ``t_i`` of the displacements ``t_i x_i``, after clipping, to ``weights``.
    """
    scratch = np.empty(units.size, np.int64)
    for i in range(label.size):
        low, high = _cut(starts, i, shared)
        row, where = values[starts[i] : starts[i + 1]], columns[low:high]
        norm2 = _norm2(row, where, units)
        margin = _margin(row, where, units, point) - along[i] * norm2
        t = proximal_weight(kind, margin, label[i], gamma, norm2)
        weights[i] = _add_row(row, where, units, t, clip, scratch, out)


@njit
def dual_step(kind: int, alpha: float, margin: float, label: float, curvature: float) -> float:
    """Return the change of ``alpha`` that minimises the row's part of the dual.

    That is ``conjugate(-alpha - z) + margin z + curvature z**2 / 2`` over ``z``.
    """
    if kind == SQUARED_CODE:
        return (label - margin - alpha) / (1.0 + curvature)
    if kind == LOGISTIC_CODE:
        # With b = y (alpha + z) = sigmoid(s): s + y margin + curvature (b - y alpha) = 0.
        begin, s = label * alpha, -label * margin
        s = min(max(s, -30.0), 30.0)
        b = sigmoid(s)
        for _ in range(30):
            change = (s + label * margin + curvature * (b - begin)) / (
                1.0 + curvature * b * (1.0 - b)
            )
            # The curve bends: a step that is too long is cut, which keeps Newton's method safe.
            s -= min(max(change, -2.0), 2.0)
            b = sigmoid(s)
            if abs(change) < 1e-13:
                break
        return label * (b - begin)
    b = label * alpha
    if curvature > 0.0:
        b += label * (label - margin) / curvature
    elif label * margin < 1.0:
        b = 1.0
    else:
        b = 0.0
    return label * min(max(b, 0.0), 1.0) - alpha


@njit
def dual_rows(
    kind: int,
    values: Int16Array,
    columns: Int32Array,
    starts: IntArray,
    shared: bool,
    units: FloatArray,
    batch: IntArray,
    spread: FloatArray,
    v: FloatArray,
    alpha: FloatArray,
    label: FloatArray,
    crowd: float,
    sequential: bool,
    most: float,
    clip: float,
    weights: FloatArray,
    out: IntArray,
) -> None:
    """Sum the dual updates of the rows in ``batch``; the model is ``spread * v``.

    An update is at most ``most``, and times its row at most ``clip`` in norm.
    Independent updates all see the same ``v`` and count the row's curvature ``crowd`` times; if
    ``sequential``, each one sees what the earlier ones of the batch did, on a copy of ``v``.
    """
    scratch = np.empty(units.size, np.int64)
    v = v.copy()
    for b in range(batch.size):
        i = batch[b]
        low, high = _cut(starts, i, shared)
        row, where = values[starts[i] : starts[i + 1]], columns[low:high]
        margin, curvature = 0.0, 0.0
        for k in range(row.size):
            x = units[where[k]] * row[k]
            margin += spread[where[k]] * v[where[k]] * x
            curvature += spread[where[k]] * x * x
        z = dual_step(kind, alpha[i], margin, label[i], crowd * curvature)
        z = min(max(z, -most), most)
        weights[b] = _add_row(row, where, units, z, clip, scratch, out)
        if sequential:
            for k in range(row.size):
                v[where[k]] += weights[b] * units[where[k]] * row[k]
