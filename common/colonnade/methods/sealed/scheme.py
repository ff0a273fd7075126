"""Encryption under ring learning with errors: keys, ciphertexts, replies, openings.

A ciphertext of the raw polynomial ``m`` is ``(c0, a)`` with ``c0 = m - a s + e``; whoever has ``s``
finds ``c0 + a s = m + e``. ``a`` is never sent: everybody expands it from a seed, so that no peer
can choose one whose products show rows. What is expanded are its values under the ring's transform,
which is one to one: uniform values are those of a uniform polynomial. The first polynomial of a key
encrypts 0: it is the public key, by which a replier makes a fresh encryption of 0 for each reply.

A replier's reply to small multipliers ``y_i`` is ``c0 = sum c0_i y_i + b u`` and
``c1 = sum a_i y_i + a u``, of which the wanted coefficients of ``c0`` get the release's noise and
all of ``c1`` an error, in the gate (`privacy.ring_noise`). What is opened are the wanted
coefficients of ``c0 + c1 s``, raw, with the opener's noise added in the gate before they are
rounded. All that is random comes from the party's exact sampler.

Only ``c1`` takes all coefficients of products, hence transforms. The wanted ones of all else are
inner products with small integers (`ring.dot`).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.methods.sealed.packing import SEED_BYTES, Layout
from colonnade.methods.sealed.ring import (
    COEFFICIENT_BITS,
    DEGREE,
    MAX_SMALL,
    MODULUS,
    Ring,
    Words,
    add,
    add_products,
    dot,
    reversed_at,
    subtract,
    times,
)
from colonnade.privacy.sampling import NoiseSource

# Variance of secrets, masks and errors, a deviation of 6.4: twice the standard's 3.2, which
# Hint-RLWE has to leave of it (`charges.check_hints`). With half the variance, tables of a million
# rows would already open too much.
ERROR_SIGMA2 = 41
_SPARE_WORDS = 64
# Multipliers that a replier keeps, of 32 kB each.
_MAX_KEPT = 4000


@dataclass(frozen=True, slots=True)
class KeyContext:
    """What a key serves for: one job, one party, one stage. Its ``a`` differ from all others'."""

    job: str
    party: str
    stage: str

    def tag(self) -> bytes:
        """Return an unambiguous text of it."""
        parts = (part.encode() for part in (self.job, self.party, self.stage))
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A secret polynomial and the public seed of its ``a``."""

    seed: bytes
    secret: IntArray

    def __post_init__(self) -> None:
        if len(self.seed) != SEED_BYTES or self.secret.shape != (DEGREE,):
            raise ValueError("a key has another size")

    @classmethod
    def draw(cls, noise: NoiseSource) -> "SecretKey":
        """Draw a key."""
        seed = noise.below(1 << 8 * SEED_BYTES).to_bytes(SEED_BYTES, "big")
        return cls(seed, noise.discrete_gaussian(ERROR_SIGMA2, DEGREE))

    def name(self, context: KeyContext) -> str:
        """Return what a ledger calls the key: a digest of its public part."""
        return hashlib.sha256(b"colonnade sealed key\0" + context.tag() + self.seed).hexdigest()

    def __repr__(self) -> str:
        """Show nothing of the secret: a key in a message or a traceback must not give itself."""
        return "SecretKey(...)"


def expand(seed: bytes, context: KeyContext, index: int) -> Words:
    """Return the values of ``a`` of a key's polynomial ``index``: uniform, by rejection.

    SHAKE-256 as random oracle over seed, context and index. Seed and index alone say nothing: the
    same seed in another job, at another party or stage gives another ``a``.
    """
    prefix = b"colonnade sealed a values\0" + context.tag() + seed + index.to_bytes(4, "big")
    words = DEGREE + _SPARE_WORDS
    while True:
        digest = np.frombuffer(hashlib.shake_256(prefix).digest(8 * words), "<u8")
        drawn = digest.astype(np.uint64, copy=False) & np.uint64((1 << COEFFICIENT_BITS) - 1)
        below = drawn[drawn < MODULUS]
        if below.size >= DEGREE:
            return below[:DEGREE]
        words *= 2  # once in more than 2**900 times; the beginning stays the same


def expanded(seed: bytes, context: KeyContext, first: int, count: int) -> Words:
    """Return the values of ``a`` of ``count`` polynomials from index ``first``."""
    return np.stack([expand(seed, context, first + place) for place in range(count)])


def uncovered(
    key: SecretKey, context: KeyContext, messages: IntArray, *, first: int, ring: Ring
) -> IntArray:
    """Return ``m - a s`` for polynomials from index ``first``: ciphertexts but for their errors."""
    randoms = expanded(key.seed, context, first, len(messages))
    return subtract(messages, times(ring, randoms, key.secret))


@dataclass(frozen=True, slots=True)
class Ciphertexts:
    """What a replier was sent of one key: ``c0`` of all polynomials, the public key's first."""

    seed: bytes
    context: KeyContext
    bodies: IntArray  # (1 + chunks, DEGREE)

    def heads(self, layout: Layout, rows: IntArray, masks: IntArray) -> IntArray:
        """Return the wanted coefficients of ``c0`` of each reply, ``(replies, slots)``.

        ``rows`` are the replier's, ``(columns, rows)``; ``masks`` are small, one for each reply.
        """
        sums = dot(rows, layout.blocks(self.bodies[1:]))
        mask = dot(masks, reversed_at(self.bodies[0], layout.wanted))
        return add(layout.joined(sums), mask)

    def tails(self, multipliers: Iterable[Words], masks: IntArray, ring: Ring) -> IntArray:
        """Return ``c1`` of each reply, ``(replies, DEGREE)``."""
        values = expanded(self.seed, self.context, 0, len(self.bodies))[:, None]
        found = np.zeros((len(masks), 1, DEGREE), np.uint64)
        for each, mask, out in zip(multipliers, ring.forward(masks), found, strict=True):
            add_products(values[1:], each, out)
            add_products(values[:1], mask[None, :], out)
        return ring.inverse(found[:, 0])


