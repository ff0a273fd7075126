"""The coordinator's side of an evaluation: one round, one release, arithmetic on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.evaluation.metrics import evaluated
from colonnade.methods.evaluation.spec import SUMS, EvaluationSpec
from colonnade.methods.job import Job
from colonnade.methods.messages import read
from colonnade.server.methods.base import Bodies
from colonnade.v1 import evaluation_pb2 as pb


@dataclass(frozen=True, slots=True)
class EvaluationState:
    """The state before round ``round``; the sums as they were released."""

    round: int
    sums: bytes = b""


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """The steps of one evaluation: an opening that asks nothing, and a round."""

    spec: EvaluationSpec
    party: str

    @classmethod
    def of(cls, job: Job, job_id: str, spec: EvaluationSpec) -> "EvaluationJob":
        """Return the steps of a job."""
        del job, job_id
        return cls(spec, spec.part.party)

    def start(self) -> EvaluationState:
        """Return the state before the opening."""
        return EvaluationState(0)

    def round_of(self, state: EvaluationState) -> int:
        """Return the round that comes next."""
        return state.round

    def finished(self, state: EvaluationState) -> bool:
        """Return whether the release is there."""
        return state.round > 1

    def tasks(self, state: EvaluationState) -> Mapping[str, bytes]:
        """Return the round's task; none in the opening."""
        if state.round != 1:
            return {}
        return {self.party: pb.EvaluationTask().SerializeToString(deterministic=True)}

    def check(self, state: EvaluationState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not fit."""
        expected = {SUMS} if state.round == 1 and party == self.party else set()
        if set(bodies) != expected:
            raise BadInput(f"round {state.round} expects other releases of party {party!r}")
        for body in bodies.values():
            if len(body) != (size := self.spec.body_bytes(party, SUMS)):
                raise BadInput(f"the sums of party {party!r} have {len(body)} bytes, not {size}")

    def absorb(self, state: EvaluationState, answers: Mapping[str, Bodies]) -> EvaluationState:
        """Return the state after the round."""
        if state.round == 0:
            return replace(state, round=1)
        return EvaluationState(2, answers[self.party][SUMS])

    def encode(self, state: EvaluationState) -> bytes:
        """Return the state's bytes."""
        message = pb.EvaluationState(round=state.round, sums=state.sums)
        return message.SerializeToString(deterministic=True)

    def decode(self, body: bytes, *, since: EvaluationState | None = None) -> EvaluationState:
        """Return the state that the bytes stand for."""
        del since
        message = read(pb.EvaluationState, body, "the state of an evaluation")
        return EvaluationState(message.round, message.sums)

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of the release."""
        del kind, round_
        return self.spec.max_units(party)

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of the release's payload."""
        return self.spec.body_bytes(party, kind)

    def model(self, state: EvaluationState) -> LinearModel:
        """Return the model that is evaluated."""
        del state
        return self.spec.fitted()

    def features_used(self, state: EvaluationState) -> Mapping[str, int]:
        """Return nothing: an evaluation fits nothing."""
        del state
        return {}

    def parameters(self) -> Mapping[str, Any]:
        """Return the public numbers."""
        spec = self.spec
        return {
            "training": spec.training,
            "run": spec.run,
            "holdout": spec.holdout,
            "units": spec.units,
            "buckets": spec.buckets,
        }

    def result(self, state: EvaluationState) -> dict[str, Any] | None:
        """Return what the release says; None before it is there."""
        if not self.finished(state):
            return None
        sums = np.frombuffer(state.sums, "<i8").astype(np.int64)
        return {"party": self.party, **evaluated(self.spec, sums)}
