"""From real numbers to the integer grid, and exact norms there, without branches on data."""

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.constant_time import TINY, flush, inverse_root
from colonnade.core.jit import njit

_LOW_HALF = 0xFFFFFFFF
# More than the rounding errors of a norm of 2**16 numbers and of a factor.
_UP, _DOWN = 1.0 + 2.0**-50, 1.0 - 2.0**-34
# Nothing larger is told apart: its square is still far from the largest float.
_FAR = 2.0**400


@njit
def to_grid(values: FloatArray, radius: int, out: IntArray) -> None:
    """Write ``values`` clipped to norm ``radius`` and rounded towards zero into ``out``.

    Privacy: on return the sum of the squares of ``out`` is at most ``radius**2``, for every input
    including infinities and NaN (which give zeros). That is checked in exact integers: if the
    factor that is exact up to a rounding error gives more, one that is smaller by ``2**-34`` is
    used, and if that gave more, which no rounding error can make it, ``out`` would be zeros.
    Squares are below ``2**61`` because every coordinate is within ``+-radius``, and are added in
    two halves so that no sum overflows.
    """
    finite, norm2 = 1.0, 0.0
    for j in range(values.size):
        finite *= np.float64(abs(values[j]) < np.inf)
        value = flush(within(values[j], _FAR))
        norm2 += value * value
    shrink = float(radius) * inverse_root(max(norm2, TINY))
    exact, safe = finite * min(1.0, shrink * _UP), finite * min(1.0, shrink * _DOWN)
    _round(values, exact, radius, out)
    beyond = np.float64(exceeds(out, radius))
    _round(values, (1.0 - beyond) * exact + beyond * safe, radius, out)
    kept = 1.0 - np.float64(exceeds(out, radius))
    for j in range(out.size):
        out[j] = np.int64(float(out[j]) * kept)


@njit
def within(x: float, bound: float) -> float:
    """Return ``x`` clipped to ``+-bound``, and ``bound`` for NaN."""
    x = min(bound, x)
    return max(-bound, x)


@njit
def _round(values: FloatArray, factor: float, radius: int, out: IntArray) -> None:
    """Write the multiples of ``values``, clipped and rounded towards zero, into ``out``."""
    for j in range(values.size):
        value = flush(within(values[j], _FAR)) * factor
        out[j] = np.int64(within(value, float(radius)))


@njit
def exceeds(vector: IntArray, radius: int) -> np.int64:
    """Return 1 if ``|vector| > radius``, exactly, else 0; entries must lie within ``+-2**31``."""
    high, low = np.int64(0), np.int64(0)
    for j in range(vector.size):
        square = vector[j] * vector[j]
        high += square >> 32
        low += square & _LOW_HALF
    high += low >> 32
    low &= _LOW_HALF
    limit = np.int64(radius) * np.int64(radius)
    above, level = high > limit >> 32, high == limit >> 32
    return np.int64(above) | (np.int64(level) & np.int64(low > limit & _LOW_HALF))
