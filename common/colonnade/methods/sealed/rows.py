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

With a shield (`RowScale.shield`), noise is added to buckets before they are scaled, and each number
is rounded to units of ``SHIELD_UNIT`` and clipped. For the same noise two tables stay as far apart;
rounding moves each of ``p`` numbers by at most half a unit, in both tables, and clipping brings
them no further apart. So ``2 BALL`` becomes ``2 BALL + SHIELD_UNIT sqrt(p)`` in the bound on moves;
the bound on norms holds as it is.

The integers of a `RowScale` carry the bounds, whatever the numbers of a `RowShape` are: a party
computes both from the specification, clips its rows by them and is charged for them.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.constant_time import inverse_root, reciprocal
from colonnade.core.jit import njit
from colonnade.linear.ball import BALL
from colonnade.methods.sealed.ring import MAX_SMALL

# Shielded buckets are stored in two bytes, in units of so many steps of the ball.
SHIELD_UNIT = 16
MAX_NOISE = SHIELD_UNIT << 15
# A sum of products of two columns with correlation 1 and deviation 1 reaches this: 0.7 of what the
# narrower field holds, so that a label's weight and noise fit beside it.
_FIELD_REACH = 2.0**22.5
_MAX_RADIUS = 400
# A bucket's norm is below this, so that its square is below 2**62.
MAX_BUCKET_NORM = 1 << 31
_UP = 1.0 + 2.0**-48
_ROOT_BITS = 20
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class RowScale:
    """How a party's rows become steps: public integers, from which both bounds follow."""

    n_rows: int
    buckets: int
    columns: int
    ball: int  # radius of a bucket's ball, in units of a row's
    radius: int  # the same in steps
    shield: bool = False  # whether buckets carry a shield's noise, rounded to its units

    def __post_init__(self) -> None:
        if min(self.n_rows, self.buckets, self.columns, self.ball, self.radius) < 1:
            raise ValueError("a row's scale is made of positive integers")
        if self.radius2 >= MAX_SMALL**2:
            raise ValueError(f"a row has fewer than {MAX_SMALL} steps")
        if not self.summed and not self.shield and self.ball != BALL:
            raise ValueError("rows that are not summed keep their ball")
        noise = MAX_NOISE * (math.isqrt(self.columns) + 1) if self.shield else 0
        if -(-self.n_rows // self.buckets) * BALL + noise >= MAX_BUCKET_NORM:
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
        units = SHIELD_UNIT * root if self.shield else Fraction(0)
        moved = Fraction(self.radius, self.ball) * (2 * BALL + 2 + units) + root
        return min(math.ceil(moved**2), 4 * self.radius2)

    def sums(self, rows: Int16Array, seed: bytes) -> IntArray:
        """Return ``(columns, n_rows)`` rows within ``BALL`` as sums of buckets."""
        if rows.shape != (self.columns, self.n_rows):
            raise ValueError("rows have another shape than their scale")
        return bucket_sums(rows, seed, start=0, n_rows=self.n_rows, n_buckets=self.buckets)

    def steps(self, rows: Int16Array, seed: bytes) -> IntArray:
        """Return ``(columns, n_rows)`` rows within ``BALL`` as ``(columns, self.rows)`` steps."""
        return self.scaled(self.sums(rows, seed))

    def scaled(self, sums: IntArray) -> IntArray:
        """Return buckets, ``(columns, self.rows)``, as steps."""
        out = np.empty(sums.shape, np.int64)
        _into_steps(sums, self.ball, self.radius, self.radius2, out)
        return out


def bucket_sums(
    rows: Int16Array,
    seed: bytes,
    *,
    start: int,
    n_rows: int,
    n_buckets: int,
    total: IntArray | None = None,
) -> IntArray:
    """Return sums of buckets over rows ``start ..`` of ``n_rows``: those of all ranges add up.

    Shape ``(columns, min(n_rows, n_buckets))``. Without more rows than buckets each row has its
    own, and there are no signs. With ``total`` they are added to it, in place.
    """
    columns, count = rows.shape
    sums = np.zeros((columns, min(n_rows, n_buckets)), np.int64) if total is None else total
    if n_rows <= n_buckets:
        sums[:, start : start + count] += rows
        return sums
    _add_signed(rows, signs(seed, n_rows, first=start, last=start + count), start % n_buckets, sums)
    return sums


@dataclass(frozen=True, slots=True)
class RowShape:
    """Rows of columns with known deviations: their ball, and that of their buckets."""

    n_rows: int
    buckets: int
    weights: tuple[float, ...]  # deviations of the columns
    reach: float  # squared radius of a row's ball over the expected square
    bucket_reach: float  # the same for a bucket
    shield: int = 0  # variance of a shield's noise, in squares of the ball's step; 0 for none

    @property
    def ball(self) -> float:
        """Radius of a row's ball, in standard deviations."""
        return math.sqrt(self.reach * self._energy)

    @property
    def spread(self) -> float:
        """What the radius of a row in steps stands for, in standard deviations of a row."""
        if self.n_rows <= self.buckets and not self.shield:
            return self.ball
        noise = len(self.weights) * self.noise**2
        return math.sqrt(self.bucket_reach * (self._energy * self.together + noise))

    @property
    def together(self) -> float:
        """Rows that share a bucket, on average."""
        return max(1.0, self.n_rows / self.buckets)

    @property
    def noise(self) -> float:
        """Deviation of a shield's noise on a bucket, in standard deviations of a column."""
        return math.sqrt(self.shield) / BALL * self.ball

    @property
    def scale(self) -> RowScale:
        """How rows become steps."""
        spread, unit = self.spread, math.sqrt(_FIELD_REACH / self.n_rows)
        radius = max(1, min(int(unit * spread), _MAX_RADIUS))
        keeps = self.n_rows <= self.buckets and not self.shield
        ball = BALL if keeps else max(1, round(BALL * spread / self.ball))
        return RowScale(
            self.n_rows, self.buckets, len(self.weights), ball, radius, bool(self.shield)
        )

    @property
    def unit(self) -> float:
        """Steps that a standard deviation of a row has."""
        return self.scale.radius / self.spread

    @property
    def _energy(self) -> float:
        return sum(weight**2 for weight in self.weights)


def shield_to_bytes(noisy: IntArray) -> bytes:
    """Encode noisy buckets in units of ``SHIELD_UNIT``, two bytes each."""
    units = (noisy + SHIELD_UNIT // 2) // SHIELD_UNIT
    return np.clip(units, -(2**15), 2**15 - 1).astype("<i2").tobytes()


def shield_from_bytes(body: bytes, columns: int) -> IntArray:
    """Return the buckets, ``(columns, rows)``, that were encoded."""
    return np.frombuffer(body, "<i2").astype(np.int64).reshape(columns, -1) * SHIELD_UNIT


def signs(seed: bytes, count: int, *, first: int = 0, last: int | None = None) -> IntArray:
    """Return public signs, the same for all parties: SHAKE-256 of the job's seed, a bit each.

    Of ``count`` rows those from number ``first`` up to ``last``.
    """
    last = count if last is None else last
    packed = np.frombuffer(_sign_bits(seed, count), np.uint8)[first // 8 : -(-last // 8)]
    bits = np.unpackbits(packed, bitorder="little")[first % 8 :][: last - first]
    return 1 - 2 * bits.astype(np.int64)


@lru_cache(maxsize=1)
def _sign_bits(seed: bytes, count: int) -> bytes:
    """Return the bits of all rows; they are asked for a range at a time."""
    return hashlib.shake_256(b"colonnade sealed signs\0" + seed).digest(-(-count // 8))


@njit
def _add_signed(rows: Int16Array, signed: IntArray, at: int, sums: IntArray) -> None:
    for i in range(rows.shape[1]):  # of a few columns, each with its own run of addresses
        for j in range(rows.shape[0]):
            sums[j, at] += np.int64(rows[j, i]) * signed[i]
        at = at + 1 if at + 1 < sums.shape[1] else 0


@njit
def _into_steps(sums: IntArray, ball: int, radius: int, radius2: int, out: IntArray) -> None:
    """Scale each bucket into the ball and round to steps; the same operations for every bucket.

    A block of buckets at a time, column by column, because a column's numbers lie together.
    """
    work, inverses = np.empty((3, _BLOCK), np.int64), np.empty(_BLOCK, np.float64)
    for first in range(0, sums.shape[1], _BLOCK):
        size = min(_BLOCK, sums.shape[1] - first)
        norm2, length, reached = work[0, :size], work[1, :size], work[2, :size]
        inverse, span = inverses[:size], slice(first, first + size)
        norm2[:], reached[:] = 0, 0
        for j in range(sums.shape[0]):
            _add_squares(sums[j, span], norm2)
        for i in range(size):
            length[i] = _length(norm2[i], ball)
            inverse[i] = reciprocal(np.float64(length[i]))
        for j in range(sums.shape[0]):
            _column_steps(sums[j, span], radius, length, inverse, out[j, span])
            _add_squares(out[j, span], reached)
        # Privacy: the norm is checked in integers; were it too large, the row would be 0.
        for i in range(size):
            fits = np.float64(reached[i] <= radius2)
            inverse[i] = fits * np.float64(norm2[i] <= length[i] * length[i])
        for j in range(sums.shape[0]):
            _keep(out[j, span], inverse)


@njit
def _add_squares(column: IntArray, total: IntArray) -> None:
    for i in range(column.size):
        total[i] += column[i] * column[i]


@njit
def _column_steps(
    column: IntArray, radius: int, length: IntArray, inverse: FloatArray, out: IntArray
) -> None:
    for i in range(column.size):
        out[i] = _rounded(column[i] * np.int64(radius), length[i], inverse[i])


@njit
def _keep(column: IntArray, kept: FloatArray) -> None:
    """Multiply by 1 or 0, in floats: no branch is made of it."""
    for i in range(column.size):
        column[i] = np.int64(np.float64(column[i]) * kept[i])


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
