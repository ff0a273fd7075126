"""Exact integer noise from operating-system entropy.

Privacy: the samplers below have exactly the distributions they claim. They follow Canonne, Kamath
and Steinke (2020, Algorithms 1 to 3): a discrete Laplace sample, accepted with a probability that
turns it into a discrete Gaussian one. Their only random primitive beside uniform bits is a coin
that shows heads with probability ``exp(-x)``, ``x`` rational.

How a coin is exact and fast: heads is the event ``U < exp(-x)`` for ``U`` uniform on [0, 1), of
which 32 bits ``r`` are drawn first, so that ``U`` lies in ``[r, r + 1) / 2**32``. The compiled
sampler compares ``r`` with a double approximation ``s`` of ``2**32 exp(-x)``. The error of ``s``
is below ``2**-42 s`` whenever ``s`` is above ``2**-31`` (a handful of roundings, an absolute error
of ``x`` below ``2**-43``, and ``exp`` good to ``2**-45``, which the tests check against decimal
arithmetic); the tolerance is ``2**-38``. If ``[r, r + 1)`` lies clear of ``s`` by the tolerance
the coin is decided, and rightly. Otherwise (once in about four thousand million coins) the whole
sample is replayed from the same bits by the plain-Python twin, which compares exactly, extending
``U`` bit by bit against directed-rounding bounds of ``exp(-x)``. So the result is a function of
uniform bits that never depends on a rounding error, and no floating-point number leaves here.

Nothing here can be seeded. Every call reads its own entropy with ``os.urandom`` and drops what it
did not use: there is no pool that a fork or a restored machine image could repeat.
"""

import math
import os
import secrets
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit
from colonnade.privacy import narrow_gaussian

Words = NDArray[np.uint32]

# Scales end here so that a sample above 2**62 has probability below exp(-256).
MAX_LOG2_SCALE = 54
_TOLERANCE = 2.0**-38
_WORD = 4294967296.0
# So many narrow samples are worth a table.
_MANY = 1024
_MADE, _OUT_OF_WORDS, _UNDECIDED = 0, 1, 2
# floor(2**32 exp(-k)) for k = 1 .. 23: the geometric count reads all its coins from one word.
_POWERS = np.array([math.floor(2**32 * math.exp(-k)) for k in range(1, 24)], np.uint32)


class NoiseSource(Protocol):
    """Where a mechanism takes its randomness from."""

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        """Draw integers with probability proportional to ``exp(-x**2 / (2 sigma2))``."""

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        """Draw integers with probability proportional to ``exp(-|x| / scale)``."""

    def below(self, bound: int) -> int:
        """Draw a uniform integer in ``0 .. bound - 1``."""


@njit
def _coin(word: np.uint32, x: float) -> int:
    """Decide ``U < exp(-x)`` from the first 32 bits of ``U``: 1 yes, 0 no, 2 not decided."""
    s = _WORD * math.exp(-x)
    r = float(word)
    if r + 1.0 <= s * (1.0 - _TOLERANCE):
        return 1
    if r > s * (1.0 + _TOLERANCE):
        return 0
    return _UNDECIDED


@njit
def _laplace(words: Words, at: int, scale: int, bits: int) -> tuple[int, bool, Any, int]:
    """Draw a sign and a magnitude; return ``(status, negative, magnitude, next word)``."""
    wide = 2 if bits > 31 else 1
    mask = (np.int64(1) << np.int64(bits)) - np.int64(1)
    while at + wide + 2 <= words.size:
        u = np.int64(words[at])
        top = words[at + wide - 1]  # its highest bit is the sign; u never reaches it
        if wide == 2:
            u |= np.int64(top) << np.int64(32)
        u &= mask
        at += wide
        if u >= scale:
            continue  # uniform below a scale that is no power of two
        if u > 0:
            heads = _coin(words[at], float(u) / float(scale))
            at += 1
            if heads == _UNDECIDED:
                return _UNDECIDED, False, 0, at
            if heads == 0:
                continue
        r = words[at]
        at += 1
        v = 0
        while r < _POWERS[v]:  # ends: the last power is 0
            v += 1
        if r == _POWERS[v]:  # U may lie on either side of exp(-v - 1)
            return _UNDECIDED, False, 0, at
        return _MADE, (top >> np.uint32(31)) == 1, u + scale * np.int64(v), at
    return _OUT_OF_WORDS, False, 0, at


@njit
def _fill(
    out: IntArray, done: int, words: Words, at: int, scale: int, bits: int, sigma2: float
) -> tuple[int, int, int]:
    """Fill ``out`` from ``done`` on, in place; return ``(status, samples done, next word)``.

    With ``sigma2`` 0 the samples are Laplace, else Gaussian. When it stops early the next word is
    the first one of the sample that was not finished, so that it can be replayed.
    """
    sigma = math.sqrt(sigma2)
    peak = sigma2 / float(scale)
    while done < out.size:
        begin = at
        status, negative, y, at = _laplace(words, at, scale, bits)
        while status == _MADE:
            if negative and y == 0:  # zero would count twice
                keep = 0
            elif sigma2 == 0.0:
                keep = 1
            elif at < words.size:
                z = (float(y) - peak) / sigma
                keep = _coin(words[at], 0.5 * z * z)
                at += 1
            else:
                status = _OUT_OF_WORDS
                break
            if keep == 1:
                out[done] = -y if negative else y
                done += 1
                break
            if keep == _UNDECIDED:
                status = _UNDECIDED
                break
            status, negative, y, at = _laplace(words, at, scale, bits)
        if status != _MADE:
            return status, done, begin
    return _MADE, done, at


