"""Federated ADMM as the engine sees it: states, tasks and answers by party, prices, the model.

Its jobs take the strategy `engine.cohort`: a round may close with those who answered.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.data.model_file import LossName
from colonnade.methods.admm.codec import asked_in, step_in, tasks_to_bytes, without_points
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.releases import WHOLE
from colonnade.methods.job import Job
from colonnade.methods.models import model_encodings, model_features, model_label
from colonnade.server.methods.admm.state import (
    SEED_BYTES,
    AdmmState,
    decode_change,
    decode_state,
    encode_change,
    encode_state,
)
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.wire.cohort import ClientAnswers, concat

# Whose the columns of the model are: every client has them.
EVERYONE = "clients"


@dataclass(frozen=True, slots=True)
class FederatedAdmm:
    """Steps of one job over clients; a state is used up by the step to the next one."""

    job: Job
    job_id: str
    method: AdmmJobSpec
    solver: AdmmCoordinator

    @classmethod
    def of(cls, job: Job, job_id: str, method: AdmmJobSpec) -> "FederatedAdmm":
        """Make the steps of ``job``, whose method is ``method``."""
        return cls(job, job_id, method, AdmmCoordinator(method.spec))

    def start(self) -> AdmmState:
        """Return the state before round 1; who is sampled is this coordinator's secret."""
        return self.solver.start(secrets.token_bytes(SEED_BYTES))

    def round_of(self, state: AdmmState) -> int:
        """Return the number under which messages go: that of the drawing."""
        return state.drawing

    def rounds_done(self, state: AdmmState) -> int:
        """Return how many rounds had their minimum."""
        return state.round - 1

    def finished(self, state: AdmmState) -> bool:
        """Return whether all rounds are done, or too few clients are left."""
        return self.solver.finished(state)

    def tasks(self, state: AdmmState) -> Mapping[str, bytes]:
        """Return the drawing's tasks by party."""
        asked, tasks = self.solver.tasks(state), {}
        for part in self.method.parts:
            first = self.method.first(part.party)
            mine = (asked.clients >= first) & (asked.clients < first + part.clients)
            if mine.any():
                tasks[part.party] = tasks_to_bytes(asked.only(mine).shifted(-first))
        return tasks

    def release_kind(self, task: bytes) -> str:
        """Return the kind of release that a task asks for."""
        return self.method.spec.release(step_in(task)).kind

    @property
    def round_timeout_s(self) -> int:
        """Seconds after which a drawing closes with those who answered."""
        return self.method.round_timeout_s

    def first(self, party: str) -> int:
        """Return the number, among all clients, of the party's first."""
        return self.method.first(party)

    def asked(self, task: bytes) -> IntArray:
        """Return whom a task asks."""
        return asked_in(task)[0]

    def kept_task(self, task: bytes) -> bytes:
        """Return a task without its points, which follow from the state."""
        return without_points(task)

    def check_answers(self, party: str, said: ClientAnswers, task: bytes) -> None:
        """Raise `BadInput` unless ``task`` asked for all that is said, and sizes fit."""
        asked, rounds = asked_in(task)
        questions = np.zeros(self.method.part(party).clients, np.int64)
        questions[asked] = rounds
        if not np.isin(said.declined, asked).all():
            raise BadInput(f"party {party} declined for a client that was not asked")
        kind = self.release_kind(task)
        self.solver.check(questions, said, self.method.body_bytes(party, kind))

    def oldest_owed(self, state: AdmmState) -> int:
        """Return the least round whose question is still owed an answer, or the open drawing."""
        return min(state.past, default=state.drawing)

    def expected(self, state: AdmmState) -> IntArray:
        """Return, for each client, the round of the question that it owes an answer to, or 0."""
        return self.solver.expected(state)

    def enough(self, state: AdmmState, answers: Mapping[str, ClientAnswers]) -> bool:
        """Return whether the open round has its minimum with these answers."""
        return self.solver.enough(state, sum(len(said.bodies) for said in answers.values()))

    def spares(self, state: AdmmState) -> bool:
        """Return whether the open round could ask somebody whom it has not asked."""
        return self.solver.spares(state)

    def shortage(self, state: AdmmState, answers: Mapping[str, ClientAnswers]) -> str:
        """Describe what the open round lacks."""
        count = int(np.count_nonzero(state.answered))
        count += sum(len(said.bodies) for said in answers.values())
        spec, round_ = self.method.spec, min(state.round, self.method.spec.rounds)
        needed = spec.cohort(round_).minimum
        return f"round {round_} of {spec.rounds} had {count} answers and needs {needed}"

    def check(self, state: AdmmState, party: str, answer: ClientAnswers) -> None:
        """Accept: `check_answers` has checked the answer against its task."""

    def absorb(self, state: AdmmState, answers: Mapping[str, ClientAnswers]) -> AdmmState:
        """Return the state after the drawing; with too few answers the round goes on."""
        return self.solver.absorb(state, self._of_all(state, answers), in_place=True)

    def _of_all(self, state: AdmmState, answers: Mapping[str, ClientAnswers]) -> ClientAnswers:
        """Return what is new from all parties' clients, numbered as the job does and in order.

        So the bytes of a change do not depend on who came first, nor on a restart in between.
        """
        numbered = (said.shifted(self.method.first(party)) for party, said in answers.items())
        said = concat(*numbered)
        order = np.argsort(said.clients)
        bodies = [said.bodies[place] for place in order.tolist()]
        left = said.declined[~state.declined[said.declined]]
        return ClientAnswers(said.clients[order], said.rounds[order], bodies, left)

    def without(self, state: AdmmState, party: str) -> AdmmState:
        """Return the state in which all clients of ``party`` have declined."""
        first = self.method.first(party)
        return self.solver.decline(state, *range(first, first + self.method.part(party).clients))

    def encode(self, state: AdmmState) -> bytes:
        """Return the whole state's bytes."""
        return encode_state(state)

    def encode_change(
        self, before: AdmmState, answers: Mapping[str, ClientAnswers], after: AdmmState
    ) -> bytes:
        """Return the bytes of the state to which ``answers`` led, as a change of the one before."""
        return encode_change(self._of_all(before, answers), after.z)

    def decode(self, body: bytes, *, since: AdmmState | None = None) -> AdmmState:
        """Return the state that the bytes stand for: whole, or as a change of the one before."""
        if since is None:
            return decode_state(body)
        return self.solver.replay(since, *decode_change(body), in_place=True)

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one client's release, in units."""
        del party, round_  # one price at every radius
        return self.method.spec.release_of(kind).cost

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.method.body_bytes(party, kind)

    def participations(self, state: AdmmState, party: str) -> IntArray:
        """Return how often each client of ``party`` has answered."""
        return state.answers[self._rows(party)]

    def _rows(self, party: str) -> slice:
        first = self.method.first(party)
        return slice(first, first + self.method.part(party).clients)

    def costs(self, state: AdmmState) -> IntArray:
        """Return what the job has cost each client, in units."""
        spec = self.method.spec
        price = 0 if spec.own_intercept is None else spec.own_intercept.cost
        return state.taken * spec.displacement.cost + state.intercepts * price

    def sent_bytes(self, state: AdmmState, party: str) -> IntArray:
        """Return the payload that each client of ``party`` has sent."""
        spec, rows = self.method.spec, self._rows(party)
        own: IntArray = state.intercepts[rows] * spec.intercept_bytes
        return state.taken[rows] * spec.body_bytes + own

    def spent(self, state: AdmmState, party: str) -> int:
        """Return the most that the job has cost any one client of ``party``, in units."""
        return int(self.costs(state)[self._rows(party)].max())

    def model(self, state: AdmmState) -> LinearModel:
        """Return the model so far; its columns are every client's."""
        job, member = self.job, self.job.members[0]
        coef = self.solver.coefficients(state).tolist()
        intercept = coef.pop() if self.method.spec.intercept else 0.0
        return LinearModel(
            job_id=self.job_id,
            loss=cast("LossName", job.method.loss.value),
            label=model_label(job),
            intercept_scaled=intercept,
            features=model_features(member, EVERYONE, coef),
            private=True,
            encodings=model_encodings(member, EVERYONE, job.label),
        )

    def features_used(self, state: AdmmState) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing: the columns are every client's."""
        return {}

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        spec, penalty = self.method.spec, self.method.spec.penalty
        return {
            "variant": spec.variant.value,
            "aggregate": spec.aggregate.value,
            "clients": spec.n_clients,
            "rounds": spec.rounds,
            "sampled": spec.sampled,
            "sampling": spec.sampling.value,
            "minimum": spec.minimum,
            "round_timeout_s": self.method.round_timeout_s,
            "participations": spec.max_participations,
            "gamma": spec.gamma,
            "lipschitz": spec.lipschitz,
            "step": spec.step,
            "dual_weight": spec.dual_weight,
            "regulariser": penalty.name,
            "l1": penalty.l1,
            "l2": penalty.l2,
            "box": 0.0 if np.isinf(penalty.bound) else penalty.bound,
            "release_units": spec.release_units,
            "last_radius": spec.radii[-1] / WHOLE if spec.radii else 1.0,
            "intercept_rounds": spec.intercept_rounds,
            "intercept_units": spec.intercept_units,
            "client_rows": spec.client_rows,
            "noise": float(np.sqrt(spec.mechanism.sigma2)) * spec.unit,
        }
