"""Who takes part in a job: all enrolled parties unless stated otherwise; and whose label."""

from collections.abc import Callable, Mapping, Sequence

from colonnade.client.options import JobOptions
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, PartyAbsent
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.methods.base import Unit
from colonnade.methods.problem import Loss

_NAMED = 5


def lack_in_columns(offer: PartyOffer) -> str:
    """Return why a party cannot take part in a job over columns, or nothing."""
    if not offer.dataset:
        return "has no table yet"
    if offer.unit is not Unit.RECORD:
        return "has a table that is divided among clients"
    return "" if offer.features else "offers no feature to this coordinator"


def lack_in_rows(offer: PartyOffer) -> str:
    """Return why a party's clients cannot take part in a job over clients, or nothing."""
    return "" if offer.features else "offers no feature to this coordinator"


def sealed_lack(
    offers: Sequence[PartyOffer], features: Mapping[str, Sequence[str]], *, target: str
) -> str:
    """Return what is missing for products under encryption among these parties, or nothing."""
    for offer in offers:
        if not offer.sealed_columns:
            return (
                f"{offer.party} offers none: its policy does not grant it, or its program lacks "
                "the extra colonnade[sealed]"
            )
        for other in offers:
            if other.party == offer.party:
                continue
            if other.party not in offer.sealed_peers:
                return f"the policy of {offer.party} does not name {other.party}"
            if offer.sealed_peers[other.party] != other.ledger_key:
                return f"{offer.party} has pinned another key than the ledger of {other.party} has"
        holds = offer.label is not None and offer.label[0] == target
        if not 0 < (count := len(features[offer.party]) + holds) <= offer.sealed_columns:
            return (
                f"the policy of {offer.party} grants {offer.sealed_columns} columns, and the job "
                f"has {count} there, with the label"
            )
    return ""


def participants(
    offers: Sequence[PartyOffer],
    *,
    parties: Sequence[str] | None = None,
    without: Sequence[str] = (),
    lack: Callable[[PartyOffer], str] = lack_in_columns,
    table: bool = True,
) -> list[PartyOffer]:
    """Return the offers of those who take part.

    Parameters
    ----------
    parties
        Exactly these; those of them that are away may come later. By default every enrolled party,
        and then `PartyAbsent` says who is away or cannot take part.
    without
        Leave these out of the default.
    lack
        Says why a party that is there cannot take part.
    table
        Whether those who are named must have reported a table.
    """
    by_name = {offer.party: offer for offer in offers}
    for name in (names := [*(parties or ()), *without]):
        if names.count(name) > 1:  # it would count as several where each has an epsilon
            raise BadInput(f"party {name!r} is named more than once")
        if name not in by_name:
            there = listed(tuple(by_name)) or "nobody"
            raise BadInput(f"party {name!r} is not enrolled with the coordinator; {there} is")
    if parties is not None:
        named = [by_name[name] for name in parties]
        return [_with_table(offer) for offer in named] if table else named
    if not any(offer.attached for offer in offers):
        raise BadInput("no party is attached to the coordinator")
    chosen = [offer for offer in offers if offer.party not in without]
    if not chosen:
        raise BadInput("every party is left out")
    reasons = [
        f"{offer.party} {reason}"
        for offer in chosen
        if (reason := "is away" if not offer.attached else lack(offer))
    ]
    if reasons:
        more = [f"{len(reasons) - _NAMED} more"] if len(reasons) > _NAMED else []
        raise PartyAbsent(
            f"not everybody takes part: {'; '.join([*reasons[:_NAMED], *more])}. Wait for them, "
            "name who takes part, or leave them out on purpose"
        )
    return chosen


def _with_table(offer: PartyOffer) -> PartyOffer:
    if not offer.dataset:
        raise BadInput(
            f"party {offer.party!r} has no table yet, or has never been attached; what it offers "
            "is unknown"
        )
    return offer


def label_owner(offers: Sequence[PartyOffer], target: str, options: JobOptions) -> str | None:
    """Return who alone holds the label, or None if every party uses its own copy."""
    holders = [
        offer.party for offer in offers if offer.label is not None and offer.label[0] == target
    ]
    if not holders:
        there = sorted({offer.label[0] for offer in offers if offer.label is not None})
        raise BadInput(
            f"no party offers the label {target!r}; they offer {listed(there) or 'no label'}"
        )
    owner = options.label_owner
    if owner is None:
        return None if len(holders) == len(offers) else holders[0]
    if owner not in holders:
        raise BadArgument("label_owner", f"must hold the label {target!r}, as {listed(holders)} do")
    return owner


def label_bounds(offers: Sequence[PartyOffer], target: str, loss: Loss) -> Bounds:
    """Return the tightest bounds that a holder of the label offers; 0 and 1 for a class."""
    if loss is Loss.LOGISTIC:
        return Bounds(0.0, 1.0)
    found = [offer.label[1] for offer in offers if offer.label and offer.label[0] == target]
    return min(found, key=lambda bounds: bounds.half_width)
