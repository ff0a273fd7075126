"""Moments as the engine sees them: states and tasks as bytes, prices, the model in real units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from colonnade.data.model import LinearModel
from colonnade.methods.job import Job
from colonnade.methods.models import linear_model
from colonnade.methods.moments.codec import task_to_bytes
from colonnade.methods.moments.solver.contribution import moments_contribution
from colonnade.methods.moments.solver.solutions import moments_summary, solved
from colonnade.methods.moments.solver.state import decode_state, encode_state
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.server.methods.base import (
    Bodies,
    Findings,
    count_used,
    model_under,
    whole_states,
)
from colonnade.server.store.base import IterateRow


@dataclass(frozen=True, slots=True)
class VerticalMoments:
    """Steps of one moments job."""

    job: Job
    job_id: str
    spec: MomentsSpec
    solver: MomentsSolver

    @classmethod
    def of(cls, job: Job, job_id: str, spec: MomentsSpec) -> "VerticalMoments":
        """Make the steps of ``job``, whose method is ``spec``."""
        return cls(job, job_id, spec, MomentsSolver(spec, job_id))

    def start(self) -> MomentsState:
        """Return the state before the first round."""
        return self.solver.start()

    def round_of(self, state: MomentsState) -> int:
        """Return the round that comes next."""
        return state.round

    def finished(self, state: MomentsState) -> bool:
        """Return whether all rounds are done."""
        return self.solver.finished(state)

    def tasks(self, state: MomentsState) -> Mapping[str, bytes]:
        """Return the round's tasks by party."""
        asked = self.solver.tasks(state)
        return {party: task_to_bytes(task) for party, task in asked.items()}

    def check(self, state: MomentsState, party: str, bodies: Bodies) -> None:
        """Refuse an answer that does not fit."""
        self.solver.check(state, party, bodies)

    def absorb(self, state: MomentsState, answers: Mapping[str, Bodies]) -> MomentsState:
        """Return the state after the round."""
        return self.solver.absorb(state, answers)

    def encode(self, state: MomentsState) -> bytes:
        """Return the state's bytes."""
        return encode_state(self.spec, state)

    def decode(self, body: bytes, *, since: MomentsState | None = None) -> MomentsState:
        """Return the state that the bytes stand for: whole, whatever came before."""
        del since
        return decode_state(self.spec, body)

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release, in units; the same in every round."""
        del round_
        return self.spec.cost(party, kind)

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.spec.body_bytes(party, kind)

    def model(self, state: MomentsState) -> LinearModel:
        """Return the model so far."""
        solver = self.solver
        return linear_model(
            self.job, self.job_id, solver.coefficients(state), solver.intercept(state)
        )

    def features_used(self, state: MomentsState) -> Mapping[str, int]:
        """Return how many features of each party the model so far uses."""
        return count_used(state.coef)

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        spec = self.spec
        return {
            "rounds": spec.rounds,
            "directions": spec.directions if spec.shares() else 0,
            "probes": spec.probes if spec.shares() else 0,
            "sketch_dim": spec.sketch_dim,
            "keep": spec.keep or "all",
            "radius": spec.radius,
            "presence": spec.presence,
            "penalty": spec.penalty,
            "label_weight": spec.label_weight,
            "reach": spec.reach,
            "share_clip": spec.share_clip,
            "probe_clip": spec.probe_clip,
            "cross_clip": spec.cross_clip,
            "mean_units": spec.mean_units,
            "label_units": spec.label_units,
            "marginal_units": spec.marginal_units,
            "screen_units": spec.screen_units,
            "gram_units": spec.gram_units,
            "share_units": spec.share_units,
            "cross_units": spec.cross_units,
        }


def moments_findings(
    algorithm: VerticalMoments,
    states: Iterable[tuple[IterateRow, MomentsState]],
    *,
    is_open: bool,
) -> Findings:
    """Return what a report says of the rounds, and what else the releases tell."""
    seen = list(states)
    found = whole_states(algorithm, seen, is_open=is_open)
    solver, last = algorithm.solver, seen[-1][1]
    return replace(
        found,
        section=moments_summary(solver, last),
        contribution=moments_contribution(solver, last),
    )


def solve_again(
    algorithm: VerticalMoments, state: MomentsState, penalty: str, numbers: Mapping[str, float]
) -> LinearModel:
    """Return the model under another penalty: a function of releases."""
    return model_under(algorithm, partial(solved, algorithm.solver, state), penalty, numbers)
