"""Where rows and products lie in polynomials, and how coefficients cross the wire.

Two columns share a coefficient, ``LOW_STEP * low + HIGH_STEP * high``, so that a polynomial holds
``length`` rows of ``pairs`` pairs of columns: pair ``j`` begins at coefficient ``j lanes length``.
The multiplier of a column has its rows in reverse, ``y_0 + sum_s y_s x**-s`` with ``x**-s`` being
``-x**(DEGREE - s)``; coefficient ``j lanes length`` of the product is then ``sum_s m_s y_s``. With
several ``lanes`` a multiplier carries so many columns, column ``i`` times ``x**(i length)``, whose
products lie ``length`` apart; the ciphertexts are larger and the replies fewer by that factor.

Both steps are powers of two, so that no encoding rounds. Bytes on the wire are the coefficients in
54 bits each: no library's header, no compression, a size that follows from public numbers. A body
larger than a message may be is several releases, cut between polynomials.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit
from colonnade.methods.sealed.ring import COEFFICIENT_BITS, DEGREE, MODULUS, Words, add

LOW_STEP = 1 << 5
LOW_FIELD = 1 << 25  # numbers of the low field; those of the high one are half as many
HIGH_STEP = LOW_STEP * LOW_FIELD
HIGH_FIELD = 1 << 24

SEED_BYTES = 32
SIGNATURE_BYTES = 64
MAX_BODY_BYTES = 3 << 20
_ONES = np.uint64((1 << COEFFICIENT_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """How ``rows`` rows of an encryptor's ``columns`` columns lie in polynomials.

    Columns are split into ``groups`` of one size, the last filled with zeros, each under a key of
    its own: what may be opened under one key is limited.
    """

    rows: int
    columns: int
    lanes: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.lanes, self.groups) < 1:
            raise ValueError("a layout needs rows, columns, lanes and groups")
        if self.groups > self.columns or self.slots > DEGREE:
            raise ValueError(
                "a layout has more groups than columns, or more slots than a polynomial"
            )

    @property
    def width(self) -> int:
        """Columns of a group."""
        return -(-self.columns // self.groups)

    @property
    def pairs(self) -> int:
        """Pairs of columns of a group; the last of an odd number is alone."""
        return (self.width + 1) // 2

    @property
    def slots(self) -> int:
        """Products that one reply polynomial holds."""
        return self.pairs * self.lanes

    @property
    def length(self) -> int:
        """Rows in one polynomial."""
        return DEGREE // self.slots

    @property
    def chunks(self) -> int:
        """Polynomials of rows, of each group."""
        return -(-self.rows // self.length)

    @property
    def wanted(self) -> IntArray:
        """Coefficients of a product that hold sums: ``lanes`` for each pair."""
        return np.arange(self.slots, dtype=np.int64) * self.length

    def replies(self, columns: int) -> int:
        """Return how many polynomials a replier with so many columns sends, over all groups."""
        return self.groups * -(-columns // self.lanes)

    def messages(self, rows: IntArray) -> IntArray:
        """Return raw polynomials, ``(groups, 1 + chunks, DEGREE)``, of rows ``(columns, rows)``.

        The first of a group is 0: it is encrypted as the group's public key.
        """
        made = np.zeros((self.groups, 1 + self.chunks, DEGREE), np.int64)
        for group in range(self.groups):
            mine = rows[group * self.width : (group + 1) * self.width]
            padded = np.zeros((2 * self.pairs, self.chunks * self.length), np.int64)
            padded[: len(mine), : self.rows] = mine
            packed = LOW_STEP * padded[0::2] + HIGH_STEP * padded[1::2]
            packed = packed + MODULUS * (packed < 0)
            parts = packed.reshape(self.pairs, self.chunks, self.length)
            for pair in range(self.pairs):
                first = pair * self.lanes * self.length
                made[group, 1:, first : first + self.length] = parts[pair]
        return made

    def multipliers(self, rows: IntArray) -> Iterator[IntArray]:
        """Yield each reply's small polynomials, ``(chunks, DEGREE)``, from ``(columns, rows)``."""
        size = self.length
        for first in range(0, len(rows), self.lanes):
            made = np.zeros((self.chunks, DEGREE), np.int64)
            for lane, column in enumerate(rows[first : first + self.lanes]):
                padded = np.zeros(self.chunks * size, np.int64)
                padded[: self.rows] = column
                parts = padded.reshape(self.chunks, size)
                if lane:
                    made[:, (lane - 1) * size + 1 : lane * size + 1] = parts[:, ::-1]
                else:
                    made[:, 0] = parts[:, 0]
                    made[:, DEGREE - size + 1 :] = -parts[:, :0:-1]
            yield made

    def blocks(self, bodies: IntArray) -> IntArray:
        """Return what rows are multiplied with for wanted coefficients, ``(blocks, rows)``.

        ``bodies`` are ``(chunks, DEGREE)``. A block is of rows whose lane lies so many blocks off a
        coefficient: ``1 - lanes`` to ``slots - 1``.
        """
        found = []
        for block in range(1 - self.lanes, self.slots):
            first = block * self.length % DEGREE
            part = bodies[:, first : first + self.length].reshape(-1)[: self.rows]
            found.append(part if block >= 0 else -part)  # x**DEGREE = -1
        return np.stack(found)

    def joined(self, sums: IntArray) -> IntArray:
        """Return each reply's wanted coefficients of ``(columns, blocks)`` sums over rows."""
        out = np.zeros((-(-len(sums) // self.lanes), self.slots), np.int64)
        for column, blocks in enumerate(sums):
            reply, lane = divmod(column, self.lanes)
            first = self.lanes - 1 - lane
            out[reply] = add(out[reply], blocks[first : first + self.slots])
        return out

    def products(self, raw: IntArray, columns: int) -> IntArray:
        """Return the numbers in noisy raw coefficients, ``(replier's columns, own columns)``.

        ``raw`` has shape ``(replies, slots)``. Rounds, splits and wraps: noise comes before.
        """
        shape = self.groups, len(raw) // self.groups, self.pairs, self.lanes, 2
        both = np.stack(numbers(raw), axis=-1).reshape(shape)
        # To (replies, lanes, groups, pairs, 2): a row for each of the replier's columns.
        table = both.transpose(1, 3, 0, 2, 4).reshape(-1, self.groups, 2 * self.pairs)
        own = table[:, :, : self.width].reshape(len(table), -1)
        return own[:columns, : self.columns]

    def bodies(self) -> list[tuple[int, int, int]]:
        """Return what each sealed body holds: its group, its first polynomial and past its last."""
        each = (MAX_BODY_BYTES - SEED_BYTES - SIGNATURE_BYTES) // packed_bytes(DEGREE)
        return [
            (group, first, min(first + each, 1 + self.chunks))
            for group in range(self.groups)
            for first in range(0, 1 + self.chunks, each)
        ]

    def sealed_bytes(self) -> list[int]:
        """Return the size of each sealed body: seed, coefficients, signature."""
        around = SEED_BYTES + SIGNATURE_BYTES
        return [around + packed_bytes((last - first) * DEGREE) for _, first, last in self.bodies()]

    def reply_bytes(self, columns: int) -> int:
        """Return the size of a reply: wanted coefficients and ``c1`` of each, signature."""
        return packed_bytes(self.replies(columns) * (self.slots + DEGREE)) + SIGNATURE_BYTES


def numbers(raw: IntArray) -> tuple[IntArray, IntArray]:
    """Split noisy raw coefficients into the numbers of both fields, nearest to 0."""
    centred = raw - MODULUS * (raw > MODULUS // 2)
    high = (centred + HIGH_STEP // 2) // HIGH_STEP
    low = (centred - high * HIGH_STEP + LOW_STEP // 2) // LOW_STEP
    return low, high


def packed_bytes(count: int) -> int:
    """Return the size of so many packed coefficients."""
    return -(-count * COEFFICIENT_BITS // 8)


def pack(coefficients: IntArray) -> bytes:
    """Pack coefficients in 54 bits each, least significant bit first."""
    count = coefficients.size
    words = np.zeros(-(-count * COEFFICIENT_BITS // 64) + 1, "<u8")
    _pack(coefficients.reshape(-1), words)
    return words.tobytes()[: packed_bytes(count)]


def unpack(body: bytes, count: int) -> IntArray:
    """Unpack ``count`` coefficients; `ValueError` unless they are all, and all of the ring."""
    if len(body) != packed_bytes(count):
        raise ValueError(f"coefficients have {len(body)} bytes instead of {packed_bytes(count)}")
    spare = 8 * len(body) - count * COEFFICIENT_BITS
    if spare and body[-1] >> (8 - spare):
        raise ValueError("coefficients end in bits that are not zero")
    words = np.frombuffer(body + bytes(-len(body) % 8 + 8), "<u8")
    values = np.empty(count, np.int64)
    _unpack(words, values)
    if count and int(values.max()) >= MODULUS:
        raise ValueError("a coefficient is not below the modulus")
    return values


@njit
def _pack(coefficients: IntArray, words: Words) -> None:
    for i in range(coefficients.size):
        word, shift = divmod(i * COEFFICIENT_BITS, 64)
        value = np.uint64(coefficients[i])
        words[word] |= value << np.uint64(shift)
        words[word + 1] |= (value >> np.uint64(1)) >> np.uint64(63 - shift)


@njit
def _unpack(words: Words, values: IntArray) -> None:
    for i in range(values.size):
        word, shift = divmod(i * COEFFICIENT_BITS, 64)
        upper = (words[word + 1] << np.uint64(1)) << np.uint64(63 - shift)
        values[i] = np.int64(((words[word] >> np.uint64(shift)) | upper) & _ONES)
