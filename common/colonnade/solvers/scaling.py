"""Bounds and labels as solvers take them."""

from collections.abc import Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise


def symmetric(bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """Widen bounds to be symmetric about zero, so that zero stays zero.

    Examples
    --------
    >>> symmetric([Bounds(0.0, 5.0)])
    (Bounds(low=-5.0, high=5.0),)
    """
    ends = [max(abs(bound.low), abs(bound.high)) for bound in bounds]
    return tuple(Bounds(-end, end) for end in ends)


def scaled_label(y: FloatArray, bounds: Bounds) -> FloatArray:
    """Clip and round a label under its bounds; return it scaled to ``[-1, 1]``.

    Examples
    --------
    >>> scaled_label(np.array([0.0, 5.0, 99.0]), Bounds(0.0, 10.0))
    array([-1.,  0.,  1.])
    """
    return quantise(y, bounds, grid=GRID).astype(np.float64) / GRID
