"""From a finished job to its evaluation: who is scored, for whom, and what is then released."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from colonnade.client.align_builder import people_in_common
from colonnade.client.predict_builder import PredictOptions, Releases, author_prediction
from colonnade.client.results import JobDetails
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.data.model import LinearModel
from colonnade.methods.base import Member, Part
from colonnade.methods.evaluation.metrics import expected_error, usual_error
from colonnade.methods.evaluation.rows import CLASS_SENSITIVITY2, VALUE_SENSITIVITY2
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.holdout import PARTS, rows_held_out
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

if TYPE_CHECKING:
    from colonnade.client.client import Client

_USUAL_EPSILON = 0.1
_NO_RUN = "0" * 64  # of a plan: the prediction comes later


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


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What an evaluation will do and cost; nothing is spent by looking.

    Parameters
    ----------
    training
        The job whose model is measured.
    present
        About how many rows are people of the party that releases.

    Examples
    --------
    ``plan = client.plan_evaluation(job_id)``; then ``plan.epsilon``, ``plan.expected_error`` and
    ``client.evaluate(plan)``.
    """

    training: JobDetails
    model: LinearModel
    options: EvaluateOptions
    offers: Sequence[PartyOffer]
    present: float
    timeout_s: int

    @property
    def party(self) -> str:
        """Who is sent the scores and releases."""
        return evaluator_of(self.training.job, self.options).party

    @property
    def epsilon(self) -> float:
        """What the release costs."""
        job = self.release(_NO_RUN)
        return epsilon_of(rho_from_units(job.max_units(job.evaluator)), job.delta)

    @property
    def people(self) -> int:
        """How many rows were held out of the fit."""
        return int(self._rows().size)

    @property
    def expected_error(self) -> float:
        """The standard error to expect of the quality that is released."""
        return expected_error(self.release(_NO_RUN).method, self.present)  # type: ignore[arg-type]

    @property
    def description(self) -> dict[str, Any]:
        """What ``colonnade job evaluate --dry-run --json`` prints."""
        return {
            "party": self.party,
            "epsilon": self.epsilon,
            "people": self.people,
            "expected_error": self.expected_error,
        }

    def prediction(self, releases: Releases) -> Job:
        """Return the job that scores the held-out people."""
        return author_prediction(
            self.training.spec,
            releases,
            self._rows(),
            PredictOptions(self.party, self.options.purpose),
            offers=self.offers,
            timeout_s=self.timeout_s,
        )

    def release(self, run: str) -> Job:
        """Return the job in which the scores of the prediction ``run`` are measured."""
        return author_evaluation(
            self.training.view.job_id,
            self.training.job,
            run,
            self.model,
            self.options,
            offers=self.offers,
            timeout_s=self.timeout_s,
        )

    def _rows(self) -> IntArray:
        n_rows = next(each.population for each in self.offers if each.party == self.party)
        return rows_held_out(n_rows, self.training.job.holdout)


def plan_evaluation(
    client: "Client", job_id: str, options: EvaluateOptions, *, timeout_s: int
) -> EvaluationPlan:
    """Return what an evaluation of a finished job's model would do and cost."""
    training = client.show(job_id)
    model = client.report(training.view.job_id).model
    if model is None or training.view.state != "finished":
        raise BadInput(f"job {training.view.job_id[:12]} has no finished model to evaluate")
    offers = client.parties()
    plan = EvaluationPlan(training, model, options, offers, 0.0, timeout_s)
    job = plan.release(_NO_RUN)  # before anybody is scored
    people = people_in_common(offers, client.alignment)
    return replace(plan, present=present_at(job.evaluator, job.population, people))


def submit_evaluation(client: "Client", plan: EvaluationPlan, run: str | None) -> str:
    """Have people scored, unless ``run`` did that, then measured; return the last job's name."""
    if run is None:
        run = client.submit(plan.prediction(client.releases(plan.training.view.job_id)))
        client.wait(run)
    return client.submit(plan.release(client.show(run).view.job_id))


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
    return evaluation_terms(
        job.evaluator,
        job.evaluation_units,
        people=present * job.holdout / PARTS,
        loss=job.method.loss,
        delta=job.delta,
    )


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
        "metric": "auc" if loss is Loss.LOGISTIC else "r2",
        "people": round(people),
        "rho": rho,
        "epsilon": epsilon_of(rho, delta),
        "expected_error": usual_error(max(people, 2.0), BUCKETS[loss], noise.sigma2, loss),
    }
