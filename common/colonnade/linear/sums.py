"""Sums of columns and of their squares: what means and deviations are released from."""

import numpy as np

from colonnade.core.arrays import Int16Array
from colonnade.core.fixedpoint import GRID
from colonnade.privacy.mechanisms import DiscreteGaussian

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
