"""A coordinator's logic and its parties on one desk: every message passed by hand."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from colonnade.core.arrays import Int16Array
from colonnade.core.errors import ColonnadeError
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.base import Member
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job, job_id
from colonnade.party.data.columns import HeldColumns
from colonnade.party.methods.base import Answers, JobContext
from colonnade.party.methods.registry import answers_of
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.outbox import Send
from colonnade.server.store.base import State, Store
from colonnade.server.store.sql import Database
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.codec import release_to_proto
from colonnade.wire.heads import head_to_proto
from colonnade.wire.jobspec import feature_to_proto, job_from_bytes, job_to_bytes
from colonnade.wire.session import PROTOCOL, enrolment_statement

BOUNDS, LABEL_BOUNDS = Bounds(-3.0, 3.0), Bounds(0.0, 1.0)
UNITS = units_down(0.01)
VERSION = "ab" * 16
N_ROWS, FEATURES, DIM = 40, ("a", "b"), 8
CAP = units_down(2.0)
FILLS = (0.0, -1.5)
DECLARED = tuple(zip(FEATURES, FILLS, strict=True))


def job_of(*names: str, rounds: int = 3, timeout: int = 10, salt: int = 0, **changes: Any) -> Job:
    members = tuple(Member(name, VERSION, FEATURES, (BOUNDS,) * 2, FILLS, True) for name in names)
    blocks = tuple(Block(name, FEATURES, 0.7, 1, True) for name in names)
    settings: dict[str, Any] = {
        "select_units": UNITS,
        "share_units": UNITS,
        "label_units": 0,
        "mean_units": UNITS,
    }
    method = FrankWolfeSpec(
        n_rows=N_ROWS,
        blocks=blocks,
        rounds=rounds,
        sketch_dim=DIM,
        sketch_entries=1,
        **settings | changes,
    )
    return Job("a", salt.to_bytes(16, "big"), 1e-6, timeout, members, "y", LABEL_BOUNDS, method)


@dataclass
class Side:
    """A party: its ledger and its answers, without vault, disk or wire."""

    name: str
    ledger: Ledger
    noise: SeededNoise
    answers: dict[str, Answers] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, seed: int) -> "Side":
        ledger = memory_ledger(LedgerConfig(name, {"": CAP}, simulation=True))
        return cls(name, ledger, SeededNoise(seed))

    @property
    def columns(self) -> Int16Array:
        draw = np.random.default_rng(len(self.name))
        return draw.integers(-GRID, GRID, (3, N_ROWS), endpoint=True).astype(np.int16)

    def enrolment(self) -> pb.EnrolRequest:
        ledger_id = bytes.fromhex(self.ledger.opened.ledger_id)
        return pb.EnrolRequest(
            ledger_id=ledger_id,
            ledger_key=bytes.fromhex(self.ledger.opened.public_key),
            signature=self.ledger.sign(enrolment_statement("study", self.name, ledger_id)),
        )

    def hello(self, **changes: Any) -> pb.Hello:
        offer = pb.Offer(
            dataset=VERSION,
            population=N_ROWS,
            unit=job_pb2.UNIT_RECORD,
            features=[feature_to_proto(name, BOUNDS, fill) for name, fill in DECLARED],
            label=feature_to_proto("y", LABEL_BOUNDS),
            cap_units=CAP,
        )
        known: dict[str, Any] = {
            "protocol": PROTOCOL,
            "ledger_id": bytes.fromhex(self.ledger.opened.ledger_id),
            "offer": offer,
            "open_jobs": list(self.ledger.state.left),
            "head": head_to_proto(self.ledger.signed_head("study")),
        }
        return pb.Hello(**known | changes)

    def take(self, message: pb.AttachResponse) -> pb.AttachRequest | None:
        """Do as a party does with one message."""
        match message.WhichOneof("message"):
            case "proposal":
                return self._accept(message.proposal.spec)
            case "task":
                task = message.task
                submission = pb.Submission(job_id=task.job_id, round=task.round)
                released = self.answers[task.job_id].answer(task.round, task.body)
                submission.releases.extend(release_to_proto(each) for each in released)
                return pb.AttachRequest(submission=submission)
            case "ending":
                if message.ending.job_id in self.ledger.state.left:
                    self.ledger.close_job(message.ending.job_id)
        return None

    def _accept(self, spec: bytes) -> pb.AttachRequest:
        name, job = job_id(spec), job_from_bytes(spec)
        if name not in self.answers:
            self.ledger.admit(name, units=job.max_units(self.name))
            columns = HeldColumns(self.columns[:2], self.columns[2])
            gate = Gate(self.ledger, self.noise)
            self.answers[name] = answers_of(
                job, JobContext(name, self.name, VERSION, columns, gate, self.ledger)
            )
        return pb.AttachRequest(decision=pb.Decision(job_id=name, accepted=True))


class Crash(Exception):
    """Ends a coordinator at a commit."""


class Desk:
    """A coordinator on a store, its parties, and a clock that only tests move."""

    def __init__(self, *names: str, store: Store | None = None) -> None:
        self.store = store or Database("sqlite://")
        self.now = 0.0
        self.sides = {name: Side.of(name, seed) for seed, name in enumerate(names)}
        self.epochs: dict[str, int] = {}
        self.commits, self.crash_at = 0, -1.0
        self.start()
        for side in self.sides.values():
            self.do(self.engine.enrol, side.name, side.enrolment())

    def start(self) -> None:
        """Start a coordinator on what the store holds."""
        self.engine = Coordinator(
            self.store, "study", clock=lambda: 1e9, monotonic=lambda: self.now
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit, and crash just before (at n) or just after (at n + 0.5) commit number n."""
        with self.store.transaction():
            yield
            if self.commits == self.crash_at:
                self.commits += 1
                raise Crash
        self.commits += 1
        if self.commits - 0.5 == self.crash_at:
            raise Crash

    def do(self, method: Any, *arguments: Any) -> list[Send]:
        """Call the engine in a transaction and return what it sends."""
        with self.transaction():
            method(*arguments)
        return self.engine.take()[0]

    def attach(self, name: str, **changes: Any) -> list[Send]:
        sent = self.do(self.engine.attach, name, self.sides[name].hello(**changes))
        self.epochs[name] = next(
            each.message.welcome.epoch for each in sent if each.message.HasField("welcome")
        )
        return sent

    def send(self, name: str, message: pb.AttachRequest) -> list[Send]:
        message.epoch = self.epochs[name]
        return self.do(self.engine.receive, name, message)

    def submit(self, job: Job, *, again: bool = True) -> list[Send]:
        submit = functools.partial(self.engine.submit, again=again)
        return self.do(submit, job_to_bytes(job), "an operator")

    def deliver(self, sent: list[Send]) -> None:
        """Let parties answer until nothing is left to say."""
        while sent:
            each = sent.pop(0)
            answer = self.sides[each.party].take(each.message)
            if answer is not None:
                sent.extend(self.send(each.party, answer))

    def run(self, job: Job) -> str:
        """Run a whole job and return its name."""
        for name in self.sides:
            self.deliver(self.attach(name))
        self.deliver(self.submit(job))
        return job_id(job_to_bytes(job))

    def opened(self, job: Job) -> tuple[str, dict[str, pb.Task]]:
        """Bring a job to its opening and return the tasks, unanswered."""
        for name in self.sides:
            self.attach(name)
        sent, tasks = self.submit(job), {}
        while sent:
            each = sent.pop(0)
            if each.message.HasField("task"):
                tasks[each.party] = each.message.task
            elif (answer := self.sides[each.party].take(each.message)) is not None:
                sent.extend(self.send(each.party, answer))
        return job_id(job_to_bytes(job)), tasks

    def answer(self, name: str, task: pb.Task) -> pb.AttachRequest:
        made = self.sides[name].take(pb.AttachResponse(task=task))
        assert made is not None
        return made

    def stored(self) -> list[Any]:
        """Return everything that a refused message must leave alone."""
        jobs = self.store.jobs()
        return [
            self.store.parties(),
            jobs,
            *(self.store.decisions(job.job_id) for job in jobs),
            *(self.store.answers(job.job_id, r) for job in jobs for r in range(4)),
            *(self.store.iterates(job.job_id) for job in jobs),
            *(self.store.uplink(job.job_id) for job in jobs),
        ]

    def state(self, name: str) -> State:
        return next(row.state for row in self.store.jobs() if row.job_id == name)

    def reason(self, name: str) -> str:
        return next(row.reason for row in self.store.jobs() if row.job_id == name)

    def refused(self, kind: type[ColonnadeError], says: str, method: Any, *given: Any) -> None:
        """Check that a call is refused and leaves no trace."""
        before = self.stored()
        with pytest.raises(kind, match=says) as refused:
            self.do(method, *given)
        assert len(str(refused.value).splitlines()) == 1
        self.engine.take()
        assert self.stored() == before
