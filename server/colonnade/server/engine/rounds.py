"""One job in its rounds: the part of the store that the engine keeps at hand."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from colonnade.methods.job import Job
from colonnade.server.engine.metering import CONTROL
from colonnade.server.engine.strategy import Strategy, Unwritten
from colonnade.server.methods.base import Algorithm
from colonnade.server.methods.registry import side_of
from colonnade.server.store.base import (
    DecisionRow,
    IterateRow,
    JobRow,
    Store,
    UplinkRow,
)
from colonnade.wire.jobspec import job_from_bytes

DECISION_S = 7 * 24 * 3600
"""Seconds that people at a party have to decide on a job."""


def states_of(
    algorithm: Algorithm[Any, Any], rows: Iterable[IterateRow]
) -> Iterator[tuple[IterateRow, Any]]:
    """Yield rows with the states that they stand for, one at a time: they may be large."""
    state = None
    for row in rows:
        state = algorithm.decode(row.body, since=state)
        yield row, state


@dataclass(slots=True)
class PartyCounts:
    """What a party has sent for a job."""

    releases: dict[str, int] = field(default_factory=dict)  # by kind
    spent: dict[str, int] = field(default_factory=dict)  # by kind, in units
    payload_bytes: int = 0


@dataclass(slots=True)
class Run:
    """A job that has not ended. The store has all of it."""

    row: JobRow
    job: Job
    algorithm: Algorithm[Any, Any]
    strategy: Strategy
    decisions: dict[str, DecisionRow]
    state: Any = None  # of the algorithm; None before the job runs
    chain: bytes = b""
    opened: bool = False  # whether the round's tasks are written
    tasks: Mapping[str, bytes] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)  # of the open round, by party
    unwritten: list[Unwritten] = field(default_factory=list)
    counts: dict[str, PartyCounts] = field(default_factory=dict)
    since: float = 0.0  # monotonic time of the last proposal or tasks

    @classmethod
    def load(cls, store: Store, row: JobRow, *, now: float) -> "Run":
        """Load a job as the store has it; nothing is computed again but integers."""
        job = job_from_bytes(row.spec)
        side = side_of(job.kind)
        algorithm = side.algorithm(job, row.job_id, job.method)
        run = cls(
            row,
            job,
            algorithm,
            side.strategy(algorithm, now),
            {decision.party: decision for decision in store.decisions(row.job_id)},
            counts={member.party: PartyCounts() for member in job.members},
            since=now,
        )
        for counted in store.uplink(row.job_id):
            run.count(counted)
        if (latest := store.latest_iterate(row.job_id)) is not None:
            for _, state in states_of(algorithm, run.strategy.needed(store, latest)):
                run.state = state
            run.chain = latest.chain
            run.tasks = store.tasks(row.job_id, latest.round)
            run.opened = bool(run.tasks)
            run.strategy.resume(run, store)
        return run

    @property
    def round(self) -> int:
        """The number of the round or drawing that is open; 0 is the opening."""
        return 0 if self.state is None else self.algorithm.round_of(self.state)

    @property
    def rounds_done(self) -> int:
        """Rounds done, the opening not counted."""
        return 0 if self.state is None else self.strategy.rounds_done(self.state)

    @property
    def rounds(self) -> int:
        """Rounds in all, the opening not counted, as far as they are known."""
        return self.strategy.rounds(self)

    def awaited(self) -> list[str]:
        """Return the parties that the job waits for."""
        if self.state is None:
            return [each.party for each in self.job.members if not self.settled(each.party)]
        return [party for party in self.tasks if party not in self.answers]

    def settled(self, party: str) -> bool:
        """Return whether a party has said yes or no."""
        return party in self.decisions and not self.decisions[party].waiting

    def silence(self, now: float, seen: Mapping[str, float]) -> str:
        """Return which awaited party was silent for too long, or nothing."""
        for party in self.awaited():
            limit, where = self.job.party_timeout_s, f"round {self.round}"
            if self.state is None:
                where = "the proposal"
                if party in self.decisions:  # people decide there, who are not always at work
                    limit = max(limit, DECISION_S)
            if now - max(self.since, seen.get(party, 0.0)) > limit:
                return f"party {party} did not answer {where} within {limit} s"
        return ""

    def open(self, now: float) -> Mapping[str, bytes]:
        """Take the tasks of the state and return what to store of them."""
        self.tasks, self.opened, self.since = self.algorithm.tasks(self.state), True, now
        return {party: self.strategy.kept_task(task) for party, task in self.tasks.items()}

    def begin(self) -> IterateRow:
        """Take the first state and return the row to write."""
        refused = [party for party, said in self.decisions.items() if not said.accepted]
        state = self.strategy.begin(refused)
        return self._next(state, self.algorithm.encode(state))

    def close_round(self, now: float) -> IterateRow:
        """Take the state to which the round's answers lead and return the row to write."""
        return self._next(*self.strategy.close(self, now))

    def _next(self, state: Any, body: bytes) -> IterateRow:
        self.state, self.chain = state, hashlib.sha256(self.chain + body).digest()
        self.opened, self.tasks, self.answers = False, {}, {}
        return IterateRow(self.row.job_id, self.round, body, self.chain)

    def has(self, party: str) -> bool:
        """Return whether a party is in the job."""
        return party in self.counts

    def count(self, row: UplinkRow) -> None:
        """Add to what a party has sent."""
        if row.kind != CONTROL:
            counts = self.counts[row.party]
            counts.releases[row.kind] = counts.releases.get(row.kind, 0) + row.messages
            counts.spent[row.kind] = counts.spent.get(row.kind, 0) + self.cost(row)
            counts.payload_bytes += row.payload_bytes

    def features_used(self) -> Mapping[str, int]:
        """Return how many features of each party the model uses, where parties have their own."""
        return {} if self.state is None else self.algorithm.features_used(self.state)

    def cost(self, row: UplinkRow) -> int:
        """Return what the releases of a row cost, in units."""
        return row.messages * self.algorithm.cost(row.party, row.kind, row.round)

    def spent(self, party: str, kind: str | None = None) -> int:
        """Return what the job has cost a unit of privacy at a party, in all or by kind."""
        return self.strategy.spent(self, party, kind)
