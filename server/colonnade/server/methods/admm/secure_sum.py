"""Federated ADMM where only the sum over all hosts is opened (`masking.cohort`).

The coordinator passes messages on and opens the sum of what survived; it sees no host's answer. A
state is that of the job (`state.AdmmState`) and what the open attempt has brought so far. All of it
follows from stored messages in exact integers, so a coordinator that was killed goes on bit for
bit.

An attempt that opens nothing is followed by another, under a new number: new keys, masks and noise,
and a new price for everybody who masked. Clients that were asked to be in a masked sum count as
having paid, whether the coordinator ever saw it or not.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.masking.cohort import Attempt, check_announced
from colonnade.masking.errors import BadPart
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import Announcement
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.secure.exchanges import (
    FREE_KINDS,
    Exchange,
    exchange_of,
    exchange_to_bytes,
    free_bytes,
    number_of,
)
from colonnade.methods.job import Job
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.admm.opening import (
    SumState,
    answers_of,
    clients_at,
    declined_by,
    may_have_paid,
    opened_sum,
    task_for,
)
from colonnade.server.methods.admm.state import AdmmState
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.server.methods.base import MaskedAnswer
from colonnade.v1 import job_pb2
from colonnade.wire.cohort import ClientAnswers

Got = Mapping[int, MaskedAnswer]  # by place


@dataclass(frozen=True, slots=True)
class SecureSumAdmm:
    """Steps of one job; a state is used up by the step to the next one."""

    whole: FederatedAdmm  # what the job is besides its exchanges
    rules: CohortRules

    @classmethod
    def of(cls, job: Job, job_id: str, method: AdmmJobSpec, rules: CohortRules) -> "SecureSumAdmm":
        """Make the steps of ``job``, whose method is ``method``."""
        hosts = tuple(part.clients for part in method.parts)
        solver = AdmmCoordinator(method.spec, hosts)
        return cls(FederatedAdmm(job, job_id, method, solver), rules)

    @property
    def threshold(self) -> int:
        """How many maskers every exchange needs."""
        return self.rules.threshold

    @property
    def round_timeout_s(self) -> int:
        """Seconds after which an exchange closes with those who answered, if they are enough."""
        return self.whole.method.round_timeout_s

    def start(self) -> SumState:
        """Return the state before round 1."""
        return SumState(self.whole.start())

    def attempt(self, state: SumState) -> int:
        """Return the number of the open attempt."""
        return state.admm.drawing

    def round_of(self, state: SumState) -> int:
        """Return the number under which messages go."""
        return number_of(state.admm.drawing, state.exchange)

    def rounds_done(self, state: SumState) -> int:
        """Return how many rounds had their minimum."""
        return self.whole.rounds_done(state.admm)

    def finished(self, state: SumState) -> bool:
        """Return whether all rounds are done, or there are too few to go on."""
        admm = state.admm
        if self.whole.finished(admm) or admm.drawing > self.whole.method.max_attempts:
            return True
        if state.exchange is not Exchange.ANNOUNCE:
            return False
        asked = self.whole.solver.sampled(admm)
        return sum(bool(self._of(place, asked).size) for place in self._places) < self.threshold

    def shortage(self, state: SumState) -> str:
        """Say what the open round lacks."""
        lack, t = self.whole.shortage(state.admm, {}), self.threshold
        of = f"{t} of {self.rules.maskers} hosts"
        return f"{lack}; a sum opens with {of}, and attempt {state.admm.drawing} has not had them"

    @property
    def _places(self) -> range:
        return range(self.rules.maskers)

    def _place(self, party: str) -> int:
        return [part.party for part in self.whole.method.parts].index(party)

    def _of(self, place: int, clients: IntArray) -> IntArray:
        """Return which of ``clients`` live at a place."""
        return clients_at(self.whole, place, clients)

    # -- tasks

    def tasks(self, state: SumState) -> Mapping[str, bytes]:
        """Return the exchange's tasks by party."""
        asked = self.whole.solver.tasks(state.admm)
        match state.exchange:
            case Exchange.ANNOUNCE:
                there = [p for p in self._places if self._of(p, asked.clients).size]
            case Exchange.SHARE:
                there = sorted(state.announced)
            case Exchange.MASK:
                there = sorted(state.sealed)
            case Exchange.CONFIRM:
                there = sorted(state.masked)
            case _:
                there = sorted(state.confirmed)
        parts = self.whole.method.parts
        return {
            parts[place].party: exchange_to_bytes(
                task_for(self.whole, state, place, asked.only(np.isin(asked.clients, mine)))
            )
            for place in there
            for mine in [self._of(place, asked.clients)]
        }

    # -- answers

    def check(self, state: SumState, party: str, answer: MaskedAnswer) -> None:
        """Accept: `check_answer` has checked the message against its exchange."""

    def check_answer(
        self, state: SumState | None, round_: int, party: str, answer: MaskedAnswer, kinds: set[str]
    ) -> None:
        """Raise `BadInput` unless a message fits its exchange; no state if it came late."""
        exchange, spec = exchange_of(round_)[1], self.whole.method.spec
        if not answer.body:
            return  # dropped out
        if exchange is not Exchange.MASK:
            kind = FREE_KINDS[exchange]
            if kinds != {kind} or len(answer.body) != free_bytes(kind, self.rules):
                raise BadInput(f"party {party} sent another message than its exchange asks for")
            if exchange is Exchange.ANNOUNCE and state is not None:
                self._check_key(state, party, answer.body)
            return
        if answer.clients and kinds <= {spec.release(1).kind, spec.release(spec.rounds).kind}:
            if state is None:
                return
            release = spec.release(state.admm.round)
            asked = self._of(self._place(party), self.whole.solver.sampled(state.admm))
            known = {*(asked - self.whole.first(party)).tolist()}
            fits = {*answer.clients, *answer.declined} <= known and kinds == {release.kind}
            if fits and len(answer.body) == release.code.n_bytes:
                return
        raise BadInput(f"party {party} sent a masked sum that was not asked for")

    def _check_key(self, state: SumState, party: str, body: bytes) -> None:
        """Refuse a key by which nobody could go on."""
        at = Attempt(state.admm.round, state.admm.drawing)
        run, each = self.whole.method.run(self.whole.job_id), Announcement.from_bytes(body)
        check_announced(run, at, self._place(party), each)

    def absorb(self, state: SumState, answers: Mapping[str, MaskedAnswer]) -> SumState:
        """Return the state after the exchange."""
        return self._after(state, {self._place(party): each for party, each in answers.items()})

    def _after(self, state: SumState, got: Got, z: IntArray | None = None) -> SumState:
        there = {place: each for place, each in got.items() if each.body}
        if len(there) < self.threshold:
            return self._failed(state, got)
        bodies = {place: each.body for place, each in there.items()}
        match state.exchange:
            case Exchange.ANNOUNCE:
                return replace(state, exchange=Exchange.SHARE, announced=bodies)
            case Exchange.SHARE:
                return replace(state, exchange=Exchange.MASK, sealed=bodies)
            case Exchange.MASK:
                return replace(state, exchange=Exchange.CONFIRM, masked=there)
            case Exchange.CONFIRM:
                return replace(state, exchange=Exchange.OPEN, confirmed=bodies)
            case _:
                return self._opened(state, bodies, z)

    def _opened(self, state: SumState, bodies: Mapping[int, bytes], z: IntArray | None) -> SumState:
        """Return the state after an attempt whose sum is opened, if the shares open one."""
        with contextlib.suppress(BadPart, ValueError):
            total = opened_sum(self.whole, self.rules, state, bodies)
            said = answers_of(self.whole, state, total)
            solver, lost = self.whole.solver, may_have_paid(self.whole, state, state.masked)
            after = (
                solver.absorb(state.admm, said, in_place=True)
                if z is None
                else solver.replay(state.admm, said, z, in_place=True)
            )
            return SumState(self._paid(state, after, np.setdiff1d(lost, said.clients)))
        return self._failed(state, {})

    def _failed(self, state: SumState, got: Got) -> SumState:
        """Return the state before another attempt; who was asked for a masked sum may have paid."""
        masked = got if state.exchange is Exchange.MASK else state.masked
        nobody, lost = np.empty(0, np.int64), may_have_paid(self.whole, state, masked)
        said = ClientAnswers(nobody, nobody, [], declined_by(self.whole, masked))
        after = self.whole.solver.absorb(state.admm, said, in_place=True)
        return SumState(self._paid(state, after, lost))

    def _paid(self, before: SumState, after: AdmmState, clients: IntArray) -> AdmmState:
        """Count those as having paid who are in no sum that opened."""
        name = "taken" if before.admm.round <= self.whole.method.spec.steps else "intercepts"
        paid = getattr(after, name).copy()
        paid[clients] += 1
        return replace(after, **{name: paid})

    # -- bytes

    def encode(self, state: SumState) -> bytes:
        """Return the bytes of a state in which no attempt has begun."""
        return self.whole.encode(state.admm)

    def encode_change(self, answers: Mapping[str, MaskedAnswer], after: SumState) -> bytes:
        """Return the bytes of the state to which ``answers`` led, as a change of the one before."""
        change = job_pb2.CohortChange(z=after.admm.z.astype("<i8").tobytes())
        placed = {self._place(party): each for party, each in answers.items()}
        for place, each in sorted(placed.items()):
            change.answers.add(
                place=place, body=each.body, clients=each.clients, declined=each.declined
            )
        return change.SerializeToString(deterministic=True)

    def decode(self, body: bytes, *, since: SumState | None = None) -> SumState:
        """Return the state that the bytes stand for: whole, or as a change of the one before."""
        if since is None:
            return SumState(self.whole.decode(body))
        change = job_pb2.CohortChange.FromString(body)
        got = {
            each.place: MaskedAnswer(each.body, tuple(each.clients), tuple(each.declined))
            for each in change.answers
        }
        return self._after(since, got, np.frombuffer(change.z, "<i8").astype(np.int64))

    # -- what the job is besides

    def without(self, state: SumState, party: str) -> SumState:
        """Return the state in which all clients of ``party`` have declined."""
        return replace(state, admm=self.whole.without(state.admm, party))

    def cost(self, party: str, kind: str, round_: int) -> int:
        """Return the price of one release: of a client in a masked sum, or nothing."""
        return 0 if kind in FREE_KINDS.values() else self.whole.cost(party, kind, round_)

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the exact size of one message's payload."""
        return self.whole.body_bytes(party, kind)

    def spent(self, state: SumState, party: str) -> int:
        """Return the most that the job has cost any one client of ``party``, in units."""
        return self.whole.spent(state.admm, party)

    def model(self, state: SumState) -> LinearModel:
        """Return the model so far."""
        return self.whole.model(state.admm)

    def features_used(self, state: SumState) -> Mapping[str, int]:
        """Return nothing: the columns are every client's."""
        return self.whole.features_used(state.admm)

    def parameters(self) -> Mapping[str, Any]:
        """Return the method's public numbers."""
        rules = self.rules
        return {
            **self.whole.parameters(),
            "maskers": rules.maskers,
            "colluding": rules.colluding,
            "threshold": rules.threshold,
            "honest": rules.honest,
        }
