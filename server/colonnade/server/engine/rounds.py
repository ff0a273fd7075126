"""One job in its rounds: the part of the store that the engine keeps at hand."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.methods.job import Job
from colonnade.server.methods.admm.job import FederatedAdmm
from colonnade.server.methods.base import Algorithm, algorithm_of
from colonnade.server.store.base import (
    DecisionRow,
    IterateRow,
    JobRow,
    State,
    Store,
    UplinkRow,
)
from colonnade.v1 import federation_pb2
from colonnade.wire.clients import ClientAnswers, concat, without_points
from colonnade.wire.jobspec import job_from_bytes

CONTROL = "control"


def states_of(
    algorithm: Algorithm[Any, Any], rows: Iterable[IterateRow]
) -> Iterator[tuple[IterateRow, Any]]:
    """Yield rows with the states that they stand for; of a job over clients, from the first on."""
    state = None
    for row in rows:
        if isinstance(algorithm, FederatedAdmm):
            state = algorithm.decode(row.body, since=state)
        else:
            state = algorithm.decode(row.body)
        yield row, state


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

    round: int
    party: str
    body: bytes
    uplink: list[UplinkRow]


@dataclass(slots=True)
class Run:
    """A job that has not ended. The store has all of it."""

    row: JobRow
    job: Job
    algorithm: Algorithm[Any, Any]
    decisions: dict[str, DecisionRow]
    state: Any = None  # of the algorithm; None before the job runs
    chain: bytes = b""
    opened: bool = False  # whether the round's tasks are written
    tasks: Mapping[str, bytes] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)  # of the open round, by party
    late: dict[str, ClientAnswers] = field(default_factory=dict)  # clients' answers to earlier ones
    unwritten: list[Answer] = field(default_factory=list)
    counts: dict[str, Counts] = field(default_factory=dict)
    since: float = 0.0  # monotonic time of the last proposal or tasks
    waits_since: float = 0.0  # of the proposal or of the round's first tasks
    empty: int = 0  # drawings in a row that brought nothing new

    @classmethod
    def load(cls, store: Store, row: JobRow, *, now: float) -> "Run":
        """Load a job as the store has it; nothing is computed again but integers."""
        job = job_from_bytes(row.spec)
        run = cls(
            row,
            job,
            algorithm_of(job, row.job_id),
            {decision.party: decision for decision in store.decisions(row.job_id)},
            counts={member.party: Counts() for member in job.members},
            since=now,
            waits_since=now,
        )
        for counted in store.uplink(row.job_id):
            run.count(counted)
        if (latest := store.latest_iterate(row.job_id)) is not None:
            whole = [latest] if run.clients is None else store.iterates(row.job_id)
            for _, state in states_of(run.algorithm, whole):
                run.state = state  # one at a time: together they may be large
            run.chain = latest.chain
            run.tasks = store.tasks(row.job_id, latest.round)
            run.opened = bool(run.tasks)
            if run.clients is not None and run.opened:
                run.tasks = run.clients.tasks(run.state)  # the same bytes as before
            run._load_answers(store)
        return run

    def _load_answers(self, store: Store) -> None:
        """Take what was answered and not yet used: of a job over clients, in earlier rounds too."""
        job_id, first = self.row.job_id, self.round
        if self.clients is not None:
            first = min(self.state.past, default=self.round)
        for round_ in range(first, self.round + 1):
            tasks = store.tasks(job_id, round_)
            for party, body in store.answers(job_id, round_).items():
                submission = federation_pb2.Submission.FromString(body)
                self.take(party, round_, self.parse(party, submission, tasks[party]))

    @property
    def clients(self) -> FederatedAdmm | None:
        """The steps of a job over clients; None for a job over columns."""
        return self.algorithm if isinstance(self.algorithm, FederatedAdmm) else None

    @property
    def round(self) -> int:
        """The round that is open, or the drawing of clients; 0 is the opening."""
        return 0 if self.state is None else self.algorithm.round_of(self.state)

    @property
    def rounds_done(self) -> int:
        """Rounds done, the opening not counted."""
        if self.clients is not None and self.state is not None:
            return self.clients.rounds_done(self.state)
        return max(0, self.round - 1)

    def awaited(self) -> list[str]:
        """Return the parties that the job waits for."""
        if self.state is None:
            return [each.party for each in self.job.members if each.party not in self.decisions]
        return [party for party in self.tasks if party not in self.answers]

    def parse(self, party: str, submission: federation_pb2.Submission, task: bytes) -> Any:
        """Return what a submission says that is new; `BadInput` unless it answers ``task``."""
        if self.clients is None:
            bodies = bodies_of(submission)
            if len(bodies) != len(submission.releases) or submission.HasField("clients"):
                raise BadInput(f"party {party} released a kind twice in round {self.round}")
            self.algorithm.check(self.state, party, bodies)
            return bodies
        expected = self.clients.expected(self.state)
        for name, said in self.pending().items():
            expected[self.clients.method.first(name) + said.clients] = 0
        return self.clients.parse(expected, party, submission, task)

    def take(self, party: str, round_: int, answer: Any) -> None:
        """Keep an answer until the round closes."""
        if round_ == self.round:
            self.answers[party] = answer
        else:
            self.late[party] = concat(*self._late_of(party), answer)

    def pending(self) -> Mapping[str, Any]:
        """Return all that the round will use, by party."""
        if not self.late:
            return self.answers
        both = {party: concat(*self._late_of(party), said) for party, said in self.answers.items()}
        return self.late | both

    def _late_of(self, party: str) -> list[ClientAnswers]:
        return [self.late[party]] if party in self.late else []

    def kept_tasks(self) -> Mapping[str, bytes]:
        """Return what the store needs of the open round's tasks."""
        if self.clients is None:
            return self.tasks
        return {party: without_points(task) for party, task in self.tasks.items()}

    def open(self, now: float) -> None:
        """Take the tasks of the state."""
        self.tasks, self.opened, self.since = self.algorithm.tasks(self.state), True, now

    def in_backoff(self, now: float) -> bool:
        """Return whether it is too early to ask anew: who is away is not asked all the time."""
        if self.clients is None or not self.empty:
            return False
        pause = min(2.0 ** min(self.empty - 1, 20), self.clients.method.round_timeout_s)
        return now - self.since < pause

    def expired(self, now: float) -> bool:
        """Return whether the open drawing may close without everybody."""
        if self.clients is None or not self.opened:
            return False
        return now - self.since > self.clients.method.round_timeout_s

    def overdue(self, now: float, pending: Mapping[str, float]) -> str:
        """Return why the job has waited too long, or nothing; ``pending`` is when of whom."""
        limit = self.job.party_timeout_s
        if self.clients is not None and self.state is not None:
            late = now - self.waits_since > max(limit, self.clients.method.round_timeout_s)
            lack = self.clients.shortage(self.state, self.pending())
            return f"{lack}; it waited {limit} s" if late else ""
        for party in self.awaited():
            if now - max(self.since, pending.get(party, 0.0)) > limit:
                where = "the proposal" if self.state is None else f"round {self.round}"
                return f"party {party} did not answer {where} within {limit} s"
        return ""

    def may_close(self, *, expired: bool) -> bool:
        """Return whether what is open may close; only clients' drawings close without everybody.

        One that would bring nothing, with nobody else to ask, stays open for those who are away.
        """
        if not self.awaited():
            return True
        if not expired or self.clients is None:
            return False
        return (
            bool(self.answers)
            or self.clients.enough(self.state, self.pending())
            or self.clients.spares(self.state)
        )

    def first_state(self) -> Any:
        """Return the state before anything is asked; clients of parties that refused are out."""
        state = self.algorithm.start()
        if self.clients is not None:
            for party, decision in self.decisions.items():
                if not decision.accepted:
                    state = self.clients.without(state, party)
        return state

    def outcome(self) -> tuple[State, str]:
        """Return how a job ends that asks nothing more, and why if it was not meant to."""
        if self.clients is None or self.rounds_done >= self.job.rounds:
            return State.FINISHED, ""
        lack = self.clients.shortage(self.state, {})
        return State.FAILED, f"{lack}; too few clients are left to ask"

    def begin(self) -> IterateRow:
        """Take the first state and return the row to write."""
        state = self.first_state()
        return self._next(state, self.algorithm.encode(state))

    def close_round(self, now: float) -> IterateRow:
        """Take the state to which the round's answers lead and return the row to write."""
        before, pending, done = self.state, self.pending(), self.rounds_done
        state = self.algorithm.absorb(before, pending)
        if self.clients is None:
            return self._next(state, self.algorithm.encode(state))
        new = any(said.clients.size or said.declined.size for said in pending.values())
        row = self._next(state, self.clients.encode_change(before, pending, state))
        self.empty = 0 if new else self.empty + 1
        if self.rounds_done > done:
            self.waits_since = now
        return row

    def _next(self, state: Any, body: bytes) -> IterateRow:
        self.state, self.chain = state, hashlib.sha256(self.chain + body).digest()
        self.opened, self.tasks, self.answers, self.late = False, {}, {}, {}
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

    def spent(self, party: str) -> int:
        """Return what the job has cost a party, or the one of its clients that paid most."""
        if self.clients is not None:
            return self.clients.spent(self.state, party)
        return sum(self.counts[party].spent.values())
