"""Who releases and who receives what in a round of a sealed job.

Parties take their turns by the columns that they keep, the fewest first: each seals for all that
come after it and multiplies what all before it sealed. So whoever has most columns seals none: a
sealed table is larger than replies of as many columns, and of the widest it would be largest.
"""

from typing import TYPE_CHECKING

from colonnade.methods.base import Part
from colonnade.methods.sealed.kinds import (
    GRAM,
    LABEL,
    MEANS,
    OPEN,
    OPENINGS,
    PRODUCTS,
    REPLIES,
    REPLY,
    SCREEN,
    SEAL,
    SEALED,
    WIDE,
    SealedStage,
    numbered,
    parsed,
)

if TYPE_CHECKING:
    from colonnade.methods.sealed.spec import SealedSpec


def round_kinds(spec: "SealedSpec", stage: SealedStage, part: Part) -> tuple[str, ...]:
    """Return the kinds that the party releases in a round of ``stage``."""
    order = turns(spec)
    turn = order.index(part)
    replies = spec.multipliers_of_label()
    if stage is SealedStage.MEANS:
        return (MEANS,)
    if stage is SealedStage.LABEL:
        wide = (WIDE,) if part in spec.wide() else ()
        return (*wide, *(sealed_kinds(spec, LABEL, part) if part.holds_label and replies else ()))
    if stage is SealedStage.PRODUCTS:
        owner = spec.place(spec.owner.party)
        return (numbered(PRODUCTS, owner),) if part in replies else ()
    if stage is SealedStage.SCREEN:
        places = [spec.place(other.party) for other in replies]
        return tuple(numbered(SCREEN, each) for each in places) if part.holds_label else ()
    if stage is SealedStage.SEAL:
        return (GRAM, *(sealed_kinds(spec, SEAL, part) if order[turn + 1 :] else ()))
    if stage is SealedStage.REPLY:
        return tuple(numbered(REPLY, spec.place(each.party)) for each in order[:turn])
    return tuple(numbered(OPEN, spec.place(each.party)) for each in order[turn + 1 :])


def turns(spec: "SealedSpec") -> tuple[Part, ...]:
    """Return the parties in the order in which they seal: by columns, then as the job has them."""
    return tuple(sorted(spec.parts, key=spec.n_gram))


def key_groups(spec: "SealedSpec", part: Part) -> int:
    """Return under how many keys a party seals its columns: fewer, if fewer are multiplied.

    What is opened under a key grows with the columns of those that come after the party; the first
    in turn, for which most are multiplied, has all groups of the job.
    """
    order = turns(spec)
    first, own = (
        sum(spec.n_gram(each) for each in order[at + 1 :]) for at in (0, order.index(part))
    )
    return min(max(1, -(-spec.groups * own // first)), spec.n_gram(part))


def sealed_kinds(spec: "SealedSpec", base: str, part: Part) -> tuple[str, ...]:
    """Return the bodies in which a party seals its columns."""
    count = len(spec.layout(base, part).bodies())
    return tuple(numbered(base, each) for each in range(count))


def relayed_kinds(spec: "SealedSpec", stage: SealedStage, part: Part) -> list[tuple[str, str]]:
    """Return the party and kind of every body that a round's task carries, in order."""
    found: list[tuple[str, str]] = []
    for kind in round_kinds(spec, stage, part):
        base, place = parsed(kind)  # of a party; of bodies that are sealed, the body's number
        if base in OPENINGS:
            replied = REPLIES[OPENINGS.index(base)]
            found.append((spec.parts[place].party, numbered(replied, spec.place(part.party))))
        elif base in REPLIES:
            sealed, other = SEALED[REPLIES.index(base)], spec.parts[place]
            found += [(other.party, each) for each in sealed_kinds(spec, sealed, other)]
    return found
