"""Released means and deviations of columns, and the columns that are made with them.

A party opens a job with the sum of every column and the sum of its squares. From these, which are
public once released, follow the intercept, the scale of the residual and how tightly a column is
clipped before it is shared: a clipped column has more signal for the same sensitivity.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.core.jit import njit
from colonnade.linear.sums import pooled_variances, told_of_pooled
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.packing import ShareCode

# What is assumed of a column in half ranges, where its released moments are mostly noise: how far
# its mean lies from the middle (a variance), its own variance, and the least deviation.
_MEAN_VARIANCE = 0.1
_VARIANCE = 0.15
_NOISE_SCALE = 0.05
_LEAST_DEVIATION = 0.05
# The same for columns that are seen together: rare levels have means near the ends.
_WIDE_MEAN_VARIANCE = 0.5
_LEAST_POOLED = 0.005


@dataclass(frozen=True, slots=True)
class ColumnMoments:
    """Means and standard deviations of columns, in half ranges."""

    mean: FloatArray
    deviation: FloatArray


def moments_code(count: int, n_rows: int, mechanism: DiscreteGaussian) -> ShareCode:
    """Return the code of the sums of ``count`` columns and of their squares."""
    return ShareCode.bounded(2 * count, n_rows * GRID, mechanism)


def moments_of(noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian) -> ColumnMoments:
    """Estimate means and deviations from released sums, shrunk where they are mostly noise."""
    found = noisy.astype(np.float64) / (n_rows * GRID)
    count = found.size // 2
    noise2 = mechanism.sigma2 / (n_rows * GRID) ** 2
    mean = np.clip(found[:count], -1.0, 1.0) / (1.0 + noise2 / _MEAN_VARIANCE)
    sure = 1.0 / (1.0 + noise2 / _NOISE_SCALE**2)
    variance = np.clip(found[count:] - mean**2, 0.0, 1.0) * sure + _VARIANCE * (1.0 - sure)
    return ColumnMoments(mean, np.maximum(np.sqrt(variance), _LEAST_DEVIATION))


@dataclass(frozen=True, slots=True)
class MeanSquare:
    """What one party released of a column: its mean, its mean square, and their noise variance."""

    mean: float
    square: float
    noise2: float

    @classmethod
    def of(
        cls, noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian, *, place: int
    ) -> "MeanSquare":
        """Read those of one column from released sums."""
        found, rows = noisy.astype(np.float64) / (n_rows * GRID), (n_rows * GRID) ** 2
        second = found.size // 2 + place
        return cls(float(found[place]), float(found[second]), mechanism.sigma2 / rows)


def label_moments(seen: Sequence[MeanSquare]) -> tuple[float, float]:
    """Return mean and deviation of a label from what all its holders released, each with noise.

    Nobody: a label in the middle, as wide as its bounds.
    """
    if not seen:
        return 0.0, 1.0
    weights = np.array([1.0 / each.noise2 for each in seen])
    weights /= weights.sum()
    noise2 = float(weights**2 @ np.array([each.noise2 for each in seen]))
    mean = float(weights @ np.array([each.mean for each in seen]))
    square = float(weights @ np.array([each.square for each in seen]))
    mean = min(max(mean, -1.0), 1.0) / (1.0 + noise2 / _MEAN_VARIANCE)
    sure = 1.0 / (1.0 + noise2 / _NOISE_SCALE**2)
    variance = min(max(square - mean**2, 0.0), 1.0) * sure + _VARIANCE * (1.0 - sure)
    return mean, max(math.sqrt(variance), _LEAST_DEVIATION)


def pooled_moments(
    noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian, *, count: int
) -> ColumnMoments:
    """Estimate those of the first ``count`` columns, with deviations drawn to each other's."""
    mean, variances, noise = _wide_moments(noisy, n_rows, mechanism, count)
    variance = pooled_variances(variances, noise)
    return ColumnMoments(mean, np.sqrt(np.clip(variance, _LEAST_POOLED**2, 1.0)))


def told_of_deviations(
    noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian, *, count: int
) -> FloatArray:
    """Return the deviations that are known of columns over those of `pooled_moments`; errors.

    A coefficient for one of the latter, times this, is one for a deviation of the column.
    """
    _, variances, noise = _wide_moments(noisy, n_rows, mechanism, count)
    return told_of_pooled(variances, noise)


def _wide_moments(
    noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian, count: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return the first columns' means, drawn to the middle, their variances, and the noise."""
    found = noisy.astype(np.float64) / (n_rows * GRID)
    noise2 = mechanism.sigma2 / (n_rows * GRID) ** 2
    mean = np.clip(found[:count], -1.0, 1.0) / (1.0 + noise2 / _WIDE_MEAN_VARIANCE)
    first = found.size // 2
    return mean, found[first : first + count] - mean**2, math.sqrt(noise2)


def shared_column(column: Int16Array, mean: float, deviation: float, clip: float) -> Int16Array:
    """Centre a column, scale it to ``clip`` deviations and clip it to the grid.

    Privacy: row-local with public numbers, and within the grid: the sensitivity of a sketch of it
    is that of a sketch of any column. Its time does not depend on the rows (`core.constant_time`).
    """
    shared = np.empty(column.size, np.int16)
    _share(column, mean * GRID, 1.0 / (clip * deviation), shared)
    return shared


@njit
def _share(column: Int16Array, centre: float, scale: float, out: Int16Array) -> None:
    for i in range(column.size):
        moved = np.rint((float(column[i]) - centre) * scale)
        out[i] = np.int16(min(max(moved, -float(GRID)), float(GRID)))


def clipped_normal(clip: float) -> tuple[float, float]:
    """Return variance of ``u = clip(z / c, +-1)`` for normal ``z``, and its covariance with z."""
    within = math.erf(clip / math.sqrt(2.0))
    energy = within - clip * math.sqrt(2.0 / math.pi) * math.exp(-(clip**2) / 2.0)
    return (energy + clip**2 * (1.0 - within)) / clip**2, within / clip
