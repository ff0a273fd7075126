"""What a coordinator must not forget, as its logic sees it.

Everything is written before it is acted on: a task before it is sent, a submission before it is
acknowledged, an iterate before it is used. A coordinator that is killed loads and goes on.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


class State(enum.Enum):
    """Where a job stands."""

    PROPOSED = "proposed"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (State.PROPOSED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class PartyRow:
    """An enrolled party."""

    name: str
    ledger_id: bytes
    ledger_key: bytes
    epoch: int = 0
    latest: bytes = b""  # its newest Release
    latest_seq: int = 0
    offer: bytes = b""
    head: bytes = b""  # its ledger's newest LedgerHead
    told_at: float = 0.0  # when it told its budget, which is in the offer


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job."""

    job_id: str
    spec: bytes
    submitted_by: str
    submitted_at: float
    state: State = State.PROPOSED
    reason: str = ""
    ended_at: float = 0.0
    outcome: bytes = b""  # of one that has ended: its JobStatus, so that nobody adds it up again


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A party's word on a job."""

    job_id: str
    party: str
    accepted: bool
    code: str = ""
    message: str = ""
    waiting: bool = False  # people there have yet to decide


@dataclass(frozen=True, slots=True)
class UplinkRow:
    """Bytes that one party sent, of one kind, in one round."""

    job_id: str
    round: int
    party: str
    kind: str
    payload_bytes: int = 0
    wire_bytes: int = 0
    messages: int = 0
    retry_bytes: int = 0  # on the wire, of messages that were sent before


@dataclass(frozen=True, slots=True)
class IterateRow:
    """A job's state before a round, and the hash that chains it to the ones before."""

    job_id: str
    round: int
    body: bytes
    chain: bytes


class Store(Protocol):
    """Durable state; one transaction at a time, from one thread."""

    def transaction(self) -> AbstractContextManager[None]:
        """Make what is written inside durable together when it ends."""

    def close(self) -> None:
        """Close the database."""

    def put_party(self, row: PartyRow) -> None:
        """Write a party."""

    def parties(self) -> Sequence[PartyRow]:
        """Return all parties by name."""

    def add_job(self, row: JobRow) -> None:
        """Write a new job."""

    def set_state(self, row: JobRow) -> None:
        """Change where a job stands."""

    def jobs(self) -> Sequence[JobRow]:
        """Return all jobs, newest first."""

    def put_decision(self, row: DecisionRow) -> None:
        """Write a party's word."""

    def decisions(self, job_id: str) -> Sequence[DecisionRow]:
        """Return the parties' words on a job."""

    def put_tasks(self, job_id: str, round_: int, tasks: Mapping[str, bytes]) -> None:
        """Write what will be asked, by party."""

    def tasks(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return what is asked in a round, by party."""

    def put_answers(self, job_id: str, round_: int, answers: Mapping[str, bytes]) -> None:
        """Write submissions, by party."""

    def answers(self, job_id: str, round_: int) -> Mapping[str, bytes]:
        """Return the submissions of a round, by party."""

    def put_iterate(self, row: IterateRow) -> None:
        """Write the state before a round."""

    def latest_iterate(self, job_id: str) -> IterateRow | None:
        """Return the newest state."""

    def iterates(self, job_id: str) -> Sequence[IterateRow]:
        """Return all states in order."""

    def forget_messages(self, job_id: str, *, before: int) -> None:
        """Remove the tasks and submissions of rounds before one."""

    def forget_iterates(self, job_id: str, *, before: int) -> None:
        """Remove the states before a round."""

    def add_uplink(self, rows: Iterable[UplinkRow]) -> None:
        """Add to the byte counts."""

    def uplink(self, job_id: str) -> Sequence[UplinkRow]:
        """Return a job's byte counts in order of round, party and kind."""
