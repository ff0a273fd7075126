"""From options and the parties' policies to an alignment."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from colonnade.client.builder import knows_presence
from colonnade.client.participants import participants
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput
from colonnade.methods.alignment.codec import run_name
from colonnade.methods.alignment.job_spec import AlignmentJobSpec
from colonnade.methods.alignment.normalise import IdRule, named_rule
from colonnade.methods.alignment.spec import (
    AlignmentPart,
    AlignmentSpec,
    Extension,
    Mode,
    default_chunk,
)
from colonnade.methods.base import Member
from colonnade.methods.job import NO_LABEL, Job
from colonnade.privacy.membership import MembershipNoise


@dataclass(frozen=True, slots=True)
class AlignOptions:
    """Options of an alignment; those that are None are taken from the parties' policies.

    Parameters
    ----------
    mode
        Who gets a row: ``"union"``, everybody's people; ``"left"``, the first party's; ``"inner"``,
        people whom all parties have.
    ids
        For each id column, names of `RULES` joined by commas.
    epsilon, delta
        Of membership, for each party.
    rule
        In place of ``ids`` and ``repeated``.
    extends
        An earlier alignment whose rows stay where they are.

    Examples
    --------
    >>> AlignOptions(epsilon=0.5).mode
    'union'
    """

    mode: str = Mode.UNION.value
    ids: tuple[str, ...] | None = None
    repeated: str | None = None
    epsilon: float = 1.0
    delta: float = 1e-9
    chunk: int | None = None
    rule: IdRule | None = None
    extends: Extension | None = None


def id_rule(offers: Sequence[PartyOffer], options: AlignOptions) -> IdRule:
    """Return how ids are written: as the options say, or as all parties offer to write them."""
    if options.rule is not None:
        return options.rule
    told = {(offer.align_ids, offer.align_repeated) for offer in offers}
    if len(told) > 1 and (options.ids is None or options.repeated is None):
        named = "; ".join(
            f"{offer.party}: {' and '.join(offer.align_ids)}, repeated {offer.align_repeated}"
            for offer in offers
        )
        raise BadInput(f"the parties' policies write ids differently, agree on one rule: {named}")
    ids, repeated = next(iter(told))
    try:
        return named_rule(options.ids or ids, options.repeated or repeated)
    except ValueError as error:
        raise BadArgument("ids", str(error)) from None


def extended(
    options: AlignOptions, earlier: AlignmentSpec, section: Mapping[str, Any], *, min_new: int
) -> AlignOptions:
    """Return options of an alignment that leaves everybody's row of an earlier one where it is."""
    if section["kept"] is None:
        raise BadInput("the alignment has not finished; there are no rows to extend")
    try:
        extension = Extension(
            run_name(earlier), section["kept"], min_new=min_new, runs=earlier.runs_before + 1
        )
    except ValueError as error:
        raise BadInput(f"no such extension: {error}") from None
    return replace(options, mode=earlier.mode.value, extends=extension, rule=earlier.ids)


def people_counted(section: Mapping[str, Any]) -> dict[tuple[str, ...], int]:
    """Return how many people one party or several have, from an alignment's part of its report."""
    found = section["overlap"]
    return {tuple(each["parties"]): max(0, int(each["people"])) for each in found}


def lack_in_alignment(offer: PartyOffer) -> str:
    """Return why a party cannot take part in an alignment, or nothing."""
    return "" if offer.align_people else "lets nobody align its people ([align] and [[align]])"


def author_alignment(
    offers: Sequence[PartyOffer],
    options: AlignOptions,
    *,
    parties: Sequence[str] | None = None,
    without: Sequence[str] = (),
    name: str | None = None,
    timeout_s: int = 3600,
) -> Job:
    """Return a job that aligns the people of parties; the first of them is ``left``."""
    chosen = participants(
        offers, parties=parties, without=without, lack=lack_in_alignment, table=False
    )
    for offer in chosen:
        if reason := lack_in_alignment(offer):
            raise BadInput(f"party {offer.party!r} {reason}")
        if not offer.ledger_key:
            raise BadInput(f"the coordinator does not tell the key of party {offer.party!r}")
    try:
        noise = MembershipNoise.within(options.epsilon, options.delta)
        spec = AlignmentSpec(
            salt=secrets.token_bytes(32),
            parts=tuple(
                AlignmentPart(offer.party, offer.ledger_key, offer.align_people) for offer in chosen
            ),
            mode=Mode(options.mode),
            ids=id_rule(chosen, options),
            noise=noise,
            chunk=options.chunk or default_chunk(max(2, len(chosen))),
            extends=options.extends,
        )
        members = (Member(offer.party, "", (), (), (), False) for offer in chosen)
        return Job(
            name or f"alignment of {len(chosen)} parties",
            secrets.token_bytes(16),
            noise.delta,
            timeout_s,
            tuple(members),
            *NO_LABEL,
            AlignmentJobSpec(spec),
        )
    except ValueError as error:
        raise BadInput(f"no such alignment: {error}") from None


def people_in_common(
    offers: Sequence[PartyOffer],
    alignment: Callable[[str], tuple[AlignmentSpec, dict[str, Any]]],
) -> dict[tuple[str, ...], int]:
    """Return how many people parties have in common, as counted by their rows' alignment."""
    orders = {offer.alignment for offer in offers if knows_presence(offer.alignment)}
    for name in sorted(orders):
        with suppress(BadInput):  # one that this coordinator never ran
            return people_counted(alignment(name)[1])
    return {}
