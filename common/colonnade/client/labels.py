"""Whose label a job uses, and within which bounds."""

from collections.abc import Sequence

from colonnade.client.options import JobOptions
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.methods.problem import Loss


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
