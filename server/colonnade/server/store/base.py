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
    process: str = ""  # which of several coordinators has its session


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


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that crosses from one coordinator process to another."""

    about: str  # the job that it is for, or the party
    sender: str  # the party or operator that it comes from; empty on the way down
    kind: str  # on the way down an error's code, or empty
    body: bytes


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Where a party is attached."""

    epoch: int
    process: str


class Peers(Protocol):
    """What several coordinator processes share; each call is part of the store's transaction.

    A job has one owner at a time. The lease says who that is, for liveness; safety rests on the
    fencing token, which `Store` compares in every transaction that writes to a job.
    """

    @property
    def process(self) -> str:
        """The name of this process, which no other has had."""

    def claim(self, limit: int) -> Sequence[str]:
        """Take jobs whose owner is gone and return their names."""

    def owned(self) -> Sequence[str]:
        """Return the jobs that are this process's own by the database, and hold their tokens."""

    def lost(self) -> Sequence[str]:
        """Return the jobs that this process held and another has taken, and let go of them."""

    def leave(self) -> None:
        """Give up all jobs and sessions, for a clean stop."""

    def sessions(self) -> Mapping[str, OpenSession]:
        """Return the parties that are attached to a process that lives."""

    def post_up(self, job_id: str, *, sender: str, kind: str, body: bytes) -> bool:
        """Leave a message for a job's owner; return False if the job has ended."""

    def take_up(self, limit: int) -> Sequence[Letter]:
        """Take the messages for the jobs that this process owns, in order."""

    def post_down(self, party: str, *, code: str, body: bytes) -> None:
        """Leave a message for the process that has a party's session."""

    def take_down(self, limit: int) -> Sequence[Letter]:
        """Take the messages for parties that are attached here, in order."""

    def announce(self, changed: Iterable[str]) -> None:
        """Wake the processes that this transaction concerns; ``changed`` are jobs."""


class Store(Protocol):
    """Durable state; one transaction at a time, from one thread.

    Where several processes share the database (``peers``), whatever writes to a job first compares
    its fencing token in the same transaction, and raises `StoreConflict` if another process owns
    the job by now.
    """

    @property
    def peers(self) -> Peers | None:
        """What processes share; None if the database is this process's alone."""

    def transaction(self) -> AbstractContextManager[None]:
        """Make what is written inside durable together when it ends."""

    def close(self) -> None:
        """Close the database."""

    def put_party(self, row: PartyRow) -> None:
        """Write a party."""

    def open_session(self, row: PartyRow) -> None:
        """Write a party's new session; another one opened meanwhile is a `StoreConflict`."""

    def close_session(self, row: PartyRow) -> None:
        """Note that a session is over, unless the party has a newer one."""

    def put_standing(self, row: PartyRow) -> None:
        """Write what a party told of its ledger and budget in its open session."""

    def put_newest(self, rows: Iterable[PartyRow]) -> None:
        """Write parties' newest releases, unless newer ones are there."""

    def party(self, name: str) -> PartyRow | None:
        """Return one party."""

    def parties(self) -> Sequence[PartyRow]:
        """Return all parties by name."""

    def add_job(self, row: JobRow) -> None:
        """Write a new job."""

    def set_state(self, row: JobRow) -> None:
        """Change where a job stands."""

    def job(self, job_id: str) -> JobRow | None:
        """Return one job."""

    def named(self, prefix: str) -> Sequence[str]:
        """Return the names of jobs that begin so."""

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

    def forget_messages(self, job_id: str, *, first: int, before: int) -> None:
        """Remove the tasks and submissions of the rounds from one on and before another."""

    def forget_iterates(self, job_id: str, *, before: int) -> None:
        """Remove the states before a round."""

    def add_uplink(self, rows: Iterable[UplinkRow]) -> None:
        """Add to the byte counts."""

    def uplink(self, job_id: str) -> Sequence[UplinkRow]:
        """Return a job's byte counts in order of round, party and kind."""
