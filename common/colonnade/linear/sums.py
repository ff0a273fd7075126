"""Sums of columns and of their squares: what means and deviations are released from."""

import math

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.privacy.mechanisms import DiscreteGaussian

_LEAST_PART = 0.1  # of the mean variance, that a column is taken to have
_LEAST_VARIANCE = 1e-6
_SURE = 2.0  # a variance of fewer errors than this is hidden by noise
# What columns are taken to have in half ranges, where an error of all together is as large as this.
_VARIANCE, _NOISE_SCALE = 0.15, 0.05
_SHIFT = GRID.bit_length() - 1  # a division would take a time that depends on its operands


def moments_mechanism(count: int, units: int) -> DiscreteGaussian:
    """Return the noise of sums of columns and of their squares, for ``units``.

    ``count`` is the number of columns that one row can move (`methods.groups.moved_columns`).

    Privacy: one row moves a sum by ``|s - t|`` and its sum of squares, each square divided by
    ``GRID`` and rounded down, by ``|s**2 - t**2| / GRID`` up to rounding. The sum of the squares
    of the two is largest for ``s = -t = GRID``, where it is ``(2 GRID)**2``: squares come at no
    extra price. A test checks every pair of values near the maximum and a sample of all.

    Examples
    --------
    >>> moments_mechanism(3, 2**50).l2_sensitivity2 == 3 * (2 * GRID) ** 2
    True
    """
    return DiscreteGaussian.within(units, l2_sensitivity2=(2 * GRID) ** 2 * count)


def sums(column: Int16Array) -> tuple[int, int]:
    """Return the exact sum of a column and that of its squares over ``GRID``, rounded down.

    Examples
    --------
    >>> sums(np.array([GRID, -GRID, 0], np.int16)) == (0, 2 * GRID)
    True
    """
    wide = column.astype(np.int32)
    return int(wide.sum(dtype=np.int64)), int((wide * wide >> _SHIFT).sum(dtype=np.int64))


def pooled_variances(variances: FloatArray, noise: float) -> FloatArray:
    """Draw noisy variances of columns to their mean, by how much of their spread is noise.

    Whoever declares bounds tends to be as far off for one column as for another, so the mean of all
    is a better guess of one than any constant, unless it is itself all noise. The mean is raised by
    half its own error: too small a variance clips rows, too large a one only costs noise.

    Examples
    --------
    >>> pooled_variances(np.array([0.01, 0.03]), 0.0)
    array([0.01, 0.03])
    >>> pooled_variances(np.array([0.01, 0.03]), 1e3).std()
    np.float64(0.0)
    """
    drawn, middle = _drawn(variances, noise)
    return np.maximum(drawn, _LEAST_PART * middle)


def told_of_pooled(variances: FloatArray, noise: float) -> FloatArray:
    """Return what is known of deviations over what `pooled_variances` takes, and how well.

    Less than 1 for a narrow column beside much wider ones, of which the least is taken; 1 and no
    error for all others, and where noise leaves open how narrow it is. Errors are relative.

    Examples
    --------
    >>> told_of_pooled(np.array([0.01, 0.39]), 1e-4).round(3)
    array([[0.707, 1.   ],
           [0.005, 0.   ]])
    """
    drawn, middle = _drawn(variances, noise)
    least = _LEAST_PART * middle
    narrow = (drawn < least) & (drawn > _SURE * noise)
    known = np.where(narrow, drawn, least)
    return np.stack([np.sqrt(known / least), np.where(narrow, noise / (2.0 * known), 0.0)])


def _drawn(variances: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """Return variances drawn to their mean, and that mean."""
    error = noise / math.sqrt(variances.size)
    middle = max(float(variances.mean()) + error / 2.0, error, _LEAST_VARIANCE)
    known = 1.0 / (1.0 + (error / _NOISE_SCALE) ** 2)
    middle = known * middle + (1.0 - known) * _VARIANCE
    # The spread of so few numbers of pure noise errs by this part of itself: that is no signal.
    expected = noise**2 * (1.0 + math.sqrt(2.0 / variances.size))
    spread = max(float(((variances - middle) ** 2).mean()) - expected, 0.0)
    sure = spread / (spread + noise**2) if noise else 1.0
    return middle + sure * (variances - middle), middle