class _Uniform:
    """A uniform number on [0, 1) whose bits are drawn as far as they are needed."""

    def __init__(self, word: int, entropy: Callable[[int], bytes]) -> None:
        self._value, self._bits, self._entropy = word, 32, entropy

    def below_exp(self, numerator: int, denominator: int) -> bool:
        """Decide ``U < exp(-numerator / denominator)`` exactly."""
        if numerator == 0:
            return True
        n, d = Decimal(numerator), Decimal(denominator)
        while True:  # ends with probability 1: the border is irrational
            digits = self._bits // 3 + 20
            down, up = Context(digits, ROUND_FLOOR), Context(digits, ROUND_CEILING)
            # Decimal's exp is correctly rounded to nearest: the truth is within its neighbours.
            # (A unary minus would round to the default context.)
            least = down.next_minus(down.exp(up.divide(n, d).copy_negate()))
            most = up.next_plus(up.exp(down.divide(n, d).copy_negate()))
            unit = Decimal(1 << self._bits)
            if up.divide(Decimal(self._value + 1), unit) <= least:
                return True
            if down.divide(Decimal(self._value), unit) >= most:
                return False
            self._value = self._value << 64 | int.from_bytes(self._entropy(8), "little")
            self._bits += 64


def _replay(
    words: Words, at: int, entropy: Callable[[int], bytes], *, scale: int, sigma2: int
) -> tuple[int, int]:
    """Draw one sample with every coin decided exactly; return it and the next word.

    This is the twin of `_fill`, word for word; it reads fresh entropy where the words end.
    """
    bits = (scale - 1).bit_length()

    def word() -> int:
        nonlocal at
        at += 1
        return int(words[at - 1]) if at <= words.size else int.from_bytes(entropy(4), "little")

    def uniform() -> _Uniform:
        return _Uniform(word(), entropy)

    while True:
        low = word()
        top = word() if bits > 31 else low
        u = (low | top << 32 if bits > 31 else low) & ((1 << bits) - 1)
        if u >= scale or (u > 0 and not uniform().below_exp(u, scale)):
            continue
        tail, v = uniform(), 0
        while tail.below_exp(v + 1, 1):
            v += 1
        y, negative = u + scale * v, top >> 31 == 1
        if negative and y == 0:
            continue
        if sigma2 == 0 or uniform().below_exp((y * scale - sigma2) ** 2, 2 * sigma2 * scale**2):
            return (-y if negative else y), min(at, words.size)


def _draw(size: int, entropy: Callable[[int], bytes], *, scale: int, sigma2: int) -> IntArray:
    if size < 0:
        raise ValueError("size must not be negative")
    if not 1 <= scale <= 2**MAX_LOG2_SCALE:
        raise ValueError(f"the noise scale must lie in 1 .. 2**{MAX_LOG2_SCALE}")
    out = np.empty(size, np.int64)
    bits = (scale - 1).bit_length()
    words, at, done, status = np.empty(0, np.uint32), 0, 0, _OUT_OF_WORDS
    while done < size:
        if status == _OUT_OF_WORDS:
            # A sample takes some seven words. Entropy costs more than the arithmetic, so little
            # is left over; what is missing is asked for again.
            fresh = np.frombuffer(entropy(4 * (7 * (size - done) + 64)), np.uint32)
            words, at = (np.concatenate([words[at:], fresh]) if words.size else fresh), 0
        elif status == _UNDECIDED:
            out[done], at = _replay(words, at, entropy, scale=scale, sigma2=sigma2)
            done += 1
        status, done, at = _fill(out, done, words, at, scale, bits, float(sigma2))
    return out


def gaussians(sigma2: int, size: int, entropy: Callable[[int], bytes]) -> IntArray:
    """Draw exact discrete Gaussians; a large number of narrow ones by `narrow_gaussian`."""
    if size >= _MANY and 1 <= sigma2 <= narrow_gaussian.MAX_SIGMA2:
        return narrow_gaussian.draw(sigma2, size, entropy)
    return _draw(size, entropy, scale=_gaussian_scale(sigma2), sigma2=sigma2)


class OsNoise:
    """Exact noise from operating-system entropy: the only source a real ledger accepts."""

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        """Draw integers with probability proportional to ``exp(-x**2 / (2 sigma2))``."""
        return gaussians(sigma2, size, os.urandom)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        """Draw integers with probability proportional to ``exp(-|x| / scale)``."""
        return _draw(size, os.urandom, scale=scale, sigma2=0)

    def below(self, bound: int) -> int:
        """Draw a uniform integer in ``0 .. bound - 1``."""
        return secrets.randbelow(bound)


def _gaussian_scale(sigma2: int) -> int:
    """Return the power of two in about [0.8, 1.6) sigma: any scale is exact, this one is quick."""
    if sigma2 < 1:
        raise ValueError("sigma2 must be a positive integer")
    return 1 << (-(-4 * math.isqrt(sigma2) // 5) - 1).bit_length()
