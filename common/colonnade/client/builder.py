"""From what parties offer and what is asked for to a job, with the planner's help."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from colonnade.client.admm_planning import admm_spec, check_admm
from colonnade.client.options import AdmmOptions, JobOptions
from colonnade.client.participants import (
    label_bounds,
    label_owner,
    lack_in_rows,
    participants,
    sealed_lack,
)
from colonnade.client.planning import budget_of, delta_of, evaluation_units, holdout_of, plan_of
from colonnade.client.views import PartyOffer
from colonnade.core.errors import BadInput, BudgetExceeded, PolicyRefused
from colonnade.data.encoding import Encoding
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.base import Member, MethodSpec
from colonnade.methods.holdout import people_fitted, rows_fitted
from colonnade.methods.job import Job
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.privacy.accounting import format_units


def build_job(
    offers: Sequence[PartyOffer],
    options: JobOptions,
    *,
    target: str,
    parties: Sequence[str] | None = None,
    without: Sequence[str] = (),
    name: str | None = None,
    timeout_s: int = 3600,
    people: Mapping[tuple[str, ...], int] | None = None,
) -> Job:
    """Return a job that predicts ``target`` from the columns that the parties offer.

    Parameters
    ----------
    parties
        Who takes part; by default every enrolled party, and `PartyAbsent` if one is away.
    without
        Whom to leave out of the default.
    timeout_s
        Seconds that a party may stay away before the job fails.
    people
        How many people one party or two have, as the parties' alignment counted.
    """
    chosen = participants(offers, parties=parties, without=without)
    rows = {offer.population for offer in chosen}
    if len(rows) != 1:
        counts = ", ".join(f"{offer.party} {offer.population}" for offer in chosen)
        raise BadInput(f"the parties have different numbers of rows: {counts}")
    check_alignments(chosen)
    owner = label_owner(chosen, target, options)
    (n_all,) = rows
    holdout = holdout_of(options)
    n_rows = rows_fitted(n_all, holdout)
    features = {
        offer.party: tuple(each for each in offer.features if each != target) for offer in chosen
    }
    units = budget_of(options, n_rows=n_rows, n_parties=len(chosen))
    groups = {offer.party: _groups(offer, features[offer.party]) for offer in chosen}
    plan = plan_of(
        options,
        features,
        n_rows=n_rows,
        units=units,
        owner=owner,
        groups=groups,
        presence=knows_presence(chosen[0].alignment),
        people=people_fitted(people or {}, n_all=n_all, n_fitted=n_rows),
        shields={each.party: each.sealed_shield for each in chosen if each.sealed_shield},
        sealed=not (lack := sealed_lack(chosen, features, target=target)),
    )
    if lack and plan.spec.kind == SealedSpec.kind:
        raise PolicyRefused(f"not everybody grants the exchange sealed: {lack}")
    return job_over_columns(
        plan.spec,
        chosen,
        target=target,
        name=name or f"{target} from {len(chosen)} parties",
        delta=delta_of(options, n_rows),
        timeout_s=timeout_s,
        holdout=holdout,
        evaluation_units=evaluation_units(options, n_rows),
    )


def build_admm_job(
    offers: Sequence[PartyOffer],
    options: AdmmOptions,
    *,
    target: str,
    parties: Sequence[str] | None = None,
    without: Sequence[str] = (),
    name: str | None = None,
    round_timeout_s: int = 60,
    timeout_s: int = 3600,
) -> Job:
    """Return a job that predicts ``target`` over the clients of the parties, by federated ADMM.

    Parameters
    ----------
    parties, without
        As for `build_job`.
    round_timeout_s
        Seconds until a round closes.
    timeout_s
        Seconds that a round may stay open.
    """
    check_admm(options)
    chosen = participants(offers, lack=lack_in_rows, parties=parties, without=without)
    clients = sum(offer.clients for offer in chosen)
    return job_over_clients(
        admm_spec(options, clients=clients, features=len(chosen[0].features), hosts=len(chosen)),
        chosen,
        target=target,
        name=name or f"{target} over {clients} clients",
        delta=delta_of(options, clients),
        round_timeout_s=round_timeout_s,
        timeout_s=timeout_s,
    )


def check_alignments(offers: Sequence[PartyOffer]) -> None:
    """Refuse parties whose rows are not in one order, by name."""
    orders: dict[str, list[str]] = {}
    for offer in offers:
        orders.setdefault(offer.alignment, []).append(offer.party)
    if len(orders) > 1:
        told = "; ".join(f"{', '.join(who)}: {_order(name)}" for name, who in orders.items())
        raise BadInput(
            f"the parties' rows are in different orders ({told}); have all ingest by one "
            "alignment, or by one roster with its key"
        )


def knows_presence(alignment: str) -> bool:
    """Return whether tables in this order of rows say whom a party has: those of alignments do."""
    return bool(alignment) and not alignment.startswith("roster-")


def _order(alignment: str) -> str:
    if not alignment:
        return "no alignment, and no roster with a key"
    what = "roster" if alignment.startswith("roster-") else "alignment"
    return f"{what} {alignment.removeprefix('roster-')[:12]}"


def job_over_columns(
    spec: MethodSpec,
    offers: Sequence[PartyOffer],
    *,
    target: str,
    name: str,
    delta: float,
    timeout_s: int,
    holdout: int = 0,
    evaluation_units: int = 0,
) -> Job:
    """Return the job that runs ``spec`` on what the parties offer, without a holdout."""
    by_name = {offer.party: offer for offer in offers}
    check_alignments([by_name[part.party] for part in spec.parts])
    members, later = [], evaluation_units
    for part in spec.parts:
        offer, most = by_name[part.party], spec.max_units(part.party)
        if part.holds_label:
            most, later = most + later, 0  # the first is sent the scores
        if most > offer.left_units:
            raise BudgetExceeded(
                f"the job may cost party {part.party} {format_units(most, delta)}, but its "
                f"ledger has {format_units(offer.left_units, delta, left=True)} left"
            )
        bounds = tuple(offer.features[feature] for feature in part.features)
        fills = tuple(offer.fills[feature] for feature in part.features)
        members.append(
            Member(
                part.party,
                offer.dataset,
                part.features,
                bounds,
                fills,
                part.holds_label,
                groups=_groups(offer, part.features),
                encodings=_encodings(offer, part.features, target if part.holds_label else ""),
                alignment=offer.alignment,
            )
        )
    try:
        return Job(
            name=name,
            salt=secrets.token_bytes(16),
            delta=delta,
            party_timeout_s=timeout_s,
            members=tuple(members),
            label=target,
            label_bounds=label_bounds(offers, target, spec.loss),
            method=spec,
            holdout=holdout,
            evaluation_units=evaluation_units,
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None


def job_over_clients(
    spec: AdmmSpec,
    offers: Sequence[PartyOffer],
    *,
    target: str,
    name: str,
    delta: float,
    round_timeout_s: int = 60,
    timeout_s: int = 3600,
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
    fills = tuple(first.fills[each] for each in features)
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
            _groups(offer, features),
            offer.encodings,
        )
        for offer in offers
    )
    parts = tuple(ClientPart(party, features, count) for party, count in counts.items())
    try:
        sized = replace(spec, n_clients=sum(counts.values()), n_features=len(features))
        return Job(
            name=name,
            salt=secrets.token_bytes(16),
            delta=delta,
            party_timeout_s=timeout_s,
            members=members,
            label=target,
            label_bounds=first.label[1] if first.label is not None else bounds[0],
            method=AdmmJobSpec(
                parts,
                sized,
                round_timeout_s,
                tuple(offer.ledger_key for offer in offers) if sized.maskers else (),
            ),
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None


def _groups(offer: PartyOffer, features: Sequence[str]) -> tuple[str, ...]:
    """Return the group of each feature; nothing if none is in a group."""
    groups = tuple(offer.groups.get(feature, "") for feature in features)
    return groups if any(groups) else ()


def _encodings(offer: PartyOffer, features: Sequence[str], label: str) -> tuple[Encoding, ...]:
    """Return the encodings of what takes part."""
    used = {*features, label}
    return tuple(each for each in offer.encodings if not used.isdisjoint(each.names))
