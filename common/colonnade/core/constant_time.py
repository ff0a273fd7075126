"""Arithmetic that takes the same time for every value, for kernels where peers' numbers meet data.

A peer that chooses what is computed learns from how long it takes, if that depends on rows. So
these kernels have no branch, no loop length and no memory address that follows from data, and use
no instruction whose time depends on its operands: no division, no square root, no library call,
and no operand or result below ``2**-1022`` (subnormal numbers take a hundred times as long on many
processors). What they need instead is here: additions, multiplications, comparisons, bit shifts.

How to write such a kernel: choose by ``m a + (1 - m) b`` with ``m`` 0.0 or 1.0, and clip floats,
not integers, because compilers make branches of the rest. `tests/security/test_answer_times.py`
checks the optimised code, the machine code and the processor's own flags; add a new kernel there.

Accuracy: `reciprocal`, `inverse_root` and `exp_down` are within ``2**-50`` of the exact value, in
proportion; tests measure it.
"""

import math

import numpy as np

from colonnade.core.jit import njit

# What is smaller may be taken for zero: products of two such numbers are still normal.
TINY = 2.0**-200

_RECIPROCAL = np.int64(0x7FDE6238502484BA)
_ROOT = np.int64(0x5FE6EB50C7B537A9)
_LOG2_E = 1.4426950408889634
# ln 2 in two parts, the first with so few bits that its multiples up to 2**10 are exact.
_LN2_HIGH = 0.6931471804855391
_LN2_LOW = 7.440617110012397e-11
_TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
_BIAS, _FRACTION = np.int64(1023), np.int64(52)


@njit
def flush(x: float) -> float:
    """Return ``x``, or 0 if it is smaller in size than ``TINY``."""
    return x * np.float64(abs(x) >= TINY)


@njit
def reciprocal(x: float) -> float:
    """Return ``1 / x`` for ``x`` in ``2**-1000 .. 2**1000``."""
    y = np.int64(_RECIPROCAL - np.float64(x).view(np.int64)).view(np.float64)  # within an eighth
    for _ in range(5):  # each squares the error
        y = y * (2.0 - x * y)
    return y


@njit
def inverse_root(x: float) -> float:
    """Return ``1 / sqrt(x)`` for ``x`` in ``2**-1000 .. 2**1000``."""
    y = np.int64(_ROOT - (np.float64(x).view(np.int64) >> np.int64(1))).view(np.float64)
    for _ in range(4):  # from 0.0344: each squares the error and half of it again
        y = y * (1.5 - 0.5 * x * y * y)
    return y


@njit
def exp_down(x: float) -> float:
    """Return ``exp(x)`` for ``x`` in ``-700 .. 0``."""
    k = np.rint(x * _LOG2_E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW  # within half of ln 2
    total = _TAYLOR[0]
    for n in range(1, 14):  # Taylor's series by Horner's rule; what is left out is below 2**-60
        total = total * r + _TAYLOR[n]
    return total * np.int64((np.int64(np.int32(k)) + _BIAS) << _FRACTION).view(np.float64)


@njit
def floor_divide(value: np.int64, step: int, inverse: float) -> np.int64:
    """Return ``value // step`` for ``abs(value)`` up to ``2**52``; ``inverse`` is ``1 / step``."""
    whole = np.int64(np.floor(np.float64(value) * inverse))  # off by one at most
    left = value - whole * step
    return whole + np.int64(left >= step) - np.int64(left < 0)
