"""What a job will do and cost, from public numbers, for people and for ``--json``."""

from collections.abc import Iterable, Mapping
from typing import Any

from colonnade.client.views import PartyOffer
from colonnade.methods.base import MethodSpec, payload
from colonnade.methods.evaluation.metrics import METRICS, usual_error
from colonnade.methods.evaluation.rows import CLASS_SENSITIVITY2, VALUE_SENSITIVITY2
from colonnade.methods.evaluation.spec import BUCKETS
from colonnade.methods.holdout import PARTS
from colonnade.methods.job import Job
from colonnade.methods.problem import Loss
from colonnade.methods.registry import method_of
from colonnade.privacy.accounting import epsilon_of, format_upper_bound, rho_from_units
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.wire.notes import bounds_note, expected_note

_TELLING_ERROR = 0.25  # beyond it, the best of models and the worst look alike


def describe(
    job: Job, offers: Iterable[PartyOffer], people: Mapping[tuple[str, ...], int] | None = None
) -> dict[str, Any]:
    """Return what a job will do and cost, and what bounds cost before, from public numbers.

    ``people`` are the counts of one party or several that an alignment released.
    """
    method, spec, delta = method_of(job.kind), job.method, job.delta
    bounds = _bounds_paid(job, offers)
    parties = {}
    for member in job.members:
        rho = rho_from_units(job.max_units(member.party))
        parties[member.party] = {
            "features": len(member.features),
            **method.describe(spec, member.party),
            "max_rho": rho,
            "max_epsilon": epsilon_of(rho, delta),
            **_with_bounds(job.max_units(member.party), bounds[member.party], delta),
            "max_payload_bytes": payload(spec, member.party),
        }
    most = job.unit.joint(job.max_units(member.party) for member in job.members)
    joint, paid = rho_from_units(most), list(bounds.values())
    known = [units for units in paid if units is not None]
    in_all = _with_bounds(most, sum(known) if len(known) == len(paid) else None, delta)
    return {
        "name": job.name,
        "purpose": job.purpose,
        "requested_by": job.requested_by,
        "method": job.kind,
        "label": job.label,
        "labels": spec.labels.value,
        "loss": spec.loss.value,
        "rows": job.population,
        "rounds": spec.rounds,
        "sketch_dim": spec.sketch_dim,
        "delta": delta,
        "joint_max_rho": joint,
        "joint_max_epsilon": epsilon_of(joint, delta),
        **{f"joint_{name}": value for name, value in in_all.items()},
        "bounds_note": bounds_note(bounds),
        "expected_idle": expected_idle(spec),
        **({} if (told := evaluation_plan(job, people)) is None else {"evaluation": told}),
        "promise": method.promise(spec, delta),
        "parties": parties,
    }


def expected_idle(spec: MethodSpec) -> list[dict[str, Any]]:
    """Return the parties of which no feature is likely to be in the model, each with a note."""
    found = method_of(spec.kind).idle(spec)
    return [
        {"party": party, "error": error, "note": expected_note(party, error)}
        for party, error in found.items()
    ]


def _bounds_paid(job: Job, offers: Iterable[PartyOffer]) -> dict[str, int | None]:
    """Return what parties paid for bounds of the tables that a job names; None if not known."""
    told: Mapping[tuple[str, str], int] = {
        (offer.party, offer.dataset): offer.bounds_units for offer in offers
    }
    return {each.party: told.get((each.party, each.dataset)) for each in job.members}


def _with_bounds(most: int, bounds: int | None, delta: float) -> dict[str, float | None]:
    """Return what bounds cost, and with what the job may cost: the total; None if not known."""
    if bounds is None:
        return dict.fromkeys(("bounds_rho", "bounds_epsilon", "total_rho", "total_epsilon"))
    paid, total = rho_from_units(bounds), rho_from_units(bounds + most)
    return {
        "bounds_rho": paid,
        "bounds_epsilon": epsilon_of(paid, delta),
        "total_rho": total,
        "total_epsilon": epsilon_of(total, delta),
    }


def evaluation_plan(
    job: Job, people: Mapping[tuple[str, ...], int] | None = None
) -> dict[str, Any] | None:
    """Return the cost and expected error of the evaluation that a job reserves for; None without.

    ``people`` are an alignment's released counts: rows of an aligned table are not all people
    of the evaluator's, and only those count.
    """
    if not job.evaluation_units:
        return None
    rows = job.population * PARTS / (PARTS - job.holdout)  # fitted or not
    present = present_at(job.evaluator, rows, people or {})
    terms = evaluation_terms(
        job.evaluator,
        job.evaluation_units,
        people=present * job.holdout / PARTS,
        loss=job.method.loss,
        delta=job.delta,
    )
    return with_warnings(terms)


def with_warnings(terms: dict[str, Any]) -> dict[str, Any]:
    """Add warnings about an evaluation on these terms."""
    found = list[str]()
    if terms["expected_error"] > _TELLING_ERROR:
        found.append(
            f"an evaluation for epsilon {format_upper_bound(terms['epsilon'])} on "
            f"{terms['people']} people tells little: the standard error of "
            f"{terms['metric'].upper()} would be about {terms['expected_error']:.2g}; more "
            "epsilon, or more people kept out, makes it smaller"
        )
    return terms | {"warnings": found}


def present_at(party: str, rows: float, people: Mapping[tuple[str, ...], int]) -> float:
    """Return about how many rows are people of the party's; all, without a count."""
    return min(float(people.get((party,), rows)), rows)


def evaluation_terms(
    party: str, units: int, *, people: float, loss: Loss, delta: float
) -> dict[str, Any]:
    """Return the cost and expected error of an evaluation, from public numbers."""
    squared = CLASS_SENSITIVITY2 if loss is Loss.LOGISTIC else VALUE_SENSITIVITY2
    noise = DiscreteGaussian.within(units, l2_sensitivity2=squared)
    rho = rho_from_units(noise.cost)
    return {
        "party": party,
        "metric": METRICS[loss],
        "people": round(people),
        "rho": rho,
        "epsilon": epsilon_of(rho, delta),
        "expected_error": usual_error(max(people, 2.0), BUCKETS[loss], noise.sigma2, loss),
    }
