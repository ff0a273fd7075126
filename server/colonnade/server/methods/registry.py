"""The coordinator's side of every method, by kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from colonnade.core.errors import BadMessage
from colonnade.data.model import LinearModel
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.method import ADMM
from colonnade.methods.alignment.method import ALIGNMENT
from colonnade.methods.evaluation.method import EVALUATION
from colonnade.methods.frank_wolfe.method import FRANK_WOLFE
from colonnade.methods.job import Job
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.prediction.method import PREDICTION
from colonnade.methods.sealed.method import SEALED_METHOD
from colonnade.server.engine.all_answer import AllAnswer
from colonnade.server.engine.cohort import Cohort
from colonnade.server.engine.strategy import Strategy
from colonnade.server.methods.admm.exchange_rounds import SecureSum
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.admm.secure_sum import SecureSumAdmm
from colonnade.server.methods.admm.summary import admm_findings
from colonnade.server.methods.alignment_job import AlignmentJob, alignment_findings
from colonnade.server.methods.base import Algorithm, Findings, whole_states
from colonnade.server.methods.deviations import Deviations
from colonnade.server.methods.evaluation import EvaluationJob
from colonnade.server.methods.frank_wolfe.job import frank_wolfe_deviations, frank_wolfe_job
from colonnade.server.methods.moments.deviations import moments_deviations
from colonnade.server.methods.moments.job import moments_findings, moments_job, solve_again
from colonnade.server.methods.prediction import PredictionJob, prediction_findings
from colonnade.server.methods.sealed.job import sealed_findings, sealed_job, solve_sealed


@dataclass(frozen=True, slots=True)
class CoordinatorSide:
    """What the coordinator needs of a method.

    Parameters
    ----------
    algorithm
        Make the steps of a job from the job, its name and its specification.
    strategy
        Make what says for whose answers the job's rounds wait, from its steps and the time.
    findings
        Return what a report says of the job's rounds, from its states.
    solve
        Return another model from the releases of a finished job, by the name of a penalty and its
        numbers; None for a method with one solution.
    deviations
        Return what releases tell of features' standard deviations, from the steps and a state.
    """

    algorithm: Callable[[Job, str, Any], Algorithm[Any, Any]]
    strategy: Callable[[Any, float], Strategy] = AllAnswer.of
    findings: Callable[..., Findings] = whole_states
    solve: Callable[..., LinearModel] | None = None
    deviations: Callable[[Any, Any], Deviations] = lambda _algorithm, _state: {}


_SIDES: dict[str, CoordinatorSide] = {}


def register(kind: str, side: CoordinatorSide) -> None:
    """Make the coordinator's side of a method known."""
    if _SIDES.setdefault(kind, side) is not side:
        raise ValueError(f"there is another coordinator's side of {kind!r}")


def side_of(kind: str) -> CoordinatorSide:
    """Return the coordinator's side; `BadMessage` if this coordinator cannot run such jobs."""
    if kind not in _SIDES:
        raise BadMessage(f"this coordinator does not run jobs of kind {kind!r}")
    return _SIDES[kind]


def algorithm_of(job: Job, job_id: str) -> Algorithm[Any, Any]:
    """Return the steps of a job."""
    return side_of(job.kind).algorithm(job, job_id, job.method)


def _admm(job: Job, job_id: str, method: AdmmJobSpec) -> FederatedAdmm | SecureSumAdmm:
    """Return the steps of a job over clients, in which hosts may open nothing but a sum."""
    if (rules := method.spec.cohort_rules) is not None:
        return SecureSumAdmm.of(job, job_id, method, rules)
    return FederatedAdmm.of(job, job_id, method)


def _strategy_of_admm(algorithm: FederatedAdmm | SecureSumAdmm, now: float) -> Strategy:
    if isinstance(algorithm, SecureSumAdmm):
        return SecureSum.of(algorithm, now)
    return Cohort.of(algorithm, now)


register(FRANK_WOLFE.kind, CoordinatorSide(frank_wolfe_job, deviations=frank_wolfe_deviations))
register(
    MOMENTS.kind,
    CoordinatorSide(
        moments_job,
        findings=moments_findings,
        solve=solve_again,
        deviations=moments_deviations,
    ),
)
register(
    SEALED_METHOD.kind,
    CoordinatorSide(sealed_job, AllAnswer.relayed, findings=sealed_findings, solve=solve_sealed),
)
register(ADMM.kind, CoordinatorSide(_admm, _strategy_of_admm, admm_findings))
register(EVALUATION.kind, CoordinatorSide(EvaluationJob.of))
register(PREDICTION.kind, CoordinatorSide(PredictionJob.of, AllAnswer.relayed, prediction_findings))
register(ALIGNMENT.kind, CoordinatorSide(AlignmentJob.of, AllAnswer.relayed, alignment_findings))
