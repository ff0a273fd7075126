"""A sealed job as the engine sees it: states as changes, tasks as bytes, a model in real units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.methods.moments.method import MOMENTS
from colonnade.methods.sealed.codec import task_to_bytes
from colonnade.methods.sealed.solver.replay import solved
from colonnade.methods.sealed.solver.steps import SealedSolver, SealedState
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.server.methods.base import (
    Bodies,
    Findings,
    count_used,
    model_under,
    whole_states,
)
from colonnade.server.methods.sealed.contribution import sealed_contribution
from colonnade.server.methods.sealed.state import decode_state, encode_state
from colonnade.server.methods.sealed.summary import gram_part, sealed_promise, sealed_section
from colonnade.server.store.base import IterateRow


@dataclass(frozen=True, slots=True)
class VerticalSealed:
    """Steps of one sealed job."""

    job: Job
    job_id: str
    spec: SealedSpec
    solver: SealedSolver

    @classmethod
    def of(cls, job: Job, job_id: str, spec: SealedSpec) -> "VerticalSealed":
        """Make the steps of ``job``, whose method is ``spec``."""
        return cls(job, job_id, spec, SealedSolver(spec))

    @property
    def account(self) -> str:
        """The ledger account that pays: the default one."""
        return ""

    def start(self) -> SealedState:
        """Return the state before the first round."""
        return self.solver.start()

    def round_of(self, state: SealedState) -> int:
        """Return the round that comes next."""
        return state.round

    def rounds(self, state: SealedState) -> int:
        """Return the rounds after the first."""
        del state
        return self.spec.rounds

    def finished(self, state: SealedState) -> bool:
        """Return whether all rounds are done."""
        return self.solver.finished(state)

    def tasks(self, state: SealedState) -> Mapping[str, bytes]:
        """Return the round's tasks by party."""
        asked = self.solver.tasks(state)
        return {party: task_to_bytes(task) for party, task in asked.items()}

    def check(self, state: SealedState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not fit."""
        self.solver.check(state, party, bodies)

    def absorb(self, state: SealedState, answers: Mapping[str, Bodies]) -> SealedState:
        """Return the state after the round."""
        return self.solver.absorb(state, answers)

    def encode(self, state: SealedState) -> bytes:
        """Return the bytes of a whole state."""
        return encode_state(self.spec, state)

    def encode_change(self, before: SealedState, after: SealedState) -> bytes:
        """Return the bytes of a state as a change of the one before."""
        return encode_state(self.spec, after, since=before)

    def decode(self, body: bytes, *, since: SealedState | None = None) -> SealedState:
        """Return the state that the bytes stand for."""
        return decode_state(self.spec, body, since=since)

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release, in units."""
        del round_
        return self.spec.cost(party, kind)

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.spec.body_bytes(party, kind)

    def model(self, state: SealedState) -> LinearModel:
        """Return the model so far."""
        solver = self.solver
        return linear_model(
            self.job, self.job_id, solver.coefficients(state), solver.intercept(state)
        )

    def features_used(self, state: SealedState) -> Mapping[str, int]:
        """Return how many features of each party the model so far uses."""
        return count_used(state.coef)

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        spec = self.spec
        return {
            "rounds": spec.rounds,
            "buckets": spec.buckets if spec.summed else 0,
            "key_groups": spec.groups,
            "label_lanes": spec.label_lanes,
            "keep": spec.keep or "all",
            "radius": spec.radius,
            "presence": spec.presence,
            "penalty": spec.penalty,
            "label_weight": spec.label_weight,
            "reach": spec.reach,
            "wide_reach": spec.wide_reach,
            "label_reach": spec.label_reach,
            "bucket_reach": spec.bucket_reach,
            "mean_units": spec.mean_units,
        }


def sealed_findings(
    algorithm: VerticalSealed,
    states: Iterable[tuple[IterateRow, SealedState]],
    *,
    is_open: bool,
) -> Findings:
    """Return what a report says of the rounds, and on which promise each release rests."""
    seen = list(states)
    found = whole_states(algorithm, seen, is_open=is_open)
    solver, state = algorithm.solver, seen[-1][1]
    summary = gram_part(solver, state)
    return replace(
        found,
        section=sealed_section(algorithm.spec),
        contribution=sealed_contribution(solver, state),
        promise=partial(sealed_promise, algorithm.spec, algorithm.job.delta),
        also={} if summary is None else {MOMENTS.section: summary},
    )


def solve_sealed(
    algorithm: VerticalSealed, state: SealedState, penalty: str, numbers: Mapping[str, float]
) -> LinearModel:
    """Return the model under another penalty: a function of releases."""
    return model_under(algorithm, partial(solved, algorithm.solver, state), penalty, numbers)
