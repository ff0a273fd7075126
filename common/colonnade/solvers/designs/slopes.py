"""Sums of clipped gradients for any loss: compiled for the built-in ones, else in two passes.

A registered loss is evaluated by NumPy on margins that the kernels computed; its slopes are the
weights of sums that the kernels clip. Privacy: the clip comes last in both ways and is the same, so
the sensitivity of a sum is ``2 TOP`` whatever a loss returns, a NaN included, as long as the slope
of a row depends on that row alone (see `Loss`).
"""

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.losses import CUSTOM_CODE, Loss
from colonnade.solvers.designs.column_kernels import slopes
from colonnade.solvers.designs.dense import Columns, Moved, Rows
from colonnade.solvers.designs.row_kernels import (
    add_rows,
    gradient_rows,
    margins_of_rows,
    norms2_of_rows,
    proximal_rows,
)

# Halvings of an interval: what remains of it is below the precision of a float.
_HALVINGS = 60


def slopes_of(loss: Loss, margins: FloatArray, label: FloatArray) -> FloatArray:
    """Return the slope of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from colonnade.linear.losses import HINGE
    >>> slopes_of(HINGE, np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([-1.,  0.])
    """
    if loss.code == CUSTOM_CODE:
        return _custom_slopes(loss, margins, label)
    out = np.empty_like(margins)
    slopes(loss.code, margins, label, out)
    return out


def column_gradient(
    design: Columns,
    j: int,
    clip: float,
    loss: Loss,
    margins: FloatArray,
    label: FloatArray,
    last: Moved,
) -> int:
    """Move ``margins`` by ``last``; then sum slope times feature ``j``, in ``clip / TOP``."""
    if loss.code != CUSTOM_CODE:
        return design.gradient(j, clip, loss.code, margins, label, last)
    design.shift(*last, margins)
    return design.weighted(j, clip, _custom_slopes(loss, margins, label))


def batch_gradient(
    loss: Loss,
    rows: Rows,
    batch: IntArray,
    coef: FloatArray,
    label: FloatArray,
    clip: float,
    out: IntArray,
) -> None:
    """Add the clipped gradients of the rows in ``batch`` at ``coef`` to ``out``."""
    if loss.code != CUSTOM_CODE:
        gradient_rows(loss.code, *rows.arrays, batch, coef, label, clip, out)
        return
    margins = np.empty(batch.size)
    margins_of_rows(*rows.arrays, batch, coef, margins)
    add_rows(*rows.arrays, batch, _custom_slopes(loss, margins, label[batch]), clip, out)


def displacements(
    loss: Loss,
    rows: Rows,
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
    if loss.code != CUSTOM_CODE:
        proximal_rows(loss.code, *rows.arrays, point, along, label, gamma, clip, weights, out)
        return
    everybody = np.arange(label.size)
    margins, norms2 = np.empty(label.size), np.empty(label.size)
    margins_of_rows(*rows.arrays, everybody, point, margins)
    norms2_of_rows(*rows.arrays, norms2)
    weights[:] = proximal_weights(loss, margins - along * norms2, label, gamma, norms2)
    add_rows(*rows.arrays, everybody, weights, clip, out)


def proximal_weights(
    loss: Loss, margins: FloatArray, label: FloatArray, gamma: float, norms2: FloatArray
) -> FloatArray:
    """Return ``t`` such that ``v + t x`` is the proximal point of ``gamma`` times a row's loss.

    The new margin ``m`` solves ``m = margin - gamma norm2 slope(m)``, whose right side decreases:
    it lies between the margin and what the slope there would make of it, and is found by halving.

    Examples
    --------
    >>> import numpy as np
    >>> from colonnade.linear.losses import SQUARED
    >>> proximal_weights(SQUARED, np.array([1.0]), np.zeros(1), 2.0, np.ones(1)).round(6)
    array([-0.666667])
    """
    reach = gamma * norms2
    with np.errstate(all="ignore"):  # a warning would depend on the rows
        ahead = margins - reach * _custom_slopes(loss, margins, label)
        low, high = np.minimum(margins, ahead), np.maximum(margins, ahead)
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2.0
            above = middle - margins + reach * _custom_slopes(loss, middle, label) > 0.0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        moved = low + (high - low) / 2.0 - margins
        return np.divide(moved, norms2, out=np.zeros_like(moved), where=norms2 > 0.0)


def _custom_slopes(loss: Loss, margins: FloatArray, label: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):  # a warning would depend on the rows
        found = np.ascontiguousarray(loss.slope(margins, label), np.float64)
    if found.shape != margins.shape:
        raise ValueError(f"the loss {loss.name} does not return one slope for each row")
    return found
