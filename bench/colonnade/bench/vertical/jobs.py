"""The jobs that speed and memory are measured with: every feature that the parties offer."""

import secrets
from collections.abc import Sequence

from colonnade.client import PartyOffer
from colonnade.core.errors import BadInput
from colonnade.methods.base import Member
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.privacy.accounting import default_delta


def job_of(
    offers: Sequence[PartyOffer],
    *,
    rounds: int,
    shares: int,
    sketch_dim: int,
    units: int,
    mean_units: int = 0,
) -> Job:
    """Return a job of all that is offered; a choice and a share cost ``units`` each."""
    if (label := offers[0].label) is None:
        raise BadInput(f"party {offers[0].party} offers no label")
    members = tuple(
        Member(
            each.party,
            each.dataset,
            features=tuple(each.features),
            bounds=tuple(each.features.values()),
            fills=tuple(each.fills[name] for name in each.features),
            holds_label=True,
        )
        for each in offers
    )
    blocks = tuple(
        Block(each.party, each.features, radius=0.5, shares=shares, holds_label=True)
        for each in members
    )
    spec = FrankWolfeSpec(
        n_rows=offers[0].population,
        blocks=blocks,
        rounds=rounds,
        sketch_dim=sketch_dim,
        sketch_entries=1,
        select_units=units,
        share_units=units,
        label_units=0,
        mean_units=mean_units,
    )
    return Job(
        name="bench",
        salt=secrets.token_bytes(16),
        delta=default_delta(spec.n_rows),
        party_timeout_s=300,
        members=members,
        label=label[0],
        label_bounds=label[1],
        method=spec,
    )
