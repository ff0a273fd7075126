"""Values as integers on a public grid.

A feature has public bounds ``[low, high]``. Its values are clipped, centred on the middle, scaled
to ``[-1, 1]`` and rounded to a grid, so that sums are exact and one row can move a column by at
most ``2 * grid``: that constant is the sensitivity every mechanism is calibrated to.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray

GRID = 2**14
"""Grid of the working columns, stored as ``int16``."""

FINE_GRID = 2**30
"""Grid of the copy kept for quantising again under tighter bounds, stored as ``int32``."""

# Far from the ends of the floats: what `data.requantise` computes with any two bounds is never
# subnormal, which would take longer than other numbers do.
_MAX_END, _LEAST_END, _LEAST_WIDTH = 1e120, 1e-120, 1e-90


@dataclass(frozen=True, slots=True)
class Bounds:
    """Hold the declared public range of a value."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError("bounds must be finite")
        for end in (self.low, self.high):
            if end != 0.0 and not _LEAST_END <= abs(end) <= _MAX_END:
                raise ValueError("bounds must be 0 or lie between 1e-120 and 1e120 in size")
        if not self.low < self.high:
            raise ValueError("low must be less than high")
        if not self.half_width >= _LEAST_WIDTH:
            raise ValueError("bounds must lie at least 2e-90 apart")

    @property
    def middle(self) -> float:
        """Centre of the range."""
        return self.low / 2.0 + self.high / 2.0

    @property
    def half_width(self) -> float:
        """Distance from the centre to either end."""
        return self.high / 2.0 - self.low / 2.0


def grid_dtype(grid: int) -> np.dtype[np.signedinteger]:
    """Return the little-endian integer type that stores ``grid``."""
    if grid == GRID:
        return np.dtype("<i2")
    if grid == FINE_GRID:
        return np.dtype("<i4")
    raise ValueError(f"grid must be {GRID} or {FINE_GRID}")


def scaled(values: FloatArray, bounds: Bounds) -> FloatArray:
    """Clip ``values`` to ``bounds``, centre them on the middle and scale them to ``[-1, 1]``.

    NaN stays NaN. What is fitted sees these values on a grid, and so do predictions.
    """
    found = np.clip(np.asarray(values, dtype=np.float64), bounds.low, bounds.high)
    found -= bounds.middle
    found /= bounds.half_width
    # The middle and the half width are rounded, so a clipped value can still pass +-1 a little.
    return np.clip(found, -1.0, 1.0, out=found)


def quantise(values: FloatArray, bounds: Bounds, *, grid: int) -> AnyArray:
    """Clip ``values`` to ``bounds`` and round them to integers in ``[-grid, grid]``.

    Privacy: the result is within ``+-grid`` for every float, infinities included, and each entry
    depends on its own value and public bounds only, so one row moves one entry by ``2 * grid``.

    Parameters
    ----------
    values
        Any floats except NaN, which the caller has replaced by a fill. Left unchanged.
    grid
        ``GRID`` (the result is ``int16``) or ``FINE_GRID`` (``int32``).
    """
    (found,) = quantise_on(values, bounds, grids=(grid,))
    return found


def quantise_on(values: FloatArray, bounds: Bounds, *, grids: Sequence[int]) -> list[AnyArray]:
    """Do as `quantise` for several grids, with one pass for what they have in common."""
    dtypes = [grid_dtype(grid) for grid in grids]
    found = scaled(values, bounds)
    if np.isnan(found).any():
        raise ValueError("replace missing values before quantising")
    made = []
    for grid, dtype in zip(grids, dtypes, strict=True):
        steps = found * grid
        made.append(np.rint(steps, out=steps).astype(dtype))
    return made


def dequantise(values: AnyArray, bounds: Bounds, *, grid: int) -> FloatArray:
    """Return the floats within ``bounds`` that the integers ``values`` stand for."""
    found = values.astype(np.float64)
    found /= grid
    found *= bounds.half_width
    found += bounds.middle
    return np.clip(found, bounds.low, bounds.high, out=found)
