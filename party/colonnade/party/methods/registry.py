"""The party's side of every method, by kind."""

from collections.abc import Callable
from typing import Any

from colonnade.core.errors import PolicyRefused
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.method import ADMM
from colonnade.methods.evaluation.method import EVALUATION
from colonnade.methods.frank_wolfe.method import FRANK_WOLFE
from colonnade.methods.job import Job
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.sealed.method import SEALED_METHOD
from colonnade.methods.sealed.ring import available
from colonnade.party.methods.admm import AdmmAnswers
from colonnade.party.methods.admm_cohort import CohortAnswers
from colonnade.party.methods.base import Answers, JobContext
from colonnade.party.methods.evaluation import EvaluationAnswers
from colonnade.party.methods.frank_wolfe import FrankWolfeAnswers
from colonnade.party.methods.moments import MomentsAnswers
from colonnade.party.methods.sealed import SealedAnswers

PartySide = Callable[[Any, JobContext], Answers]  # from a job's specification

_SIDES: dict[str, PartySide] = {}


def register(kind: str, side: PartySide) -> None:
    """Make the party's side of a method known."""
    if _SIDES.setdefault(kind, side) != side:
        raise ValueError(f"there is another party's side of {kind!r}")


def side_of(kind: str) -> PartySide:
    """Return the party's side; `PolicyRefused` if this party cannot answer such jobs."""
    if kind not in _SIDES:
        raise PolicyRefused(f"this party does not answer jobs of kind {kind!r}")
    return _SIDES[kind]


def answers_of(job: Job, context: JobContext) -> Answers:
    """Return the party's side of ``job``."""
    return side_of(job.kind)(job.method, context)


def _admm(method: AdmmJobSpec, context: JobContext) -> Answers:
    """Return the side of a host: its clients' answers, their sum, or their sum under masks."""
    if (rules := method.spec.cohort_rules) is not None:
        return CohortAnswers.of(method, rules, context)
    return AdmmAnswers.of(method, context)


register(FRANK_WOLFE.kind, FrankWolfeAnswers.of)
register(MOMENTS.kind, MomentsAnswers.of)
register(ADMM.kind, _admm)
register(EVALUATION.kind, EvaluationAnswers.of)
if available():  # the extra ``sealed``; a party without it does not offer the method
    register(SEALED_METHOD.kind, SealedAnswers.of)