class Multipliers:
    """A replier's rows as multipliers, kept for sealed columns that lie alike.

    ``rows`` are steps, ``(columns, rows)``; they are asked for when the first are needed.
    """

    def __init__(self, rows: Callable[[], IntArray], ring: Ring) -> None:
        self._asked, self._ring = rows, ring
        self._kept: dict[tuple[int, int], list[Words]] = {}

    @cached_property
    def rows(self) -> IntArray:
        """The rows in steps."""
        return self._asked()

    def of(self, layout: Layout) -> Iterator[Words]:
        """Yield each reply's multipliers, as values, to columns that lie as ``layout`` says."""
        alike = layout.length, layout.lanes  # what else it says is of the encryptor's columns
        if alike in self._kept:
            yield from self._kept[alike]
            return
        made = list[Words]()
        keep = layout.chunks * len(self.rows) <= _MAX_KEPT
        for smalls in layout.multipliers(self.rows):
            each = self._ring.forward(smalls)
            if keep:
                made.append(each)
            yield each
        if keep:
            self._kept[alike] = made


def multiplied(
    sealed: Sequence[Ciphertexts],
    layout: Layout,
    multipliers: Multipliers,
    *,
    noise: NoiseSource,
    ring: Ring,
) -> IntArray:
    """Return replies but for noise and errors: wanted coefficients of ``c0``, then ``c1``.

    Group by group, each reply with a fresh encryption of zero in it.
    """
    made, each = [], -(-len(multipliers.rows) // layout.lanes)
    for group in sealed:
        masks = small(noise.discrete_gaussian(ERROR_SIGMA2, each * DEGREE)).reshape(each, DEGREE)
        heads = group.heads(layout, multipliers.rows, masks)
        made.append(np.hstack([heads, group.tails(multipliers.of(layout), masks, ring)]))
    return np.concatenate(made)


def opened(keys: Sequence[SecretKey], layout: Layout, replies: IntArray) -> IntArray:
    """Return the raw coefficients ``c0 + c1 s`` of replies, shape ``(replies, slots)``.

    Not to be rounded or looked at before noise is added.
    """
    heads, tails = replies[:, : layout.slots], replies[:, layout.slots :]
    each = len(replies) // len(keys)
    products = [
        dot(reversed_at(key.secret, layout.wanted), tails[place * each : (place + 1) * each]).T
        for place, key in enumerate(keys)
    ]
    return add(heads, np.concatenate(products))


def small(drawn: IntArray) -> IntArray:
    """Return a sample as a small multiplier.

    At a deviation of 6.4 the bound is 79 deviations away; nothing is ever cut.
    """
    return np.clip(drawn, 1 - MAX_SMALL, MAX_SMALL - 1)
