"""Clients of a job over rows, on the desk of `support.desk` and in specifications."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.methods.admm.codec import tasks_from_bytes, tasks_to_bytes
from colonnade.methods.admm.job_spec import AdmmJobSpec, ClientPart
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.base import Member
from colonnade.methods.job import Job, job_id
from colonnade.party.data.clients import TableClients, set_aside
from colonnade.party.data.columns import HeldColumns
from colonnade.party.data.units import Units, WholeTable
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.registry import answers_of
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.cohort import ClientAnswers, Replies
from colonnade.wire.jobspec import job_from_bytes
from support.desk import BOUNDS, LABEL_BOUNDS, VERSION, Desk, Side

FEATURES = ("a", "b", "c")
PRICE = units_down(0.25)
ROWS = 4  # of every client


class Answer(NamedTuple):
    """A stored release: who, the round of the task that it answers, and the bytes."""

    client: int
    round: int
    body: bytes


def gathered(answers: Sequence[Answer]) -> ClientAnswers:
    """Return answers as arrays."""
    return ClientAnswers(
        np.array([answer.client for answer in answers], np.int64),
        np.array([answer.round for answer in answers], np.int64),
        [answer.body for answer in answers],
        np.empty(0, np.int64),
    )


def tasks_of(*asked: tuple[int, int, IntArray]) -> ClientTasks:
    """Ask clients by number, each from a point of its own."""
    clients, rounds, points = zip(*asked, strict=True)
    numbers = np.array(clients, np.int64), np.array(rounds, np.int64)
    return ClientTasks(*numbers, np.stack(points))


def admm_method(
    parties: dict[str, int], *, timeout: int = 5, keys: tuple[bytes, ...] = (), **changes: Any
) -> AdmmJobSpec:
    numbers: dict[str, Any] = {
        "n_clients": sum(parties.values()),
        "n_features": len(FEATURES),
        "rounds": 4,
        "sampled": sum(parties.values()),
        "release_units": PRICE,
        "gamma": 2.0,
        "lipschitz": 1.0,
        "intercept": True,
    }
    parts = tuple(ClientPart(party, FEATURES, clients) for party, clients in parties.items())
    return AdmmJobSpec(parts, AdmmSpec(**numbers | changes), timeout, keys)


def admm_job(
    parties: dict[str, int], *, party_timeout: int = 60, salt: int = 0, **changes: Any
) -> Job:
    method = admm_method(parties, **changes)
    bounds, fills = (BOUNDS,) * len(FEATURES), (0.0,) * len(FEATURES)
    members = tuple(
        Member(party, VERSION, FEATURES, bounds, fills, True, clients)
        for party, clients in parties.items()
    )
    name, key = "over clients", salt.to_bytes(16, "big")
    return Job(name, key, 1e-6, party_timeout, members, "y", LABEL_BOUNDS, method)


def _without(task: bytes, away: set[int]) -> bytes:
    """Return a task that asks nobody who is away."""
    step = job_pb2.TaskBody.FromString(task).admm_step
    size = len(step.points) // (8 * len(step.clients))
    asked = tasks_from_bytes(task, n_clients=10**6, point_size=lambda _: size)
    there = [place for place, client in enumerate(asked.clients.tolist()) if client not in away]
    return tasks_to_bytes(asked.only(np.array(there, np.int64)))


@dataclass
class ClientSide(Side):
    """A party with clients, which may be away."""

    clients: int = 1
    away: set[int] = field(default_factory=set)  # they pay, and their answers are lost
    away_in: dict[int, set[int]] = field(default_factory=dict)  # by drawing: they are not there

    @classmethod
    def with_clients(
        cls, name: str, clients: int, *, caps: dict[str, int] | None = None
    ) -> "ClientSide":
        ledger = memory_ledger(LedgerConfig(name, caps or {"": 100 * PRICE}, simulation=True))
        return cls(name, ledger, SeededNoise(len(name)), clients=clients)

    @property
    def units(self) -> Units:
        if self.clients == 1:
            return WholeTable(ROWS)
        names = tuple(f"{self.name} {number}" for number in range(self.clients))
        return TableClients.of(names, (ROWS,) * self.clients)

    @property
    def accounts(self) -> Sequence[str]:
        return self.units.accounts(self.ledger)

    @property
    def table(self) -> HeldColumns:
        draw = np.random.default_rng(len(self.name))
        rows = draw.integers(-GRID, GRID, (4, ROWS * self.clients), endpoint=True)
        return HeldColumns(rows[:3].astype(np.int16), rows[3].astype(np.int16))

    def take(self, message: pb.AttachResponse) -> pb.AttachRequest | None:
        if message.WhichOneof("message") != "task":
            return super().take(message)
        task = message.task
        body = _without(task.body, self.away_in.get(task.round, set()))
        replies = self.answers[task.job_id].answer(task.round, body)
        assert isinstance(replies, Replies)
        there = {c: r for c, r in replies.released.items() if c not in self.away}
        submission = pb.Submission(job_id=task.job_id, round=task.round)
        replace(replies, released=there).put_into(submission)
        return pb.AttachRequest(submission=submission)

    def _accept(self, spec: bytes) -> pb.AttachRequest:
        name, job = job_id(spec), job_from_bytes(spec)
        if name not in self.answers:
            set_aside(self.ledger, name, self.accounts, units=job.max_units(self.name))
            gate = Gate(self.ledger, self.noise)
            context = JobContext(
                name, self.name, VERSION, self.table, gate, self.ledger, units=self.units
            )
            self.answers[name] = answers_of(job, context)
        return pb.AttachRequest(decision=pb.Decision(job_id=name, accepted=True))


class ClientDesk(Desk):
    """A coordinator and parties with clients."""

    def __init__(self, parties: dict[str, int], **caps: dict[str, int]) -> None:
        super().__init__()
        for name, clients in parties.items():
            side = ClientSide.with_clients(name, clients, caps=caps.get(name))
            self.sides[name] = side
            self.do(self.engine.enrol, name, side.enrolment())

    def side(self, name: str) -> ClientSide:
        side = self.sides[name]
        assert isinstance(side, ClientSide)
        return side
