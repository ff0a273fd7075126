"""One job in its rounds: the part of the store that the engine keeps at hand."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colonnade.optim.job import Job
from colonnade.server.algorithm import Algorithm, Bodies, algorithm_of
from colonnade.server.store import DecisionRow, IterateRow, JobRow, Store, UplinkRow
from colonnade.v1 import federation_pb2
from colonnade.wire.jobspec import job_from_bytes

CONTROL = "control"


def bodies_of(submission: federation_pb2.Submission) -> dict[str, bytes]:
    """Return what a submission releases, by kind."""
    return {release.key.kind: release.body for release in submission.releases}


@dataclass(slots=True)
class Counts:
    """What a party has sent for a job."""

    releases: dict[str, int] = field(default_factory=dict)  # by kind
    spent: dict[str, int] = field(default_factory=dict)  # by kind, in units
    payload_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A submission that is checked and not yet in the store, with what it adds to the counts."""

    body: bytes
    uplink: list[UplinkRow]


@dataclass(slots=True)
class Run:
    """A job that has not ended. The store has all of it."""

    row: JobRow
    job: Job
    algorithm: Algorithm[Any]
    decisions: dict[str, DecisionRow]
    state: Any = None  # of the algorithm; None before the job runs
    chain: bytes = b""
    opened: bool = False  # whether the round's tasks are written
    tasks: Mapping[str, bytes] = field(default_factory=dict)
    answers: dict[str, Bodies] = field(default_factory=dict)
    unwritten: dict[str, Answer] = field(default_factory=dict)  # of the open round, by party
    counts: dict[str, Counts] = field(default_factory=dict)
    since: float = 0.0  # monotonic time of the last proposal or round

    @classmethod
    def load(cls, store: Store, row: JobRow, *, now: float) -> "Run":
        """Load a job; its state is read, never computed again."""
        job = job_from_bytes(row.spec)
        run = cls(
            row,
            job,
            algorithm_of(job, row.job_id),
            {decision.party: decision for decision in store.decisions(row.job_id)},
            counts={member.party: Counts() for member in job.members},
            since=now,
        )
        for counted in store.uplink(row.job_id):
            run.count(counted)
        if (latest := store.latest_iterate(row.job_id)) is not None:
            run.state, run.chain = run.algorithm.decode(latest.body), latest.chain
            run.tasks = store.tasks(row.job_id, latest.round)
            run.opened = bool(run.tasks)
            stored = store.answers(row.job_id, latest.round)
            run.answers = {
                party: bodies_of(federation_pb2.Submission.FromString(body))
                for party, body in stored.items()
            }
        return run

    @property
    def round(self) -> int:
        """The round that is open; 0 is the opening."""
        return 0 if self.state is None else self.algorithm.round_of(self.state)

    @property
    def rounds_done(self) -> int:
        """Rounds done, the opening not counted."""
        return max(0, self.round - 1)

    def awaited(self) -> list[str]:
        """Return the parties that the job waits for."""
        if self.state is None:
            return [each.party for each in self.job.members if each.party not in self.decisions]
        return [party for party in self.tasks if party not in self.answers]

    def next_iterate(self, state: Any) -> IterateRow:
        """Take a new state and return the row to write."""
        body = self.algorithm.encode(state)
        self.state, self.chain = state, hashlib.sha256(self.chain + body).digest()
        self.opened, self.tasks, self.answers = False, {}, {}
        return IterateRow(self.row.job_id, self.round, body, self.chain)

    def has(self, party: str) -> bool:
        """Tell whether a party is in the job."""
        return party in self.counts

    def count(self, row: UplinkRow) -> None:
        """Add to what a party has sent."""
        if row.kind != CONTROL:
            counts = self.counts[row.party]
            counts.releases[row.kind] = counts.releases.get(row.kind, 0) + row.messages
            counts.spent[row.kind] = counts.spent.get(row.kind, 0) + self.cost(row)
            counts.payload_bytes += row.payload_bytes

    def cost(self, row: UplinkRow) -> int:
        """Return what the releases of a row cost, in units."""
        return row.messages * self.algorithm.cost(row.party, row.kind, row.round)

    def spent(self, party: str) -> int:
        """Return what the job has cost a party, in units."""
        return sum(self.counts[party].spent.values())
