"""From what parties offer to a job over their clients."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from colonnade.client.builder import groups_of
from colonnade.client.client import PartyOffer
from colonnade.core.errors import BadInput
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.base import Member
from colonnade.methods.job import Job


@dataclass(frozen=True, slots=True)
class Frame:
    """What a job says besides its method."""

    name: str
    delta: float
    round_timeout_s: int = 60
    party_timeout_s: int = 3600


def job_over_clients(
    spec: AdmmSpec, offers: Sequence[PartyOffer], *, target: str, frame: Frame
) -> Job:
    """Return the job that runs ``spec`` on all clients of the parties.

    A party whose table is not divided is one client. All parties must offer the same columns under
    the same bounds and with the same fills; how many clients there are follows from the offers.
    """
    first = offers[0]
    for offer in offers:
        if offer.label is None or offer.label[0] != target:
            there = "no label" if offer.label is None else repr(offer.label[0])
            raise BadInput(
                f"party {offer.party} does not offer the label {target!r}; it offers {there}"
            )
        ours, theirs = (
            (o.features, o.fills, o.label, o.groups, o.encodings) for o in (first, offer)
        )
        if ours != theirs:
            raise BadInput(
                f"parties {first.party} and {offer.party} offer other columns, bounds or fills; a "
                "job over clients needs the same everywhere"
            )
    features, bounds = tuple(first.features), tuple(first.features.values())
    fills = tuple(first.fills[name] for name in features)
    counts = {offer.party: offer.clients for offer in offers}
    members = tuple(
        Member(
            offer.party,
            offer.dataset,
            features,
            bounds,
            fills,
            True,
            counts[offer.party],
            groups_of(offer, features),
            offer.encodings,
        )
        for offer in offers
    )
    parts = tuple(ClientPart(party, features, count) for party, count in counts.items())
    try:
        sized = replace(spec, n_clients=sum(counts.values()), n_features=len(features))
        return Job(
            name=frame.name,
            salt=secrets.token_bytes(16),
            delta=frame.delta,
            party_timeout_s=frame.party_timeout_s,
            members=members,
            label=target,
            label_bounds=first.label[1] if first.label is not None else bounds[0],
            method=AdmmJobSpec(parts, sized, frame.round_timeout_s),
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None
