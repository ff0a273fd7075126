"""Rounds that close when everybody whom they asked has answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from colonnade.core.errors import BadInput
from colonnade.methods.replay import is_evidence
from colonnade.server.engine.metering import release_rows
from colonnade.server.engine.strategy import Unwritten
from colonnade.server.methods.base import Algorithm, Bodies, RelayAlgorithm
from colonnade.server.store.base import IterateRow, State, Store
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2

if TYPE_CHECKING:
    from colonnade.server.engine.rounds import Run


@dataclass(frozen=True, slots=True)
class AllAnswer:
    """Needs every answer: a vertical model has no part of a party that is away."""

    partial: ClassVar[bool] = False
    algorithm: Algorithm[Any, Bodies]
    relay: RelayAlgorithm[Any] | None = None  # the same, if what it relays is to be forgotten

    @classmethod
    def of(cls, algorithm: Algorithm[Any, Bodies], now: float) -> "AllAnswer":
        """Make the strategy of one job."""
        return cls(algorithm)

    @classmethod
    def relayed(cls, algorithm: RelayAlgorithm[Any], now: float) -> "AllAnswer":
        """Make the strategy of a job that relays: its states are stored as changes."""
        return cls(algorithm, algorithm)

    @property
    def forgets(self) -> bool:
        """Whether messages are removed from the store once they have been used."""
        return self.relay is not None

    def kept_answers(self, run: "Run", answers: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return, of a round's submissions, the releases from which the model is computed again."""
        kept = {}
        for party, body in answers.items():
            submission = pb.Submission.FromString(body)
            shown = [e for e in submission.releases if is_evidence(run.job.kind, e.key.kind)]
            del submission.releases[:]
            submission.releases.extend(shown)
            if shown:
                kept[party] = submission.SerializeToString(deterministic=True)
        return kept

    def needed(self, store: Store, latest: IterateRow) -> Sequence[IterateRow]:
        """Return the newest iterate, if it is whole, or all of them."""
        return [latest] if self.relay is None else store.iterates(latest.job_id)

    def resume(self, run: "Run", store: Store) -> None:
        """Take the open round's answers; make its tasks again if they follow from the state."""
        if self.relay is not None and run.opened:
            run.tasks = self.relay.tasks(run.state)
        for party, body in store.answers(run.row.job_id, run.round).items():
            submission = pb.Submission.FromString(body)
            run.answers[party] = self.parse(run, party, submission, run.tasks[party])

    def kept_task(self, task: bytes) -> bytes:
        """Return the task, for the same bytes are sent again, unless the state says it all."""
        return task if self.relay is None else b""

    def releases(self, party: str, submission: pb.Submission) -> Sequence[release_pb2.Release]:
        """Return all releases, each of which has a receipt of its own."""
        account = "" if self.relay is None else self.relay.account
        here = (submission.job_id, submission.round, account)
        for release in submission.releases:
            key = release.key
            if (key.job_id, key.round, key.account) != here:
                raise BadInput(f"party {party} sent a release of another job or round")
        return submission.releases

    def parse(self, run: "Run", party: str, submission: pb.Submission, task: bytes) -> Bodies:
        """Return what is released, by kind."""
        bodies = {release.key.kind: release.body for release in submission.releases}
        if len(bodies) != len(submission.releases) or submission.HasField("clients"):
            raise BadInput(f"party {party} released a kind twice in round {run.round}")
        self.algorithm.check(run.state, party, bodies)
        return bodies

    def record(self, submission: pb.Submission, party: str, answer: Bodies, wire: int) -> Unwritten:
        """Store the submission as it came."""
        body = submission.SerializeToString(deterministic=True)
        return Unwritten(submission.round, party, body, release_rows(submission, party, wire))

    def take(self, run: "Run", party: str, round_: int, answer: Bodies) -> None:
        """Keep an answer to the open round: there are no others."""
        run.answers[party] = answer

    def decline(self, party: str, refusal: pb.Refusal, task: bytes | None) -> None:
        """Return nothing: the job cannot go on."""
        return

    def begin(self, refused: Sequence[str]) -> Any:
        """Return the algorithm's first state."""
        return self.algorithm.start()

    def close(self, run: "Run", now: float) -> tuple[Any, bytes]:
        """Return the state after the round, whole or as a change."""
        state = self.algorithm.absorb(run.state, run.answers)
        if self.relay is not None:
            return state, self.relay.encode_change(run.state, state)
        return state, self.algorithm.encode(state)

    def may_close(self, run: "Run", *, expired: bool) -> bool:
        """Return whether nobody is awaited."""
        return not run.awaited()

    def in_backoff(self, run: "Run", now: float) -> bool:
        """Return False: a round is asked once."""
        return False

    def expired(self, run: "Run", now: float) -> bool:
        """Return False: rounds have no deadline, parties do."""
        return False

    def overdue(self, run: "Run", now: float, seen: Mapping[str, float]) -> str:
        """Return who has been away for too long."""
        return run.silence(now, seen)

    def outcome(self, run: "Run") -> tuple[State, str]:
        """Return that the job is finished."""
        return State.FINISHED, ""

    def has_unused(self, run: "Run") -> bool:
        """Return False: a part of a round's answers is of no use."""
        return False

    def rounds_done(self, state: Any) -> int:
        """Return the rounds before the one that comes next, the opening not counted."""
        return max(0, self.algorithm.round_of(state) - 1)

    def rounds(self, run: "Run") -> int:
        """Return the rounds that the job asks for, or that its lists need."""
        if self.relay is None or run.state is None:
            return run.job.rounds
        return self.relay.rounds(run.state)

    def spent(self, run: "Run", party: str, kind: str | None = None) -> int:
        """Return what a record has paid for all releases, or for those of one kind."""
        spent = run.counts[party].spent
        return sum(spent.values()) if kind is None else spent[kind]
