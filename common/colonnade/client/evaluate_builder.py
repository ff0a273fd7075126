"""From a finished job to its evaluation: who is scored, for whom, and what is then released."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.data.model import LinearModel
from colonnade.methods.base import Member, Part
from colonnade.methods.evaluation.metrics import usual_error
from colonnade.methods.evaluation.rows import CLASS_SENSITIVITY2, VALUE_SENSITIVITY2
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.holdout import PARTS
from colonnade.methods.job import Job
from colonnade.methods.problem import Loss
from colonnade.privacy.accounting import (
    epsilon_of,
    format_units,
    rho_from_units,
    rho_of,
    units_down,
)
from colonnade.privacy.mechanisms import DiscreteGaussian

_USUAL_EPSILON = 0.1


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """How a model is evaluated.

    Parameters
    ----------
    epsilon
        What the one release costs, with the delta of the training job; by default what that job set
        aside for it, or else 0.1.
    purpose
        What people are scored for; every party's grant of the prediction must say the same.
    party
        Who is sent the scores and releases; by default the first party that holds the label.

    Examples
    --------
    >>> EvaluateOptions().purpose
    'evaluation'
    """

    epsilon: float | None = None
    purpose: str = "evaluation"
    party: str | None = None

    def units(self, trained: Job) -> int:
        """Return the price of the release."""
        if self.epsilon is None and trained.evaluation_units:
            return trained.evaluation_units
        epsilon = _USUAL_EPSILON if self.epsilon is None else self.epsilon
        if not 0.0 < epsilon < 1000.0:
            raise BadArgument("epsilon", "must lie between 0 and 1000")
        return units_down(rho_of(epsilon, trained.delta))


def evaluator_of(trained: Job, options: EvaluateOptions) -> Member:
    """Return the party that is sent the scores; `BadInput` if it cannot be."""
    if not trained.holdout:
        raise BadInput("the job kept nobody out of its fit: there is nobody to evaluate it on")
    holders = [member for member in trained.members if member.holds_label]
    if options.party is None:
        return holders[0]
    for member in holders:
        if member.party == options.party:
            return member
    raise BadArgument("party", f"must hold the label, as {', '.join(m.party for m in holders)} do")


def author_evaluation(
    training: str,
    trained: Job,
    run: str,
    model: LinearModel,
    options: EvaluateOptions,
    *,
    offers: Sequence[PartyOffer],
    name: str | None = None,
    timeout_s: int = 3600,
) -> Job:
    """Return the job in which the evaluator releases what the scores of ``run`` say.

    Parameters
    ----------
    training, trained
        The finished job: its name, and what it was.
    run
        The name of the prediction that sent the scores.
    model
        The model that they are of.
    """
    member = evaluator_of(trained, options)
    offer = next((each for each in offers if each.party == member.party), None)
    if offer is None or offer.dataset != member.dataset:
        raise BadInput(f"party {member.party} has another table by now, or is not enrolled")
    units = options.units(trained)
    kept = trained.units_kept(member.party)  # counted as used until an evaluation uses it
    if units > offer.left_units + kept:
        raise BudgetExceeded(
            f"the evaluation costs party {member.party} {format_units(units, trained.delta)}, but "
            f"its ledger has {format_units(offer.left_units, trained.delta, left=True)} left"
        )
    try:
        spec = EvaluationSpec(
            training=training,
            run=run,
            model=model.to_json(),
            holdout=trained.holdout,
            n_rows=offer.population,
            part=Part(member.party, member.features, member.holds_label, member.groups),
            units=units,
            buckets=BUCKETS[trained.method.loss],
            loss=trained.method.loss,
        )
        return Job(
            name=name or f"evaluation of {trained.name}",
            salt=secrets.token_bytes(16),
            delta=trained.delta,
            party_timeout_s=timeout_s,
            members=(member,),
            label=trained.label,
            label_bounds=trained.label_bounds,
            method=spec,
            purpose=trained.purpose,
        )
    except ValueError as error:
        raise BadInput(f"no such evaluation: {error}") from None


def evaluation_plan(
    job: Job, people: Mapping[tuple[str, ...], int] | None = None
) -> dict[str, Any] | None:
    """Return what the evaluation that a job sets aside for will cost and tell; None without.

    ``people`` are the counts that an alignment told: rows of an aligned table are not all people
    of the evaluator's, and only those count.
    """
    if not job.evaluation_units:
        return None
    rows = job.population * PARTS / (PARTS - job.holdout)  # fitted or not
    present = present_at(job.evaluator, rows, people or {})
    return evaluation_terms(
        job.evaluator,
        job.evaluation_units,
        people=present * job.holdout / PARTS,
        loss=job.method.loss,
        delta=job.delta,
    )


def present_at(party: str, rows: float, people: Mapping[tuple[str, ...], int]) -> float:
    """Return about how many of the rows are people of the party's; all, if nothing was told."""
    return min(float(people.get((party,), rows)), rows)


def evaluation_terms(
    party: str, units: int, *, people: float, loss: Loss, delta: float
) -> dict[str, Any]:
    """Return what an evaluation on so many people costs and tells, from public numbers."""
    squared = CLASS_SENSITIVITY2 if loss is Loss.LOGISTIC else VALUE_SENSITIVITY2
    noise = DiscreteGaussian.within(units, l2_sensitivity2=squared)
    rho = rho_from_units(noise.cost)
    return {
        "party": party,
        "metric": "auc" if loss is Loss.LOGISTIC else "r2",
        "people": round(people),
        "rho": rho,
        "epsilon": epsilon_of(rho, delta),
        "expected_error": usual_error(max(people, 2.0), BUCKETS[loss], noise.sigma2, loss),
    }
