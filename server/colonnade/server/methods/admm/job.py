"""Federated ADMM as the engine sees it: states, tasks and answers by party, prices, the model.

Unlike a vertical job, a round need not have everybody's answer: it may close at its deadline with
those who answered, if they are enough; else others are drawn. What comes later counts in the round
that is open then. Messages are numbered by drawings, so that no number is used for two questions.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.methods.admm.method import AdmmMethod
from colonnade.methods.job import Job
from colonnade.server.methods.admm.state import (
    SEED_BYTES,
    AdmmState,
    decode_change,
    decode_state,
    encode_change,
    encode_state,
)
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.clients import (
    ClientAnswers,
    Questions,
    asked_in,
    client_answers_from_proto,
    concat,
    questions_to_bytes,
)

# Whose the columns of the model are: every client has them.
EVERYONE = "clients"


@dataclass(frozen=True, slots=True)
class FederatedAdmm:
    """Steps of one job over clients; a state is used up by the step to the next one."""

    job: Job
    job_id: str
    method: AdmmMethod
    solver: AdmmCoordinator

    @classmethod
    def of(cls, job: Job, job_id: str, method: AdmmMethod) -> "FederatedAdmm":
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
                questions = Questions(
                    asked.clients[mine] - first, asked.rounds[mine], asked.v[mine]
                )
                tasks[part.party] = questions_to_bytes(questions)
        return tasks

    def parse(
        self, expected: IntArray, party: str, submission: pb.Submission, task: bytes
    ) -> ClientAnswers:
        """Return what is new in an answer to ``task``; `BadInput` unless all of it was asked for.

        What is not ``expected`` any more came before, in answer to an earlier task.
        """
        if submission.releases:
            raise BadInput(f"party {party} sent releases of another kind of job")
        said, first = client_answers_from_proto(submission.clients), self.method.first(party)
        asked, rounds = asked_in(task)
        questions = np.zeros(self.method.part(party).clients, np.int64)
        questions[asked] = rounds
        if not np.isin(said.declined, asked).all():
            raise BadInput(f"party {party} declined for a client that was not asked")
        self.solver.check(questions, said)
        return said.only(expected[first + said.clients] == said.rounds)

    def declining(self, party: str, refusal: pb.Refusal, task: bytes | None) -> pb.Submission:
        """Return an answer in which all clients decline that a refused task asked."""
        if task is None:
            raise BadInput(f"party {party} was asked for nothing in round {refusal.round}")
        asked, _ = asked_in(task)
        declined = pb.ClientAnswers(declined=asked.tolist())
        return pb.Submission(job_id=refusal.job_id, round=refusal.round, clients=declined)

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
        """Say what the open round lacks."""
        count = int(np.count_nonzero(state.answered))
        count += sum(len(said.bodies) for said in answers.values())
        spec = self.method.spec
        return f"round {state.round} of {spec.rounds} had {count} answers and needs {spec.minimum}"

    def check(self, state: AdmmState, party: str, answer: ClientAnswers) -> None:
        """Accept: `parse` has checked the answer against its task."""

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
        del party, kind, round_
        return self.method.spec.mechanism.cost

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one release's payload."""
        return self.method.body_bytes(party, kind)

    def participations(self, state: AdmmState, party: str) -> IntArray:
        """Return how often each client of ``party`` has answered."""
        first = self.method.first(party)
        return state.taken[first : first + self.method.part(party).clients]

    def spent(self, state: AdmmState | None, party: str) -> int:
        """Return the most that the job has cost any one client of ``party``, in units."""
        if state is None:
            return 0
        return int(self.participations(state, party).max()) * self.method.spec.mechanism.cost

    def model(self, state: AdmmState) -> LinearModel:
        """Return the model so far; its columns are every client's."""
        job, member = self.job, self.job.members[0]
        coef = self.solver.coefficients(state).tolist()
        intercept = coef.pop() if self.method.spec.intercept else 0.0
        columns = zip(member.features, member.bounds, member.fills, coef, strict=True)
        return LinearModel(
            job_id=self.job_id,
            loss=job.method.loss.value,
            label=ModelLabel(job.label, job.label_bounds.low, job.label_bounds.high),
            intercept_scaled=intercept,
            features=tuple(
                ModelFeature(EVERYONE, name, bounds.low, bounds.high, fill, value)
                for name, bounds, fill, value in columns
            ),
            private=True,
        )

    def features_used(self, state: AdmmState) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing: the columns are every client's."""
        return {}

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        spec, penalty = self.method.spec, self.method.spec.penalty
        return {
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
            "noise": float(np.sqrt(spec.mechanism.sigma2)) * spec.unit,
        }
