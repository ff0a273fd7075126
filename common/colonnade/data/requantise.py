"""Quantise the fine copy of a column again, under the bounds of a job."""

import numpy as np

from colonnade.core.arrays import Int16Array, Int32Array
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds
from colonnade.core.jit import njit


def requantise(fine: Int32Array, *, declared: Bounds, tight: Bounds) -> Int16Array:
    """Return the values of ``fine`` under ``tight`` bounds on ``GRID``.

    Privacy: like `core.fixedpoint.quantise`; ``tight`` must be public or released. A coordinator
    names it in a proposal, which is free, so the time this takes must not depend on the values
    (`core.constant_time`). For any two `Bounds` a difference of two values is 0 or larger than
    ``1e-140``, and the factor that follows larger than ``1e-116``.
    """
    out = np.empty(fine.size, np.int16)
    step, scale = declared.half_width / FINE_GRID, GRID / tight.half_width
    # What both bounds allow; tight ones beyond the declared ones leave one of their ends.
    low, high = (min(max(end, tight.low), tight.high) for end in (declared.low, declared.high))
    _requantise(fine, step, declared.middle, low, high, tight.middle, scale, out)
    return out


@njit
def _requantise(
    fine: Int32Array,
    step: float,
    origin: float,
    low: float,
    high: float,
    middle: float,
    scale: float,
    out: Int16Array,
) -> None:
    for i in range(fine.size):
        value = min(max(float(fine[i]) * step + origin, low), high)
        out[i] = np.int16(min(max(np.rint((value - middle) * scale), -float(GRID)), float(GRID)))
