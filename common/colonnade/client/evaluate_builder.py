"""From a finished job to its evaluation: who is scored, for whom, and what is then released."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from colonnade.client.align_builder import people_in_common
from colonnade.client.description import present_at, with_warnings
from colonnade.client.predict_builder import PredictOptions, Releases, author_prediction
from colonnade.client.results import JobDetails
from colonnade.client.views import PartyOffer
from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput, BudgetExceeded, DuplicateJob
from colonnade.data.model import LinearModel
from colonnade.methods.base import Member, Part
from colonnade.methods.evaluation.metrics import METRICS, expected_error
from colonnade.methods.evaluation.spec import BUCKETS, EvaluationSpec
from colonnade.methods.holdout import PARTS, rows_held_out
from colonnade.methods.job import Job
from colonnade.privacy.accounting import (
    epsilon_of,
    format_units,
    format_upper_bound,
    rho_from_units,
    rho_of,
    units_down,
)

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
    earlier
        What an earlier evaluation released, if there was one.

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
    earlier: Mapping[str, Any] | None = None

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
        """About how many of the releasing party's people were held out of the fit."""
        trained, rows = self.training.job, self._rows().size
        return round(min(self.present * trained.holdout / PARTS, rows))

    @property
    def expected_error(self) -> float:
        """The standard error to expect of the quality that is released."""
        return expected_error(self.release(_NO_RUN).method, self.present)  # type: ignore[arg-type]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before anything is spent."""
        return tuple(self.description["warnings"])

    @property
    def description(self) -> dict[str, Any]:
        """What ``colonnade job evaluate --dry-run --json`` prints."""
        return with_warnings(
            {
                "party": self.party,
                "metric": METRICS[self.training.job.method.loss],
                "epsilon": self.epsilon,
                "people": self.people,
                "expected_error": self.expected_error,
            }
        )

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
    report = client.report(training.view.job_id)
    model = report.model
    if model is None or training.view.state != "finished":
        raise BadInput(f"job {training.view.job_id[:12]} has no finished model to evaluate")
    offers = client.parties()
    earlier = report.document.get("evaluation")
    plan = EvaluationPlan(training, model, options, offers, 0.0, timeout_s, earlier)
    job = plan.release(_NO_RUN)  # before anybody is scored
    people = people_in_common(offers, client.alignment)
    return replace(plan, present=present_at(job.evaluator, job.population, people))


def submit_evaluation(
    client: "Client", plan: EvaluationPlan, run: str | None, *, again: bool = False
) -> str:
    """Have people scored, unless ``run`` did that, then measured; return the last job's name."""
    if plan.earlier is not None and not again:
        raise DuplicateJob(
            f"job {plan.training.view.job_id[:12]} was evaluated before, for epsilon "
            f"{format_upper_bound(plan.earlier['epsilon'])}: its report has the result; asking "
            "again spends again"
        )
    if run is None:
        run = client.submit(plan.prediction(client.releases(plan.training.view.job_id)))
        client.wait(run)
    return client.submit(plan.release(client.show(run).view.job_id), again=again)
