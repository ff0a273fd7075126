"""Exact discrete Gaussians of small variance, by inversion: one 64-bit word a sample.

Encryption takes millions of errors of a deviation of a few units, for which rejection from a
discrete Laplace (`privacy.sampling`) reads three times as much entropy as is needed.

How it is exact: with ``F(k) = P(|X| <= k)``, the size of a sample is the least ``k`` with
``U < F(k)`` for ``U`` uniform on [0, 1), and its sign a further bit. Of ``U`` the first 63 bits
``r`` are drawn, so that ``U`` lies in ``[r, r + 1) / 2**63``. Against the integer
``t(k) = floor(2**63 F(k))``: if ``r < t(k)`` then ``U < F(k)``, and if ``r > t(k)`` then not. If
they are equal, which happens once in about ``2**57`` samples, ``U`` is extended bit by bit and
compared with directed-rounding bounds of ``F(k)``. The table ends where ``t(k)`` is ``2**63 - 1``:
sizes beyond are found in the same way. No floating-point number is involved at any place.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit

MAX_SIGMA2 = 256
_BITS, _GUIDE_BITS = 63, 8
_SHIFT = np.uint64(_BITS - _GUIDE_BITS)
_DIGITS, _TABLE = 60, 200
_EXACT = Context(4 * _DIGITS)
_ONE = np.uint64(1)


@dataclass(frozen=True, slots=True)
class InversionTable:
    """Thresholds of one variance, and where to begin to look for a word's."""

    thresholds: NDArray[np.uint64]  # t(0), t(1), ...; the last is 2**63 - 1
    guide: NDArray[np.int64]  # least size for a word by its first bits


def draw(sigma2: int, size: int, entropy: Callable[[int], bytes]) -> IntArray:
    """Draw integers with probability proportional to ``exp(-x**2 / (2 sigma2))``."""
    table = table_of(sigma2)
    words = np.frombuffer(entropy(8 * size), "<u8").astype(np.uint64, copy=False)
    out = np.empty(size, np.int64)
    first = 0
    while (first := _fill(words, table.thresholds, table.guide, out, first)) < size:
        out[first] = _settled(int(words[first]), sigma2, entropy)
        first += 1
    return out


@functools.lru_cache(maxsize=16)
def table_of(sigma2: int) -> InversionTable:
    """Return the table of a variance, in exact integers."""
    if not 1 <= sigma2 <= MAX_SIGMA2:
        raise ValueError(f"a table is for variances in 1 .. {MAX_SIGMA2}")
    found, size = list[int](), 0
    while not found or found[-1] < (1 << _BITS) - 1:
        bounds = _below(size, sigma2, _DIGITS)
        low, high = (int(_EXACT.multiply(bound, Decimal(1 << _BITS))) for bound in bounds)
        if low != high:  # never seen; 40 digits lie between
            raise ValueError("a threshold is not known exactly")
        found.append(low)
        size += 1
    starts = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << _SHIFT
    thresholds = np.array(found, np.uint64)
    return InversionTable(thresholds, np.searchsorted(thresholds, starts).astype(np.int64))


@njit
def _fill(words: Any, thresholds: Any, guide: Any, out: IntArray, first: int) -> int:
    """Fill ``out`` from ``first`` on; return the place that is not decided, or the end."""
    for i in range(first, out.size):
        r = words[i] >> _ONE
        k = guide[r >> _SHIFT]
        while r > thresholds[k]:
            k += 1
        if r == thresholds[k]:
            return i
        out[i] = -k if words[i] & _ONE else k
    return int(out.size)


def _settled(word: int, sigma2: int, entropy: Callable[[int], bytes]) -> int:
    """Return the sample of a word that lies on a threshold, by as many more bits as it takes."""
    value, bits, size = word >> 1, _BITS, 0
    while True:  # ends with probability 1: thresholds are irrational
        low, high = _below(size, sigma2, bits // 3 + _DIGITS)
        unit = Decimal(1 << bits)
        exact = Context(bits + 2 * _DIGITS)
        if exact.divide(Decimal(value + 1), unit) <= low:
            return -size if word & 1 else size
        if exact.divide(Decimal(value), unit) >= high:
            size += 1
            continue
        value, bits = value << 64 | int.from_bytes(entropy(8), "little"), bits + 64


def _below(size: int, sigma2: int, digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds of ``P(|X| <= size)``."""
    down, up = _contexts(digits)
    least, most = _weights(sigma2, digits, max(size, _TABLE))
    inner = (
        functools.reduce(down.add, least[: size + 1]),
        functools.reduce(up.add, most[: size + 1]),
    )
    outer = (
        functools.reduce(down.add, least[size + 1 :]),
        functools.reduce(up.add, most[size + 1 :]),
    )
    low = down.divide(inner[0], up.add(inner[0], outer[1]))
    high = up.divide(inner[1], down.add(inner[1], outer[0]))
    return low, high


@functools.lru_cache(maxsize=4)
def _weights(sigma2: int, digits: int, size: int) -> tuple[list[Decimal], list[Decimal]]:
    """Return bounds of the weights of sizes 0, 1, ..., and of all further ones together."""
    down, up = _contexts(digits)
    least, most = list[Decimal](), list[Decimal]()
    # Beyond, weights are below 10**-digits, and each is less than half of the one before.
    for x in range(int((2 * sigma2 * 3 * (digits + 20)) ** 0.5) + size + 2):
        times = Decimal(1 if x == 0 else 2)
        square, twice = Decimal(x * x), Decimal(2 * sigma2)
        # Decimal's exp is correctly rounded to nearest: the truth is within its neighbours.
        low = down.next_minus(down.exp(up.divide(square, twice).copy_negate()))
        high = up.next_plus(up.exp(down.divide(square, twice).copy_negate()))
        least.append(down.multiply(times, low))
        most.append(up.multiply(times, high))
    return [*least, Decimal(0)], [*most, most[-1]]


@functools.cache
def _contexts(digits: int) -> tuple[Context, Context]:
    return Context(digits + 10, ROUND_FLOOR), Context(digits + 10, ROUND_CEILING)
