"""Rounds that ask a cohort of clients and close with those who answered (partial participation).

A round may take several drawings: one that closes at its deadline short of the round's minimum is
followed by another that asks others. Messages are numbered by drawings, so that no number is used
for two questions. Where nobody answers, drawings are spaced by an exponential backoff.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from colonnade.core.errors import BadInput
from colonnade.server.engine.metering import client_rows
from colonnade.server.engine.strategy import Unwritten
from colonnade.server.methods.base import CohortAlgorithm
from colonnade.server.store.base import IterateRow, State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.cohort import (
    ClientAnswers,
    client_answers_from_proto,
    client_answers_to_bytes,
    concat,
    newest_release,
)

if TYPE_CHECKING:
    from colonnade.server.engine.rounds import Run

_MAX_ACCOUNT = 64


@dataclass(slots=True)
class Cohort:
    """Needs the minimum of a round: who is away or late leaves a model of the others."""

    partial: ClassVar[bool] = True
    algorithm: CohortAlgorithm[Any]
    waits_since: float  # monotonic time of the proposal or of the round's first drawing
    late: dict[str, ClientAnswers] = field(default_factory=dict)  # to earlier drawings, by party
    empty: int = 0  # drawings in a row that brought nothing new

    @classmethod
    def of(cls, algorithm: CohortAlgorithm[Any], now: float) -> "Cohort":
        """Make the strategy of one job."""
        return cls(algorithm, now)

    def needed(self, store: Store, latest: IterateRow) -> Sequence[IterateRow]:
        """Return all iterates: each but the first is a change of the one before."""
        return store.iterates(latest.job_id)

    def resume(self, run: "Run", store: Store) -> None:
        """Make the open tasks again, and take answers that no drawing has used."""
        if run.opened:
            run.tasks = self.algorithm.tasks(run.state)  # the same bytes as before
        job_id, last = run.row.job_id, run.round
        for round_ in range(min(self.algorithm.oldest_owed(run.state), last), last + 1):
            tasks = store.tasks(job_id, round_)
            for party, body in store.answers(job_id, round_).items():
                submission = pb.Submission.FromString(body)
                self.take(run, party, round_, self.parse(run, party, submission, tasks[party]))

    def kept_task(self, task: bytes) -> bytes:
        """Return whom a task asks: the rest of it follows from the state."""
        return self.algorithm.kept_task(task)

    def releases(self, party: str, submission: pb.Submission) -> Sequence[release_pb2.Release]:
        """Return the one release that is signed: the ledger's chain covers the others."""
        if (newest := newest_release(submission)) is None:
            return []
        if len(newest.key.account) > _MAX_ACCOUNT:
            raise BadInput(f"party {party} sent a release of an account with too long a name")
        return [newest]

    def parse(
        self, run: "Run", party: str, submission: pb.Submission, task: bytes
    ) -> ClientAnswers:
        """Return what is new in an answer to ``task``; `BadInput` unless all of it was asked for.

        What is not expected any more came before, in answer to an earlier task.
        """
        if submission.releases or submission.clients.kind != self.algorithm.release_kind(task):
            raise BadInput(f"party {party} sent releases of another kind of job")
        said = client_answers_from_proto(submission.clients)
        self.algorithm.check_answers(party, said, task)
        expected, first = self.algorithm.expected(run.state), self.algorithm.first(party)
        for name, before in self.pending(run).items():
            expected[self.algorithm.first(name) + before.clients] = 0
        return said.only(expected[first + said.clients] == said.rounds)

    def record(
        self, submission: pb.Submission, party: str, answer: ClientAnswers, wire: int
    ) -> Unwritten:
        """Store what is new: the rest was stored as the answer to another task."""
        rows = client_rows(submission, party, wire, new=answer.bodies)
        return Unwritten(submission.round, party, client_answers_to_bytes(submission, answer), rows)

    def take(self, run: "Run", party: str, round_: int, answer: ClientAnswers) -> None:
        """Keep an answer, also to an earlier drawing."""
        if round_ == run.round:
            run.answers[party] = answer
        else:
            self.late[party] = concat(*self._late_of(party), answer)

    def pending(self, run: "Run") -> Mapping[str, ClientAnswers]:
        """Return all that the drawing will use, by party."""
        answers: Mapping[str, ClientAnswers] = run.answers
        if not self.late:
            return answers
        both = {party: concat(*self._late_of(party), said) for party, said in answers.items()}
        return self.late | both

    def _late_of(self, party: str) -> list[ClientAnswers]:
        return [self.late[party]] if party in self.late else []

    def decline(self, party: str, refusal: pb.Refusal, task: bytes | None) -> pb.Submission:
        """Return an answer in which all clients decline that a refused task asked."""
        if task is None:
            raise BadInput(f"party {party} was asked for nothing in round {refusal.round}")
        declined = self.algorithm.asked(task).tolist()
        answer = pb.ClientAnswers(declined=declined, kind=self.algorithm.release_kind(task))
        return pb.Submission(job_id=refusal.job_id, round=refusal.round, clients=answer)

    def begin(self, refused: Sequence[str]) -> Any:
        """Return the first state, in which clients of parties that refused have declined."""
        state = self.algorithm.start()
        for party in refused:
            state = self.algorithm.without(state, party)
        return state

    def close(self, run: "Run", now: float) -> tuple[Any, bytes]:
        """Return the state after the drawing, as a change of the one before."""
        before, pending, done = run.state, self.pending(run), run.rounds_done
        state = self.algorithm.absorb(before, pending)
        body = self.algorithm.encode_change(before, pending, state)
        new = any(said.clients.size or said.declined.size for said in pending.values())
        self.empty = 0 if new else self.empty + 1
        if self.rounds_done(state) > done:
            self.waits_since = now
        self.late = {}
        return state, body

    def may_close(self, run: "Run", *, expired: bool) -> bool:
        """Return whether the drawing has everybody's answer, or has expired and may end so.

        One that would bring nothing, with nobody else to ask, stays open for those who are away.
        """
        if not run.awaited():
            return True
        return expired and (
            bool(run.answers)
            or self.algorithm.enough(run.state, self.pending(run))
            or self.algorithm.spares(run.state)
        )

    def in_backoff(self, run: "Run", now: float) -> bool:
        """Return whether it is too early to draw anew: who is away is not asked all the time."""
        pause = min(2.0 ** min(self.empty - 1, 20), self.algorithm.round_timeout_s)
        return self.empty > 0 and now - run.since < pause

    def expired(self, run: "Run", now: float) -> bool:
        """Return whether the open drawing may close without everybody."""
        return run.opened and now - run.since > self.algorithm.round_timeout_s

    def overdue(self, run: "Run", now: float, seen: Mapping[str, float]) -> str:
        """Return what a round lacks that has waited too long."""
        if run.state is None:
            return run.silence(now, seen)
        limit = run.job.party_timeout_s
        if now - self.waits_since <= max(limit, self.algorithm.round_timeout_s):
            return ""
        lack = self.algorithm.shortage(run.state, self.pending(run))
        return f"{lack}; it waited {limit} s"

    def outcome(self, run: "Run") -> tuple[State, str]:
        """Return whether all rounds had their minimum."""
        if run.rounds_done >= run.job.rounds:
            return State.FINISHED, ""
        lack = self.algorithm.shortage(run.state, {})
        return State.FAILED, f"{lack}; too few clients are left to ask"

    def has_unused(self, run: "Run") -> bool:
        """Return whether there are answers: they were paid for, so they count."""
        return bool(self.pending(run))

    @property
    def forgets(self) -> bool:
        """Return False: late answers belong to earlier drawings."""
        return False

    def kept_answers(self, run: "Run", answers: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return all: nothing is forgotten."""
        del run
        return answers

    def rounds(self, run: "Run") -> int:
        """Return the rounds that the job asks for."""
        return run.job.rounds

    def rounds_done(self, state: Any) -> int:
        """Return how many rounds had their minimum."""
        return self.algorithm.rounds_done(state)

    def spent(self, run: "Run", party: str, kind: str | None = None) -> int:
        """Return the most that the job has cost any one client of ``party``."""
        return 0 if run.state is None else self.algorithm.spent(run.state, party)
