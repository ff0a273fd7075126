"""Rows of a sealed exchange: in a ball, summed into public buckets, in few integer steps.

A row first goes through `linear.ball.project`, whatever the coordinator's map, so it lies in the
ball of radius ``BALL``. Above ``buckets`` rows, row ``r`` is added to bucket ``r mod buckets`` with
a public sign. Each bucket is then scaled into a ball of radius ``ball`` and rounded to steps, of
which ``radius`` make that radius.

Privacy: with ``v`` a bucket's integers, ``N`` the least integer that is neither below ``|v|`` nor
below ``ball``, and ``p`` columns, the result is ``h = round(v radius / N)``, to nearest. Two bounds
follow for every table, every map and every sign.

Norm: ``|v| <= N``, and rounding adds at most ``sqrt(p) / 2``, so ``|h| <= radius + sqrt(p) / 2``;
``radius2`` is the largest integer square within it.

Move: a replaced row moves one bucket, by at most ``2 BALL``. In real numbers scaling into a ball is
the projection onto a convex set, which moves points no further apart; in steps that is
``c = radius / ball`` for each unit. ``N`` is less than 1 above ``|v|`` where it is not ``ball``,
which moves the result by at most ``radius / N <= c``, rounding by ``sqrt(p) / 2``; both twice. So
``|h - h'| <= c (2 BALL + 2) + sqrt(p)``, and never more than twice the norm's bound: ``move2``.

A shield's noise is added to buckets before they are scaled, and is the same for both tables: it
moves nothing, and both bounds hold as they are.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.constant_time import inverse_root, reciprocal
from colonnade.core.jit import njit
from colonnade.linear.ball import BALL
from colonnade.methods.sealed.ring import MAX_SMALL

# A bucket's norm is below this, so that its square is below 2**62.
MAX_BUCKET_NORM = 1 << 31
_UP = 1.0 + 2.0**-48
_ROOT_BITS = 20


@dataclass(frozen=True, slots=True)
class RowScale:
    """How a party's rows become steps: public integers, from which both bounds follow."""

    n_rows: int
    buckets: int
    columns: int
    ball: int  # radius of a bucket's ball, in units of a row's
    radius: int  # the same in steps
    noise: int = 0  # norm of a shield's noise on a bucket, at most

    def __post_init__(self) -> None:
        if min(self.n_rows, self.buckets, self.columns, self.ball, self.radius) < 1:
            raise ValueError("a row's scale is made of positive integers")
        if self.radius2 >= MAX_SMALL**2:
            raise ValueError(f"a row has fewer than {MAX_SMALL} steps")
        if not self.summed and not self.noise and self.ball != BALL:
            raise ValueError("rows that are not summed keep their ball")
        if -(-self.n_rows // self.buckets) * BALL + self.noise >= MAX_BUCKET_NORM:
            raise ValueError("too many rows would be summed into a bucket; use more buckets")

    @property
    def summed(self) -> bool:
        """Whether several rows share a bucket."""
        return self.n_rows > self.buckets

    @property
    def rows(self) -> int:
        """Rows that are sealed or multiplied."""
        return min(self.n_rows, self.buckets)

    @property
    def radius2(self) -> int:
        """Largest squared norm of a row in steps: ``floor((radius + sqrt(columns) / 2)**2)``."""
        mixed = math.isqrt(16 * self.radius**2 * self.columns)
        return (4 * self.radius**2 + self.columns + mixed) // 4

    @property
    def move2(self) -> int:
        """Largest squared distance by which a replaced row moves a row in steps."""
        root = Fraction(math.isqrt(self.columns << 2 * _ROOT_BITS) + 1, 1 << _ROOT_BITS)
        moved = Fraction(self.radius * (2 * BALL + 2), self.ball) + root
        return min(math.ceil(moved**2), 4 * self.radius2)

    def sums(self, rows: Int16Array, seed: bytes) -> IntArray:
        """Return ``(columns, n_rows)`` rows within ``BALL`` as sums of buckets."""
        if rows.shape != (self.columns, self.n_rows):
            raise ValueError("rows have another shape than their scale")
        return self._summed(rows, seed) if self.summed else rows.astype(np.int64)

    def steps(self, rows: Int16Array, seed: bytes) -> IntArray:
        """Return ``(columns, n_rows)`` rows within ``BALL`` as ``(columns, self.rows)`` steps."""
        return self.scaled(self.sums(rows, seed))

    def scaled(self, sums: IntArray) -> IntArray:
        """Return buckets, ``(columns, self.rows)``, as steps."""
        out = np.empty(sums.shape, np.int64)
        _into_steps(sums, self.ball, self.radius, self.radius2, out)
        return out

    def _summed(self, rows: Int16Array, seed: bytes) -> IntArray:
        sums = np.zeros((self.columns, self.buckets), np.int64)
        signed = signs(seed, self.n_rows)
        for first in range(0, self.n_rows, self.buckets):
            part = slice(first, min(first + self.buckets, self.n_rows))
            sums[:, : part.stop - first] += rows[:, part].astype(np.int64) * signed[part]
        return sums


def signs(seed: bytes, count: int) -> IntArray:
    """Return public signs, the same for all parties: SHAKE-256 of the job's seed, a bit each."""
    digest = hashlib.shake_256(b"colonnade sealed signs\0" + seed).digest(-(-count // 8))
    bits = np.unpackbits(np.frombuffer(digest, np.uint8), count=count, bitorder="little")
    return 1 - 2 * bits.astype(np.int64)


@njit
def _into_steps(sums: IntArray, ball: int, radius: int, radius2: int, out: IntArray) -> None:
    """Scale each bucket into the ball and round to steps; the same operations for every bucket."""
    for i in range(sums.shape[1]):
        norm2 = np.int64(0)
        for j in range(sums.shape[0]):
            norm2 += sums[j, i] * sums[j, i]
        length = _length(norm2, ball)
        inverse = reciprocal(np.float64(length))
        reached = np.int64(0)
        for j in range(sums.shape[0]):
            step = _rounded(sums[j, i] * np.int64(radius), length, inverse)
            out[j, i] = step
            reached += step * step
        # Privacy: the norm is checked in integers; were it too large, the row would be 0.
        kept = np.float64(reached <= radius2) * np.float64(norm2 <= length * length)
        for j in range(sums.shape[0]):
            out[j, i] = np.int64(np.float64(out[j, i]) * kept)  # floats: no branch is made of it


@njit
def _length(norm2: np.int64, ball: int) -> np.int64:
    """Return the least integer that is neither below the root of ``norm2`` nor below ``ball``."""
    square = max(np.float64(norm2), 1.0)
    root = np.int64(square * inverse_root(square) * _UP)
    root = root - np.int64(root * root > norm2)  # the integer below the root
    above = root + np.int64(root * root < norm2)
    return np.int64(max(np.float64(above), np.float64(ball)))


@njit
def _rounded(dividend: np.int64, length: np.int64, inverse: float) -> np.int64:
    """Return the integer nearest to ``dividend / length``, checked in integers."""
    near = np.int64(np.rint(np.float64(dividend) * inverse))  # off by one at most
    left = np.int64(2) * (dividend - near * length)
    return near + np.int64(left > length) - np.int64(left < -length)
