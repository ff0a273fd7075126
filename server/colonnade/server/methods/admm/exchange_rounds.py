"""Rounds of secure sums: maskers answer exchange by exchange, and enough of them will do.

An exchange closes when everybody whom it asked has answered or dropped out, or at its deadline if
as many have answered as a sum needs. Below that it stays open for those who are away, which costs
nothing, until the job has waited too long. A refusal drops its party out of the attempt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from colonnade.core.errors import BadInput
from colonnade.server.engine.metering import client_rows, release_rows
from colonnade.server.engine.strategy import Unwritten
from colonnade.server.methods.base import MaskedAnswer, SecureSumAlgorithm
from colonnade.server.store.base import IterateRow, State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.cohort import (
    client_answers_from_proto,
    client_answers_to_bytes,
    newest_release,
)

if TYPE_CHECKING:
    from colonnade.server.engine.rounds import Run

_MAX_ACCOUNT = 64


@dataclass(slots=True)
class SecureSum:
    """Needs a threshold of maskers in every exchange."""

    partial: ClassVar[bool] = True
    algorithm: SecureSumAlgorithm[Any]
    waits_since: float  # monotonic time of the proposal or of the round's first attempt
    failed: int = 0  # attempts in a row that opened nothing

    @classmethod
    def of(cls, algorithm: SecureSumAlgorithm[Any], now: float) -> "SecureSum":
        """Make the strategy of one job."""
        return cls(algorithm, now)

    @property
    def forgets(self) -> bool:
        """Return False: late messages are compared with what was asked."""
        return False

    def kept_answers(self, run: "Run", answers: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return all: nothing is forgotten."""
        return answers

    def needed(self, store: Store, latest: IterateRow) -> Sequence[IterateRow]:
        """Return all iterates: each but the first is a change of the one before."""
        return store.iterates(latest.job_id)

    def resume(self, run: "Run", store: Store) -> None:
        """Make the open tasks again, and take the answers to them."""
        if run.opened:
            run.tasks = self.algorithm.tasks(run.state)  # the same bytes as before
        for party, body in store.answers(run.row.job_id, run.round).items():
            submission = pb.Submission.FromString(body)
            run.answers[party] = self.parse(run, party, submission, b"")

    def kept_task(self, task: bytes) -> bytes:
        """Return nothing: a task follows from the state."""
        del task
        return b""

    def releases(self, party: str, submission: pb.Submission) -> Sequence[release_pb2.Release]:
        """Return what is signed: a free message, or of a masked sum the newest release."""
        newest = newest_release(submission)
        found = [*submission.releases, *([] if newest is None else [newest])]
        for release in found:
            if release.key.job_id != submission.job_id or len(release.key.account) > _MAX_ACCOUNT:
                raise BadInput(f"party {party} sent a release of another job or account")
        return found

    def parse(self, run: "Run", party: str, submission: pb.Submission, task: bytes) -> MaskedAnswer:
        """Return a masker's message, or that it dropped out."""
        del task
        clients = client_answers_from_proto(submission.clients)
        bodies = [body for body in clients.bodies if body]
        messages = [release.body for release in submission.releases] + bodies
        if len(messages) > 1 or (clients.clients.size and not bodies):
            raise BadInput(f"party {party} sent other than one message in an exchange")
        answer = MaskedAnswer(
            messages[0] if messages else b"",
            tuple(clients.clients.tolist()),
            tuple(clients.declined.tolist()),
        )
        kinds = {release.key.kind for release in submission.releases}
        kinds |= {submission.clients.kind} if clients.clients.size else set()
        is_open = submission.round == run.round
        self.algorithm.check_answer(
            run.state if is_open else None, submission.round, party, answer, kinds
        )
        return answer

    def record(
        self, submission: pb.Submission, party: str, answer: MaskedAnswer, wire: int
    ) -> Unwritten:
        """Store the message as it came; of a masked sum what is needed of it."""
        del answer
        if not submission.HasField("clients"):
            body = submission.SerializeToString(deterministic=True)
            return Unwritten(submission.round, party, body, release_rows(submission, party, wire))
        said = client_answers_from_proto(submission.clients)
        rows = client_rows(submission, party, wire, new=said.bodies)
        return Unwritten(submission.round, party, client_answers_to_bytes(submission, said), rows)

    def take(self, run: "Run", party: str, round_: int, answer: MaskedAnswer) -> None:
        """Keep an answer to the open exchange; a late one is of no use, and was paid for."""
        if round_ == run.round:
            run.answers[party] = answer

    def decline(self, party: str, refusal: pb.Refusal, task: bytes | None) -> pb.Submission:
        """Return an answer without a message: the party drops out of the attempt."""
        if task is None:
            raise BadInput(f"party {party} was asked for nothing in round {refusal.round}")
        return pb.Submission(job_id=refusal.job_id, round=refusal.round)

    def begin(self, refused: Sequence[str]) -> Any:
        """Return the first state, in which clients of parties that refused have declined."""
        state = self.algorithm.start()
        for party in refused:
            state = self.algorithm.without(state, party)
        return state

    def close(self, run: "Run", now: float) -> tuple[Any, bytes]:
        """Return the state after the exchange, as a change of the one before."""
        before, done = run.state, run.rounds_done
        attempt = self.algorithm.attempt(before)
        state = self.algorithm.absorb(before, run.answers)
        body = self.algorithm.encode_change(run.answers, state)
        if self.rounds_done(state) > done:
            self.waits_since, self.failed = now, 0
        elif self.algorithm.attempt(state) > attempt:
            self.failed += 1
        return state, body

    def may_close(self, run: "Run", *, expired: bool) -> bool:
        """Return whether all have answered, or as many as a sum needs by the deadline."""
        if not run.awaited():
            return True
        there = sum(bool(answer.body) for answer in run.answers.values())
        return expired and there >= self.algorithm.threshold

    def in_backoff(self, run: "Run", now: float) -> bool:
        """Return whether it is too early for another attempt."""
        pause = min(2.0 ** min(self.failed - 1, 20), self.algorithm.round_timeout_s)
        return self.failed > 0 and now - run.since < pause

    def expired(self, run: "Run", now: float) -> bool:
        """Return whether the open exchange may close without everybody."""
        return run.opened and now - run.since > self.algorithm.round_timeout_s

    def overdue(self, run: "Run", now: float, seen: Mapping[str, float]) -> str:
        """Return what a round lacks that has waited too long."""
        if run.state is None:
            return run.silence(now, seen)
        limit = run.job.party_timeout_s
        if now - self.waits_since <= max(limit, self.algorithm.round_timeout_s):
            return ""
        return f"{self.algorithm.shortage(run.state)}; it waited {limit} s"

    def outcome(self, run: "Run") -> tuple[State, str]:
        """Return whether all rounds had their minimum."""
        if run.rounds_done >= run.job.rounds:
            return State.FINISHED, ""
        return State.FAILED, self.algorithm.shortage(run.state)

    def has_unused(self, run: "Run") -> bool:
        """Return False: a part of an attempt opens nothing."""
        return False

    def rounds(self, run: "Run") -> int:
        """Return the rounds that the job asks for."""
        return run.job.rounds

    def rounds_done(self, state: Any) -> int:
        """Return how many rounds had their minimum."""
        return self.algorithm.rounds_done(state)

    def spent(self, run: "Run", party: str, kind: str | None = None) -> int:
        """Return the most that the job has cost any one client of ``party``."""
        return 0 if run.state is None else self.algorithm.spent(run.state, party)
