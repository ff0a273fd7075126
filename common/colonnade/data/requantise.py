"""Quantise numbers on both grids at once, and the fine copy again under the bounds of a job."""

import math
from typing import NamedTuple

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, Int32Array
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


class Both(NamedTuple):
    """Values on both grids, and how many were missing and out of bounds."""

    coarse: Int16Array
    fine: Int32Array
    missing: int
    clipped: int


def quantise_both(values: FloatArray, bounds: Bounds, *, fill: float) -> Both:
    """Do as `core.fixedpoint.quantise` on both grids, in one pass; NaN becomes ``fill``."""
    if math.isnan(fill):
        raise ValueError("replace missing values before quantising")
    coarse, fine = np.empty(values.size, np.int16), np.empty(values.size, np.int32)
    low, high, middle, half_width = bounds.low, bounds.high, bounds.middle, bounds.half_width
    return Both(coarse, fine, *_quantise(values, fill, low, high, middle, half_width, coarse, fine))


@njit
def _quantise(
    values: FloatArray,
    fill: float,
    low: float,
    high: float,
    middle: float,
    half_width: float,
    coarse: Int16Array,
    fine: Int32Array,
) -> tuple[int, int]:
    missing, clipped = 0, 0
    for i in range(values.size):
        value = values[i]
        is_missing = value != value  # NaN alone
        missing += is_missing
        clipped += (value < low) | (value > high)
        value = fill if is_missing else value
        # A division that checks for zero would be done one value at a time.
        value = np.true_divide(min(max(value, low), high) - middle, half_width)
        value = min(max(value, -1.0), 1.0)
        coarse[i] = np.int16(np.rint(value * float(GRID)))
        fine[i] = np.int32(np.rint(value * float(FINE_GRID)))
    return missing, clipped


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
