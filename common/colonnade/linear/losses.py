"""Losses of a linear model's margin, with derivative, curvature and Lipschitz constant.

A row with features ``x`` and label ``y`` has the margin ``m = x'w``. Its loss is a function of
``m`` and ``y`` alone, so its gradient in ``w`` is the slope at ``m`` times ``x``.

Three losses are built in and compiled into the kernels; `register_loss` adds others, whose slopes
are evaluated by NumPy and clipped by the same kernels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.registry import add_entry, find_entry

SQUARED_CODE, LOGISTIC_CODE, HINGE_CODE = 0, 1, 2
CUSTOM_CODE = -1
"""Of a loss that the kernels do not know: its slopes are computed before they are called."""

Elementwise: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A function of margins and labels; entry ``i`` of the result depends on their entries ``i``."""

Response: TypeAlias = Literal["squared", "logistic", "hinge"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A convex function of a row's margin and label.

    Privacy: solvers clip what a row adds after they multiplied it by the slope, so the sensitivity
    of a sum does not depend on the loss, provided that ``slope`` is element-wise: a slope that
    mixed rows would let one row change what all of them add. `register_loss` checks this at public
    points; a registered loss is trusted code.

    Parameters
    ----------
    name
        Of the loss in reports.
    value, slope
        The loss and its derivative in the margin (a subgradient where it jumps), element-wise.
    curvature
        Largest second derivative in the margin; infinite where the slope jumps.
    response
        Which predictions a model makes: the label itself (``"squared"``), the probability of the
        class +1 (``"logistic"``), or a class (``"hinge"``). Labels are -1 and +1 for the last two,
        else within ``[-1, 1]``.
    code
        How the kernels know a loss that is built in.

    Examples
    --------
    >>> import numpy as np
    >>> LOGISTIC.slope(np.array([0.0, 100.0]), np.array([1.0, 1.0]))
    array([-0.5, -0. ])
    >>> SQUARED.mean(np.array([1.0, 3.0]), np.array([0.0, 0.0]))
    2.5
    >>> HINGE.smooth, HINGE.classifies
    (False, True)
    """

    name: str
    value: Elementwise = field(repr=False)
    slope: Elementwise = field(repr=False)
    curvature: float
    response: Response = "squared"
    code: int = field(default=CUSTOM_CODE, repr=False)

    @property
    def smooth(self) -> bool:
        """Whether the slope is Lipschitz, so that step sizes follow from it."""
        return math.isfinite(self.curvature)

    @property
    def classifies(self) -> bool:
        """Whether labels are -1 and +1."""
        return self.response != "squared"

    def mean(self, margins: FloatArray, label: FloatArray) -> float:
        """Return the mean loss over the rows. Not private."""
        return float(np.mean(self.value(margins, label)))


def _squared(margins: FloatArray, label: FloatArray) -> FloatArray:
    return (margins - label) ** 2 / 2.0


def _squared_slope(margins: FloatArray, label: FloatArray) -> FloatArray:
    return margins - label


def _logistic(margins: FloatArray, label: FloatArray) -> FloatArray:
    loss: FloatArray = np.logaddexp(0.0, -label * margins)
    return loss


def _logistic_slope(margins: FloatArray, label: FloatArray) -> FloatArray:
    slope: FloatArray = -label * (0.5 - 0.5 * np.tanh(0.5 * label * margins))
    return slope


def _hinge(margins: FloatArray, label: FloatArray) -> FloatArray:
    loss: FloatArray = np.maximum(0.0, 1.0 - label * margins)
    return loss


def _hinge_slope(margins: FloatArray, label: FloatArray) -> FloatArray:
    return np.where(label * margins < 1.0, -label, 0.0)


SQUARED = Loss("squared", _squared, _squared_slope, curvature=1.0, code=SQUARED_CODE)
"""``(m - y)**2 / 2``"""

LOGISTIC = Loss("logistic", _logistic, _logistic_slope, 0.25, "logistic", LOGISTIC_CODE)
"""``log(1 + exp(-y m))`` for labels -1 and +1"""

HINGE = Loss("hinge", _hinge, _hinge_slope, math.inf, "hinge", HINGE_CODE)
"""``max(0, 1 - y m)`` for labels -1 and +1"""

LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, HINGE)}


def register_loss(loss: Loss) -> Loss:
    """Make ``loss`` known by its name, to `colonnade fit` and to the estimators; return it.

    Raises
    ------
    ValueError
        If the name is taken, or if at public points the functions are not element-wise, not
        finite, not convex, steeper than the curvature allows, or not each other's derivative.

    Examples
    --------
    The loss of Huber regression:

    >>> import numpy as np
    >>> def huber(m, y):
    ...     r = np.abs(m - y)
    ...     return np.where(r < 0.1, r**2 / 2, 0.1 * (r - 0.05))
    >>> def slope(m, y):
    ...     return np.clip(m - y, -0.1, 0.1)
    >>> loss = register_loss(Loss("doc_huber", huber, slope, curvature=1.0))
    >>> find_loss("doc_huber") is loss
    True
    >>> del LOSSES["doc_huber"]
    """
    _check(loss)
    add_entry(LOSSES, "loss", loss.name, loss)
    return loss


def find_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name, or the loss itself.

    Examples
    --------
    >>> find_loss("hinge").curvature
    inf
    """
    return find_entry(LOSSES, "loss", loss) if isinstance(loss, str) else loss


def _check(loss: Loss) -> None:
    """Raise `ValueError` unless the functions are what they are declared to be."""
    if loss.response not in LOSSES:
        raise ValueError(f"the response of a loss is one of {', '.join(LOSSES)}")
    if not loss.curvature > 0.0:
        raise ValueError("the curvature of a loss is positive, and infinite where its slope jumps")
    step = 1.0 / 16.0
    line = np.arange(-8.0, 8.0 + step, step)
    labels = (-1.0, 1.0) if loss.classifies else (-1.0, -0.3, 0.0, 0.7, 1.0)
    margins, label = np.tile(line, len(labels)), np.repeat(labels, line.size)
    values, slopes = (_evaluate(each, margins, label) for each in (loss.value, loss.slope))
    value, slope = values.reshape(-1, line.size), slopes.reshape(-1, line.size)
    slack = 1e-9 * (1.0 + float(np.abs(slopes).max()))
    if (np.diff(slope) < -slack).any():
        raise ValueError(f"the loss {loss.name!r} is not convex: its slope decreases")
    if (np.diff(slope) > loss.curvature * step + slack).any():
        raise ValueError(f"the slope of the loss {loss.name!r} changes faster than its curvature")
    # Between two points a convex function rises by its slope at either end, or anything between.
    rise = np.diff(value) / step
    if (rise < slope[:, :-1] - slack).any() or (rise > slope[:, 1:] + slack).any():
        raise ValueError(f"the slope of the loss {loss.name!r} is not its value's derivative")


def _evaluate(function: Elementwise, margins: FloatArray, label: FloatArray) -> FloatArray:
    """Evaluate at all points at once and in parts, which must agree."""
    found = np.asarray(function(margins, label), np.float64)
    if found.shape != margins.shape or not np.isfinite(found).all():
        raise ValueError("the value and the slope of a loss are finite, one for each row")
    parts = [slice(first, first + 7) for first in range(0, margins.size, 7)]
    apart = np.concatenate([np.asarray(function(margins[p], label[p])) for p in parts])
    if not np.allclose(apart, found, rtol=1e-9, atol=1e-12):
        raise ValueError("the value and the slope of a loss must be element-wise: they mix rows")
    return found
