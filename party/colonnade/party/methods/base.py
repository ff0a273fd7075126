"""A party's side of a job, by the job's method: from a task's bytes to releases.

Privacy: an answer is bound by the ledger to the task's bytes and to the version of the table, so
the same key is never paid for one question and used for another.
"""

import functools
import secrets
from dataclasses import dataclass
from typing import Protocol

from colonnade.core.errors import BadMessage
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.methods.admm.method import AdmmMethod
from colonnade.methods.admm.prox import Client, Problems, factorise
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.party.data.clients import Clients
from colonnade.party.data.columns import Columns
from colonnade.party.methods.admm import AdmmHost, Declined
from colonnade.party.methods.frank_wolfe import FrankWolfeParty
from colonnade.party.methods.moments import MomentsParty
from colonnade.wire.clients import Replies, questions_from_bytes
from colonnade.wire.tasks import moments_task_from_bytes, task_from_bytes


class Answers(Protocol):
    """A party's side of one job."""

    @property
    def context(self) -> "JobContext":
        """What the party brings to the job."""

    def answer(self, round_: int, body: bytes) -> list[Released] | Replies:
        """Release what a task asks for."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a party brings to a job that it has approved."""

    job_id: str
    party: str
    version: str  # of its table
    columns: Columns
    gate: Gate
    ledger: Ledger
    clients: Clients | None = None  # if the table is divided among them
    drop_out: float = 0.0  # share of its clients that a host leaves out, to try what then happens

    def request(self, body: bytes) -> bytes:
        """Return what the ledger binds an answer to."""
        return body + bytes.fromhex(self.version)


def answers_of(job: Job, context: JobContext) -> Answers:
    """Return the party's side of ``job``."""
    match job.method:
        case FrankWolfeSpec() as spec:
            return FrankWolfeAnswers.of(spec, context)
        case MomentsSpec() as spec:
            return MomentsAnswers.of(spec, context)
        case AdmmMethod() as method:
            return AdmmAnswers.of(method, context)


@dataclass(frozen=True, slots=True)
class FrankWolfeAnswers:
    """Frank-Wolfe's side."""

    party: FrankWolfeParty
    context: JobContext

    @classmethod
    def of(cls, spec: FrankWolfeSpec, context: JobContext) -> "FrankWolfeAnswers":
        """Build from context."""
        block, sketch = spec.block(context.party), spec.sketch(context.job_id)
        party = FrankWolfeParty(
            spec, context.job_id, block, sketch, context.columns, context.gate, context.ledger
        )
        return cls(party, context)

    def answer(self, round_: int, body: bytes) -> list[Released]:
        """Release what a task asks for."""
        spec, block = self.party.spec, self.party.block
        task = task_from_bytes(body, n_features=len(block.features), sketch_dim=spec.sketch_dim)
        request = self.context.request(body)
        if task.public is None:
            if round_ != 0:
                raise BadMessage("only round 0 is an opening")
            return self.party.open(request)
        if not 1 <= round_ <= spec.rounds:
            raise BadMessage(f"the job has rounds 1 to {spec.rounds}")
        keys = [ReleaseKey(self.party.job, 0, kind) for kind in spec.opening(block)]
        if any(key not in self.party.ledger.state.stored for key in keys):
            raise BadMessage("the job's opening comes first")  # before anything is charged
        return self.party.choose(round_, task.public, task.candidates, request)


@dataclass(frozen=True, slots=True)
class MomentsAnswers:
    """Moments' side."""

    party: MomentsParty
    context: JobContext

    @classmethod
    def of(cls, spec: MomentsSpec, context: JobContext) -> "MomentsAnswers":
        """Build from context."""
        part, sketch = spec.part(context.party), spec.sketch(context.job_id)
        party = MomentsParty(
            spec, context.job_id, part, sketch, context.columns, context.gate, context.ledger
        )
        return cls(party, context)

    def answer(self, round_: int, body: bytes) -> list[Released]:
        """Release what a task asks for."""
        spec, part = self.party.spec, self.party.part
        task = moments_task_from_bytes(
            body,
            round_=round_,
            n_columns=spec.n_columns(part),
            n_features=len(part.features),
            sketch_dim=spec.sketch_dim,
        )
        return self.party.answer(task, self.context.request(body))


@dataclass(frozen=True, slots=True)
class AdmmAnswers:
    """The side of a party that holds one client or many."""

    host: AdmmHost
    accounts: tuple[str, ...]  # of the clients, in the party's own order
    context: JobContext

    @classmethod
    def of(cls, method: AdmmMethod, context: JobContext) -> "AdmmAnswers":
        """Build from context: an undivided table is one client, with the default account."""
        whole, accounts = [slice(None)], [""]
        if context.clients is not None:
            whole, accounts = context.clients.rows(), context.clients.accounts(context.ledger)

        @functools.cache
        def problems() -> Problems:
            columns, label = context.columns.features, context.columns.label
            if label is None:
                raise TypeError("every member of a job over clients holds its label")
            # One matrix at a time: factorised, the clients' rows are not needed again.
            return factorise((Client(columns[:, rows], label[rows]) for rows in whole), method.spec)

        places = {account: place for place, account in enumerate(accounts)}
        version = bytes.fromhex(context.version)
        host = AdmmHost(
            method.spec, context.job_id, problems, places, version, context.gate, context.ledger
        )
        return cls(host, tuple(accounts), context)

    def answer(self, round_: int, body: bytes) -> Replies:
        """Release what a task asks of clients."""
        spec = self.host.spec
        asked = questions_from_bytes(body, n_clients=len(self.accounts), dim=spec.dim)
        if asked.rounds.size and int(asked.rounds.max()) > round_:
            raise BadMessage("a task has a question of a round that has not come")
        admitted, job = self.host.ledger.state.admitted, self.host.job
        clients = asked.clients.tolist()
        # Nothing was set aside for these: the job must not live on what becomes free later.
        outside = {c for c in clients if (job, self.accounts[c]) not in admitted}
        there = [row for row, client in enumerate(clients) if client not in outside]
        if drop_out := self.context.drop_out:
            there = [row for row in there if secrets.randbelow(10**6) >= drop_out * 10**6]
        names = [self.accounts[clients[row]] for row in there]
        tasks = ClientTasks(names, asked.rounds[there], asked.points[there])
        released, declined = dict[int, Released](), sorted(outside)
        for row, reply in zip(there, self.host.answer(tasks), strict=True):
            if isinstance(reply, Declined):
                declined.append(clients[row])
            else:
                released[clients[row]] = reply
        return Replies(released, declined)
