"""How a job waits for answers: the two strategies of the engine behind one protocol.

`all_answer`: a round closes when everybody whom it asked has answered, and a refusal ends the job.
`cohort`: parties have clients, a round asks a cohort of them and closes at a deadline with those
who answered; late answers count later, and whoever refuses leaves the job. The coordinator's side
of a method says which one its jobs take (`server.methods.registry`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from colonnade.server.store.base import IterateRow, State, Store, UplinkRow
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2

if TYPE_CHECKING:
    from colonnade.server.engine.rounds import Run


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A submission that is checked and not yet in the store, with what it adds to the counts."""

    round: int
    party: str
    body: bytes
    uplink: Sequence[UplinkRow]


class Strategy(Protocol):
    """What differs between jobs that need every answer and jobs that need enough of them."""

    # Whether a job goes on without those who refuse, and takes answers after a round has closed.
    partial: ClassVar[bool]

    @property
    def forgets(self) -> bool:
        """Whether messages are removed from the store once they have been used."""

    def kept_answers(self, run: "Run", answers: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return what is kept of a round's submissions, by party, when messages are removed."""

    # -- loading and writing

    def needed(self, store: Store, latest: IterateRow) -> Sequence[IterateRow]:
        """Return the iterates from which the newest state is decoded."""

    def resume(self, run: "Run", store: Store) -> None:
        """Take the tasks and unused answers that a stopped coordinator had."""

    def kept_task(self, task: bytes) -> bytes:
        """Return what the store needs of a task."""

    # -- answers

    def releases(self, party: str, submission: pb.Submission) -> Sequence[release_pb2.Release]:
        """Return the releases whose receipts are in a submission, whole."""

    def parse(self, run: "Run", party: str, submission: pb.Submission, task: bytes) -> Any:
        """Return what a submission says that is new; `BadInput` unless it answers ``task``."""

    def record(self, submission: pb.Submission, party: str, answer: Any, wire: int) -> Unwritten:
        """Return what is stored and counted of a submission of ``wire`` bytes."""

    def take(self, run: "Run", party: str, round_: int, answer: Any) -> None:
        """Keep an answer until the round closes."""

    def decline(self, party: str, refusal: pb.Refusal, task: bytes | None) -> pb.Submission | None:
        """Return the answer that a refused task amounts to; None if the job cannot go on."""

    # -- rounds

    def begin(self, refused: Sequence[str]) -> Any:
        """Return the state before anything is asked; ``refused`` are parties that said no."""

    def close(self, run: "Run", now: float) -> tuple[Any, bytes]:
        """Return the state to which the round's answers lead, and its bytes."""

    def may_close(self, run: "Run", *, expired: bool) -> bool:
        """Return whether what is open may close."""

    def in_backoff(self, run: "Run", now: float) -> bool:
        """Return whether it is too early to ask anew."""

    def expired(self, run: "Run", now: float) -> bool:
        """Return whether the open round has reached its deadline."""

    def overdue(self, run: "Run", now: float, seen: Mapping[str, float]) -> str:
        """Return why the job has waited too long, or nothing; ``seen`` is when of whom."""

    def outcome(self, run: "Run") -> tuple[State, str]:
        """Return how a job ends that asks nothing more, and why if it was not meant to."""

    def has_unused(self, run: "Run") -> bool:
        """Return whether answers of an unfinished round count in a job that ends."""

    def rounds_done(self, state: Any) -> int:
        """Return how many rounds are done, the opening not counted."""

    def rounds(self, run: "Run") -> int:
        """Return how many rounds there are, the opening not counted."""

    # -- costs

    def spent(self, run: "Run", party: str, kind: str | None = None) -> int:
        """Return what the job has cost a unit of privacy at ``party``, in all or by kind."""
