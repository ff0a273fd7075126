"""Rows of a sealed job and products between two parties: shapes, common prices, noise and code.

Everything follows from the specification, so that both sides find the same integers. They are asked
for again and again, so they are kept.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from colonnade.methods.base import Part
from colonnade.methods.sealed.charges import (
    Product,
    opened_millibits,
    replied_millibits,
    sigma2_within,
)
from colonnade.methods.sealed.kinds import (
    LABEL,
    OPEN,
    OPENINGS,
    PRODUCTS,
    REPLIES,
    REPLY,
    SCREEN,
    SEAL,
    WIDE,
    parsed,
)
from colonnade.methods.sealed.packing import LOW_FIELD
from colonnade.methods.sealed.rows import RowShape
from colonnade.privacy.ring_noise import SealedOpening, SealedReply
from colonnade.sketching.packing import ShareCode

if TYPE_CHECKING:
    from colonnade.methods.sealed.spec import SealedSpec


@dataclass(frozen=True, slots=True)
class Prices:
    """What a party spends on what, in units."""

    gram: int  # of kept features
    cross: int  # all replies and openings of kept columns together
    wide: int = 0  # the Gram matrix of all features
    label: int = 0  # products with the label: the reply, or all of its owner's openings

    def halved(self, times: int) -> "Prices":
        """Return lower prices of products between parties; those of Gram matrices stay."""
        cross, label = max(1, self.cross >> times), self.label >> times
        return replace(self, cross=cross, label=max(label, min(1, self.label)))


def row_shape(spec: "SealedSpec", base: str, part: Part) -> RowShape:
    """Return the shape of the rows that go into a release of the party's."""
    shape = partial(RowShape, n_rows=spec.n_rows, buckets=spec.buckets)
    if base == LABEL:
        return shape(weights=(1.0,), reach=spec.label_reach, bucket_reach=spec.label_reach)
    wide = base in (WIDE, PRODUCTS)
    # The label is among the rows of products only where its owner's own Gram matrix is meant.
    label = (spec.label_weight,) if part.holds_label and base != PRODUCTS else ()
    weights = (1.0,) * (len(part.features) if wide else spec.kept(part)) + label
    reach = spec.wide_reach if wide else spec.reach
    noise = spec.shield(part)
    return shape(
        weights=weights,
        reach=reach,
        bucket_reach=spec.bucket_reach,
        shield=0 if noise is None else noise.sigma2,
    )


@lru_cache(maxsize=1024)
def product(spec: "SealedSpec", kind: str, part: Part) -> Product:
    """Return the product that a reply or an opening of the party belongs to."""
    base, place = parsed(kind)
    other = spec.parts[place]
    sealer, multiplier = (part, other) if base in OPENINGS else (other, part)
    seals, multiplies = (LABEL, PRODUCTS) if base in (PRODUCTS, SCREEN) else (SEAL, REPLY)
    return Product(
        spec.rows(seals, sealer).scale,
        spec.rows(multiplies, multiplier).scale,
        spec.layout(seals, sealer),
    )


@lru_cache(maxsize=1024)
def sigma2(spec: "SealedSpec", kind: str, part: Part) -> int:
    """Return the variance of the noise of a reply or an opening, in steps.

    All products of a party with the label have one price, and all others another.
    """
    prices, label = spec.prices[spec.place(part.party)], parsed(kind)[0] in (PRODUCTS, SCREEN)
    bases = (PRODUCTS, SCREEN) if label else (REPLY, OPEN)
    found = [
        product(spec, each, part).sensitivity2(opens=parsed(each)[0] in OPENINGS)
        for each in spec.kinds(part)
        if parsed(each)[0] in bases
    ]
    return sigma2_within(prices.label if label else prices.cross, found)


def mechanism(spec: "SealedSpec", kind: str, part: Part) -> SealedReply | SealedOpening:
    """Return the mechanism of a reply or an opening."""
    found, variance = product(spec, kind, part), sigma2(spec, kind, part)
    return found.opening(variance) if parsed(kind)[0] in OPENINGS else found.reply(variance)


def key_bits(spec: "SealedSpec", part: Part) -> tuple[int, int]:
    """Return the most bits that any key of the party opens, and those of all its keys together."""
    most = total = 0
    for base in OPENINGS:
        kinds = [kind for kind in spec.kinds(part) if parsed(kind)[0] == base]
        if kinds:
            opened = [product(spec, kind, part) for kind in kinds]
            each = opened_millibits(opened, sigma2(spec, kinds[0], part))
            most, total = max(most, each), total + each * opened[0].layout.groups
    return -(-most // 1000), -(-total // 1000)


def peer_bits(spec: "SealedSpec", part: Part) -> int:
    """Return the most bits about a party that the job lets peers read whatever they do.

    Of all keys and of all replies together: a peer that does not follow the protocol chooses which
    rows they are about (`charges`).
    """
    replied = sum(
        replied_millibits(product(spec, kind, part), sigma2(spec, kind, part))
        for kind in spec.kinds(part)
        if parsed(kind)[0] in REPLIES
    )
    return key_bits(spec, part)[1] - (-replied // 1000)


def opening_code(spec: "SealedSpec", kind: str, part: Part) -> ShareCode:
    """Return how opened numbers cross the wire: in quarters of a deviation, over the field."""
    found = product(spec, kind, part)
    step = max(1, math.isqrt(sigma2(spec, kind, part)) // 4)
    levels = 2 * (LOW_FIELD // 2 // step + 1)
    count = found.layout.columns * found.multiplied.columns
    return ShareCode(count, step, max(2, (levels - 1).bit_length()))
