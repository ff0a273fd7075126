"""What the coordinator asks of a method: pure steps from state to tasks and from answers to state.

A new vertical method is one module here and one at the party; the engine, store, meter and report
know only this. What a job over clients needs besides is in `server.admm_job`.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.methods.admm.method import AdmmMethod
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.methods.moments.spec import MomentsSpec

S = TypeVar("S")
A_contra = TypeVar("A_contra", contravariant=True)  # a party's answer

Bodies = Mapping[str, bytes]  # by kind


class Algorithm(Protocol[S, A_contra]):
    """The steps of one job. States are values; nothing here does I/O."""

    def start(self) -> S:
        """Return the state before the opening."""

    def round_of(self, state: S) -> int:
        """Return the round that comes next; 0 is the opening."""

    def finished(self, state: S) -> bool:
        """Return whether all rounds are done."""

    def tasks(self, state: S) -> Mapping[str, bytes]:
        """Return the round's tasks by party; none if the round asks nothing."""

    def check(self, state: S, party: str, bodies: A_contra, /) -> None:
        """Raise `BadInput` unless the answer has the kinds and sizes that the state calls for."""

    def absorb(self, state: S, answers: Mapping[str, A_contra]) -> S:
        """Return the state after the round."""

    def encode(self, state: S) -> bytes:
        """Return the state's bytes."""

    def decode(self, body: bytes) -> S:
        """Return the state that the bytes stand for."""

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release, in units."""

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""

    def model(self, state: S) -> LinearModel:
        """Return the model so far."""

    def features_used(self, state: S) -> Mapping[str, int]:
        """Return how many features of each party the model uses; {} if all have the same ones."""

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers, for the report."""


def algorithm_of(job: Job, job_id: str) -> Algorithm[Any, Any]:
    """Return the steps of a job."""
    from colonnade.server.methods.admm.job import FederatedAdmm
    from colonnade.server.methods.frank_wolfe.job import VerticalFrankWolfe
    from colonnade.server.methods.moments.job import VerticalMoments

    match job.method:
        case FrankWolfeSpec() as spec:
            return VerticalFrankWolfe.of(job, job_id, spec)
        case MomentsSpec() as spec:
            return VerticalMoments.of(job, job_id, spec)
        case AdmmMethod() as method:
            return FederatedAdmm.of(job, job_id, method)


def count_used(coef: Mapping[str, AnyArray]) -> dict[str, int]:
    """Return how many coefficients of each party are not 0."""
    return {party: int(np.count_nonzero(part)) for party, part in coef.items()}


def linear_model(
    job: Job, job_id: str, coef: Mapping[str, FloatArray], intercept: float
) -> LinearModel:
    """Return a job's model from coefficients on scaled features and label, by party."""
    features = tuple(
        ModelFeature(member.party, name, bounds.low, bounds.high, fill, float(value))
        for member in job.members
        for name, bounds, fill, value in zip(
            member.features, member.bounds, member.fills, coef[member.party], strict=True
        )
    )
    return LinearModel(
        job_id=job_id,
        loss=job.method.loss.value,
        label=ModelLabel(job.label, job.label_bounds.low, job.label_bounds.high),
        intercept_scaled=intercept,
        features=features,
        private=True,
    )
