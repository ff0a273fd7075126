"""How wide a party's columns are, seen through what its ball of rows leaves of them.

Where rows are few, released deviations err by a good part of themselves. A party's own Gram matrix
tells what the ball left of variances, which is less of wide columns; a made-up normal table tells
what it leaves of columns of a known width. Together they tell the width, which is taken as far as
released deviations are uncertain. A wrong width would scale every product between two parties.

Privacy: arithmetic on releases (post-processing).
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID

_DRAWS = 2**12
_STEPS, _STEP, _STILL = 30, 0.8, 1e-6
_WIDEST = 4.0
# How far, in logarithms, made-up rows may mislead: real columns are neither normal nor independent.
_MODEL_ERROR = 0.08
_SURE = 0.005
_LEAST_LEVEL, _MOST_LEVEL = 0.25, 1.5


@dataclass(frozen=True, slots=True)
class Spread:
    """Widths in released deviations, and what the ball leaves of variances."""

    features: float
    level: float
    label: float = 1.0
    label_level: float = 1.0


def spread_of(
    variances: FloatArray, ball: float, *, uncertain: float, label: tuple[float, float, float]
) -> Spread:
    """Return the spread of a party's columns.

    ``variances`` are the features', of rows in a ball of radius ``ball``; ``uncertain`` is the
    error of the logarithm of their deviations. ``label`` has the same of a label, which is the
    last column: its weight (0 for none), the variance of the weighted column, and its error.
    """
    seen, count = max(float(variances.mean()), 1e-3), variances.size
    weight, seen_label, uncertain_label = label
    seen_label = max(seen_label, 1e-3)
    wide = wide_label = 1.0
    # Widths that means tell well are left as they are, without a look at the ball.
    for _ in range(_STEPS if max(uncertain, uncertain_label) > _SURE else 0):
        left, left_label = _left(count, wide / ball, weight * wide_label / ball)
        before = wide, wide_label
        wide = _within(wide * (seen / (ball**2 * left)) ** _STEP)
        if weight:
            wide_label = _within(wide_label * (seen_label / (ball**2 * left_label)) ** _STEP)
        if math.dist(before, (wide, wide_label)) < _STILL:
            break
    wide, wide_label = _believed(wide, uncertain), _believed(wide_label, uncertain_label)
    level = _level(seen / wide**2)
    if not weight:
        return Spread(wide, level)
    return Spread(wide, level, wide_label, _level(seen_label / (weight * wide_label) ** 2))


def uncertain(noise: float, deviations: FloatArray) -> float:
    """Return the error of the logarithm of deviations that are drawn to each other.

    ``noise`` is the deviation of a released mean square, in half ranges.
    """
    return noise / math.sqrt(deviations.size) / (2.0 * float(np.mean(deviations**2)))


def mean_noise(sigma2: int, rows: float) -> float:
    """Return the deviation of the noise of a released mean or mean square, in half ranges."""
    return math.sqrt(sigma2) / (rows * GRID)


def _left(count: int, wide: float, label: float) -> tuple[float, float]:
    """Return the mean squares of made-up features and label in the unit ball."""
    squares = _squares(count + 1)
    weights = np.full(count + 1, wide**2)
    weights[-1] = label**2
    kept = (squares / np.maximum(squares @ weights, 1.0)[:, None]).mean(axis=0) * weights
    return float(kept[:-1].mean()), float(kept[-1])


@functools.lru_cache(maxsize=16)
def _squares(count: int) -> FloatArray:
    made = np.random.Generator(np.random.PCG64(0)).standard_normal((_DRAWS, count))
    return made**2


def _within(wide: float) -> float:
    return min(max(wide, 1.0 / _WIDEST), _WIDEST)


def _believed(wide: float, uncertain: float) -> float:
    """Draw a width to 1 by how sure released deviations are: less, if these are too large."""
    error = uncertain / min(wide, 1.0) ** 2
    return float(wide ** (error**2 / (error**2 + _MODEL_ERROR**2)))


def _level(level: float) -> float:
    return min(max(level, _LEAST_LEVEL), _MOST_LEVEL)
