"""From options and offers to a job; from a report to a run folder."""

import argparse
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.core.fixedpoint import Bounds
from colonnade.optim.job import Job, Member
from colonnade.optim.vertical.planning import Plan, Problem, recommend
from colonnade.optim.vertical.spec import FrankWolfeSpec, Labels, Loss
from colonnade.optim.vertical.uplink import most_payload
from colonnade.privacy.accounting import (
    default_delta,
    epsilon_of,
    rho_from_units,
    rho_of,
    units_down,
)
from colonnade.wire.client import PartyOffer


def delta_of(arguments: argparse.Namespace, n_rows: int) -> float:
    """Return the delta that was asked for, or the default."""
    delta = default_delta(n_rows) if arguments.delta is None else float(arguments.delta)
    if not 0.0 < delta < 1.0:
        raise BadInput("--delta must lie strictly between 0 and 1")
    return delta


def budget_of(arguments: argparse.Namespace, *, n_rows: int, n_parties: int) -> int:
    """Return what the job may cost all parties together, in units."""
    if not 0.0 < arguments.epsilon < 1000.0:
        raise BadInput("--epsilon must lie between 0 and 1000")
    units = units_down(rho_of(arguments.epsilon, delta_of(arguments, n_rows)))
    return units * (n_parties if arguments.scope == "party" else 1)


def plan_of(
    arguments: argparse.Namespace,
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
    asked = units
    for _ in range(50):
        plan = _planned(arguments, features, n_rows=n_rows, units=asked, owner=owner)
        most = max(plan.spec.max_units(party) for party in features)
        if arguments.scope == "joint" or most * len(features) <= units:
            return plan
        asked = asked * units // (most * len(features) + 1)
    raise BadInput("no plan keeps every party within its epsilon; use --scope joint")


def _planned(
    arguments: argparse.Namespace,
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
            loss=Loss(arguments.loss),
            correlation=arguments.correlation,
        )
        return recommend(
            problem,
            rounds=arguments.rounds,
            shares=arguments.shares,
            sketch_dim=arguments.sketch_dim,
            radius=arguments.radius,
            sampling=arguments.sampling,
            parties_per_round=arguments.parties_per_round,
            features_per_round=arguments.features_per_round,
        )
    except ValueError as error:
        raise BadInput(f"no such plan: {error}") from None


def author(offers: Sequence[PartyOffer], arguments: argparse.Namespace) -> Job:
    """Return a job over what the parties offer."""
    chosen = _chosen(offers, arguments.parties)
    rows = {offer.n_rows for offer in chosen}
    if len(rows) != 1:
        counts = ", ".join(f"{offer.party} {offer.n_rows}" for offer in chosen)
        raise BadInput(f"the parties have different numbers of rows: {counts}")
    owner = _owner(chosen, arguments)
    (n_rows,) = rows
    features = {
        offer.party: tuple(name for name in offer.features if name != arguments.target)
        for offer in chosen
    }
    units = budget_of(arguments, n_rows=n_rows, n_parties=len(chosen))
    plan = plan_of(arguments, features, n_rows=n_rows, units=units, owner=owner)
    return job_of(
        plan.spec,
        chosen,
        target=arguments.target,
        name=arguments.name or f"{arguments.target} from {len(chosen)} parties",
        delta=delta_of(arguments, n_rows),
        timeout_s=arguments.timeout,
    )


def job_of(
    spec: FrankWolfeSpec,
    offers: Sequence[PartyOffer],
    *,
    target: str,
    name: str,
    delta: float,
    timeout_s: int,
) -> Job:
    """Return the job that runs ``spec`` on what the parties offer."""
    by_name = {offer.party: offer for offer in offers}
    members = []
    for block in spec.blocks:
        offer = by_name[block.party]
        if (most := spec.max_units(block.party)) > offer.left_units:
            raise BudgetExceeded(
                f"the job may cost party {block.party} rho {rho_from_units(most):.6g}, but its "
                f"ledger has {rho_from_units(offer.left_units):.6g} left"
            )
        bounds = tuple(offer.features[feature] for feature in block.features)
        members.append(
            Member(block.party, offer.dataset, block.features, bounds, block.holds_label)
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


def describe(job: Job) -> dict[str, Any]:
    """Return what a job will do and cost, from public numbers."""
    spec, delta = job.method, job.delta
    parties = {}
    for member in job.members:
        rho = rho_from_units(job.max_units(member.party))
        block = spec.block(member.party)
        parties[member.party] = {
            "features": len(member.features),
            "radius": block.radius,
            "shares": block.shares,
            "max_rho": rho,
            "max_epsilon": epsilon_of(rho, delta),
            "max_payload_bytes": most_payload(spec, member.party),
        }
    joint = sum(rho_from_units(job.max_units(member.party)) for member in job.members)
    return {
        "name": job.name,
        "method": job.kind,
        "label": job.label,
        "labels": spec.labels.value,
        "loss": spec.loss.value,
        "rows": job.n_rows,
        "rounds": spec.rounds,
        "sketch_dim": spec.sketch_dim,
        "delta": delta,
        "joint_max_rho": joint,
        "joint_max_epsilon": epsilon_of(joint, delta),
        "parties": parties,
    }


def write_run(report: Mapping[str, Any], folder: Path) -> None:
    """Write ``model.json``, ``report.json`` and ``report.html``."""
    from colonnade.optim.model import LinearModel
    from colonnade.server.report import write_report

    try:
        write_report(report, folder)
        if report["model"] is not None:
            model = LinearModel.from_object(report["model"])
            (folder / "model.json").write_text(model.to_json(), "utf-8")
    except OSError as error:
        what = (error.strerror or "cannot be written").lower()
        raise BadInput(f"{error.filename or folder}: {what}") from None


def _chosen(offers: Sequence[PartyOffer], names: str | None) -> list[PartyOffer]:
    if names is None:
        chosen = [offer for offer in offers if offer.attached and offer.features]
        if not chosen:
            raise BadInput("no party is attached; see colonnade job parties")
        return chosen
    by_name = {offer.party: offer for offer in offers}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in by_name:
            raise BadInput(f"party {name!r} is not enrolled; see colonnade job parties")
    return [by_name[name] for name in wanted]


def _owner(offers: Sequence[PartyOffer], arguments: argparse.Namespace) -> str | None:
    """Return who alone holds the label, or None if every party uses its own copy."""
    holders = [
        offer.party
        for offer in offers
        if offer.label is not None and offer.label[0] == arguments.target
    ]
    if not holders:
        raise BadInput(f"no party offers the label {arguments.target!r}")
    everyone = len(holders) == len(offers)
    labels = arguments.labels or ("shared" if everyone else "sketched")
    if labels == Labels.SHARED.value:
        if not everyone:
            raise BadInput(f"--labels shared needs {arguments.target!r} at every party")
        return None
    owner = arguments.label_owner or holders[0]
    if owner not in holders:
        raise BadInput(f"party {owner!r} does not hold the label {arguments.target!r}")
    return str(owner)


def _label_bounds(offers: Sequence[PartyOffer], target: str, loss: Loss) -> Bounds:
    """Return the tightest bounds that a holder of the label offers; 0 and 1 for a class."""
    if loss is Loss.LOGISTIC:
        return Bounds(0.0, 1.0)
    found = [offer.label[1] for offer in offers if offer.label and offer.label[0] == target]
    return min(found, key=lambda bounds: bounds.half_width)
