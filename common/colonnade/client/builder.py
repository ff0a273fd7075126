"""From what parties offer and what is wished for to a job, with the planner's help.

What is not wished for is planned:

    job = author(client.parties(), Wishes(epsilon=1.0), target="cost")
    client.submit(job)
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colonnade.client.client import PartyOffer
from colonnade.client.participants import participants
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.core.fixedpoint import Bounds
from colonnade.core.text import listed
from colonnade.methods.base import Member, MethodSpec, Plan
from colonnade.methods.choice import choose_method
from colonnade.methods.job import Job
from colonnade.methods.problem import Labels, Loss, Problem
from colonnade.methods.registry import kinds, method_of
from colonnade.privacy.accounting import delta_for, rho_from_units, rho_of, units_down


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What is wished of a job; what is not given is recommended."""

    method: str | None = None  # a kind of the registry
    epsilon: float = 1.0
    delta: float | None = None  # default min(1e-6, 1 / (10 rows))
    scope: str = "joint"  # or "party": whether epsilon is for all parties together or for each
    loss: str = "squared"
    labels: str | None = None  # shared or sketched
    label_owner: str | None = None
    correlation: float | None = None  # expected between columns of different parties
    sketch_dim: int | None = None
    radius: float | None = None
    directions: int | None = None  # moments: that each party shares
    keep_features: int | None = None  # moments: that a wide party keeps
    rounds: int | None = None  # this and all below: Frank-Wolfe
    shares: int | None = None
    sampling: str = "all"
    parties_per_round: int | None = None
    features_per_round: int = 0

    def given(self, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that were asked for."""
        default = JobOptions()
        return [name for name in names if getattr(self, name) != getattr(default, name)]


# Least and most of what is counted.
_COUNTS = {
    "sketch_dim": (1, 2**31 - 1),
    "directions": (1, 10**4),
    "keep_features": (1, 10**6),
    "rounds": (1, 10**6),
    "shares": (0, 10**6),
    "parties_per_round": (1, 256),
    "features_per_round": (0, 10**6),
}


def delta_of(wishes: JobOptions, n_rows: int) -> float:
    """Return the delta that was asked for, or the default."""
    try:
        return delta_for(wishes.delta, n_rows)
    except ValueError as error:
        raise BadInput(f"--{error}") from None


def budget_of(wishes: JobOptions, *, n_rows: int, n_parties: int) -> int:
    """Return what the job may cost all parties together, in units."""
    if not 0.0 < wishes.epsilon < 1000.0:
        raise BadInput("--epsilon must lie between 0 and 1000")
    units = units_down(rho_of(wishes.epsilon, delta_of(wishes, n_rows)))
    return units * (n_parties if wishes.scope == "party" else 1)


def plan_of(
    wishes: JobOptions,
    features: Mapping[str, Sequence[str]],
    *,
    n_rows: int,
    units: int,
    owner: str | None,
) -> Plan:
    """Return the recommended plan, with what was asked for in its place.

    ``owner`` alone holds the label, or with None every party does. With ``--scope party`` no party
    may pay more than its part of ``units``: one that has more to release (the label) would, so the
    whole plan is made smaller until it does not.
    """
    _check_counts(wishes)
    asked = units
    for _ in range(50):
        plan = _planned(wishes, features, n_rows=n_rows, units=asked, owner=owner)
        most = max(plan.spec.max_units(party) for party in features)
        if wishes.scope == "joint" or most * len(features) <= units:
            return plan
        asked = asked * units // (most * len(features) + 1)
    raise BadInput("no plan keeps every party within its epsilon; use --scope joint")


def _check_counts(wishes: JobOptions) -> None:
    for name, (least, most) in _COUNTS.items():
        count = getattr(wishes, name)
        if count is not None and not least <= count <= most:
            option = name.replace("_", "-")
            raise BadInput(f"--{option} must lie between {least} and {most}")


def _planned(
    wishes: JobOptions,
    features: Mapping[str, Sequence[str]],
    *,
    n_rows: int,
    units: int,
    owner: str | None,
) -> Plan:
    try:
        problem = Problem(
            n_rows=n_rows,
            features=features,
            rho_units=units,
            label_owner=owner,
            loss=Loss(wishes.loss),
            correlation=wishes.correlation,
        )
        kind = _kind(wishes, problem)
        if (plan := method_of(kind).plan) is None:
            raise BadInput(f"jobs of kind {kind} are not planned from columns")
        return plan(problem, wishes)
    except ValueError as error:
        raise BadInput(f"no such plan: {error}") from None


def _kind(wishes: JobOptions, problem: Problem) -> str:
    """Return the method that was asked for by name or by its options, or the better one."""
    own = {kind: wishes.given(method_of(kind).options) for kind in kinds()}
    asked = [kind for kind, given in own.items() if given]
    kind = wishes.method or (asked[0] if asked else choose_method(problem))
    if others := [name for other in asked if other != kind for name in own[other]]:
        option = others[0].replace("_", "-")
        raise BadInput(f"--{option} is not an option of the method {kind}; see --method")
    return kind


def author(
    offers: Sequence[PartyOffer],
    wishes: JobOptions,
    *,
    target: str,
    parties: Sequence[str] | None = None,
    without: Sequence[str] = (),
    name: str | None = None,
    timeout_s: int = 3600,
) -> Job:
    """Return a job that predicts ``target`` from what the parties offer.

    Parameters
    ----------
    parties
        Who takes part; by default every enrolled party, and `PartyAbsent` if one is away.
    without
        Whom to leave out of the default.
    timeout_s
        Seconds that a party may stay away before the job fails.
    """
    chosen = participants(offers, parties=parties, without=without)
    rows = {offer.population for offer in chosen}
    if len(rows) != 1:
        counts = ", ".join(f"{offer.party} {offer.population}" for offer in chosen)
        raise BadInput(f"the parties have different numbers of rows: {counts}")
    check_alignments(chosen)
    owner = _owner(chosen, target, wishes)
    (n_rows,) = rows
    features = {
        offer.party: tuple(each for each in offer.features if each != target) for offer in chosen
    }
    units = budget_of(wishes, n_rows=n_rows, n_parties=len(chosen))
    plan = plan_of(wishes, features, n_rows=n_rows, units=units, owner=owner)
    return job_of(
        plan.spec,
        chosen,
        target=target,
        name=name or f"{target} from {len(chosen)} parties",
        delta=delta_of(wishes, n_rows),
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


def _order(alignment: str) -> str:
    if not alignment:
        return "no alignment, and no roster with a key"
    what = "roster" if alignment.startswith("roster-") else "alignment"
    return f"{what} {alignment.removeprefix('roster-')[:12]}"


def job_of(
    spec: MethodSpec,
    offers: Sequence[PartyOffer],
    *,
    target: str,
    name: str,
    delta: float,
    timeout_s: int,
) -> Job:
    """Return the job that runs ``spec`` on what the parties offer."""
    by_name = {offer.party: offer for offer in offers}
    check_alignments([by_name[part.party] for part in spec.parts])
    members = []
    for part in spec.parts:
        offer = by_name[part.party]
        if (most := spec.max_units(part.party)) > offer.left_units:
            raise BudgetExceeded(
                f"the job may cost party {part.party} rho {rho_from_units(most):.6g}, but its "
                f"ledger has {rho_from_units(offer.left_units):.6g} left"
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
            label_bounds=_label_bounds(offers, target, spec.loss),
            method=spec,
        )
    except ValueError as error:
        raise BadInput(f"no such job: {error}") from None


def _owner(offers: Sequence[PartyOffer], target: str, wishes: JobOptions) -> str | None:
    """Return who alone holds the label, or None if every party uses its own copy."""
    holders = [
        offer.party for offer in offers if offer.label is not None and offer.label[0] == target
    ]
    if not holders:
        there = sorted({offer.label[0] for offer in offers if offer.label is not None})
        raise BadInput(
            f"no party offers the label {target!r}; they offer {listed(there) or 'no label'}"
        )
    everyone = len(holders) == len(offers)
    labels = wishes.labels or ("shared" if everyone else "sketched")
    if labels == Labels.SHARED.value:
        if not everyone:
            raise BadInput(f"--labels shared needs {target!r} at every party")
        if wishes.label_owner is not None:
            raise BadInput("--label-owner needs --labels sketched")
        return None
    owner = wishes.label_owner or holders[0]
    if owner not in holders:
        raise BadInput(f"party {owner!r} does not hold the label {target!r}")
    return owner


def _label_bounds(offers: Sequence[PartyOffer], target: str, loss: Loss) -> Bounds:
    """Return the tightest bounds that a holder of the label offers; 0 and 1 for a class."""
    if loss is Loss.LOGISTIC:
        return Bounds(0.0, 1.0)
    found = [offer.label[1] for offer in offers if offer.label and offer.label[0] == target]
    return min(found, key=lambda bounds: bounds.half_width)
