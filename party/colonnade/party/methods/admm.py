"""A client's side of federated ADMM, for one client or for a host of many.

Privacy: releases go through the gate, charged to the client's own account. What is handed to the
mechanism is an integer vector of norm at most the radius of its round for any data and any task a
coordinator can send (`admm.grid.to_grid`), so that replacing all data of a client moves it by at
most twice that and each participation costs what `admm.releases` proves. Radii and prices follow
from the job's specification alone. A client's answer depends on its
own data and on the task alone: that clients are computed together changes nothing. Clients keep no
state but their ledger rows; the factorisations are a cache of their data, made when a client is
first asked and has paid: how long that takes follows from how many rows it has.

Many clients pass the gate together (`Gate.release_many`): a client that cannot pay declines by
itself, and its rows are not read.
"""

import functools
import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, request_digest
from colonnade.ledger.ledger import MAX_TOGETHER, Ledger, Released
from colonnade.ledger.storage.base import MAX_BODY_BYTES
from colonnade.methods.admm.choices import Aggregate
from colonnade.methods.admm.codec import tasks_from_bytes
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import ClientRows, Displacing, KeptProblems
from colonnade.methods.admm.releases import DISPLACEMENT
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.party.methods.base import JobContext
from colonnade.wire.cohort import Replies


@dataclass(frozen=True, slots=True)
class AdmmHost:
    """Answers the tasks of one job for the clients that live here.

    Parameters
    ----------
    problems
        Factorise a client's data when it is first needed, which is after its charge: how long that
        takes follows from how many rows it has, and a proposal is free.
    accounts
        The names of the clients' ledger accounts, in the host's own order. They come from the
        host's own list, never from a peer.
    version
        Names the version of the clients' data; the ledger binds answers to it.
    """

    spec: AdmmSpec
    job: str
    problems: Displacing
    accounts: Sequence[str]
    version: bytes
    gate: Gate
    ledger: Ledger

    def admit(self) -> list[int]:
        """Set the job's greatest price aside for every client; return those that cannot pay."""
        refused = self.ledger.admit_many(self.job, self.accounts, units=self.spec.max_units)
        return [client for client, name in enumerate(self.accounts) if name in refused]

    def answer(self, tasks: ClientTasks) -> Replies:
        """Release what the tasks ask for; a stored release is replayed, who cannot pay declines.

        Where the job has sums, clients that answer together are one sum with one noise.
        """
        self.check(tasks)
        released, declined = dict[int, Released](), list[int]()
        for part in self._parts(tasks):
            for client, reply in zip(part.clients.tolist(), self._answer(part), strict=True):
                if isinstance(reply, Released):
                    released[client] = reply
                else:
                    declined.append(client)
        kind = self.spec.release(tasks.round).kind if len(tasks) else DISPLACEMENT
        return Replies(kind, released, declined)

    @property
    def together(self) -> int:
        """How many clients answer in one commit."""
        return max(1, min(MAX_TOGETHER, MAX_BODY_BYTES // self.spec.body_bytes))

    def _parts(self, tasks: ClientTasks) -> Iterator[ClientTasks]:
        """Yield tasks that are answered together: of one round, as many as one commit holds."""
        for round_ in np.unique(tasks.rounds).tolist():
            rows = np.flatnonzero(tasks.rounds == round_)
            for at in range(0, rows.size, self.together):
                yield tasks.only(rows[at : at + self.together])

    def _answer(self, tasks: ClientTasks) -> Sequence[object]:
        """Return, in the order of the tasks, a release or the reason why there is none."""
        number, release = int(tasks.rounds[0]), self.spec.release(tasks.round)
        keys = [
            ReleaseKey(self.job, number, release.kind, self.accounts[client])
            for client in tasks.clients.tolist()
        ]
        digests = map(request_digest, self._requests(tasks, keys))
        requests = [
            ReleaseRequest(key, release.mechanism, digest)
            for key, digest in zip(keys, digests, strict=True)
        ]
        row_of = {key: row for row, key in enumerate(keys)}
        if self.spec.aggregate is Aggregate.HOST:
            return self.gate.release_sum(
                requests,
                lambda paid: self.sum(tasks, [row_of[key] for key in paid]),
                encode=functools.partial(pack, release.code),
            )
        return self.gate.release_many(
            requests,
            lambda paid: self._displacements(tasks, [row_of[key] for key in paid]),
            encode=functools.partial(pack, release.code),
        )

    def _displacements(self, tasks: ClientTasks, rows: Sequence[int]) -> Sequence[IntArray]:
        """Return the exact displacements of those that have paid and not yet answered."""
        paid = tasks.only(np.array(rows, np.int64))
        exact = self.problems.displacements(paid.clients, paid.points, round_=tasks.round)
        return list(exact)

    def sum(self, tasks: ClientTasks, rows: Sequence[int]) -> IntArray:
        """Return the exact sum of the clipped displacements of those that have paid."""
        total: IntArray = np.sum(self._displacements(tasks, rows), axis=0, dtype=np.int64)
        return total

    def _requests(self, tasks: ClientTasks, keys: Sequence[ReleaseKey]) -> Sequence[bytes]:
        """Return what the ledger binds each answer to; that of a sum, to all who were asked."""
        requests = tasks.requests(self.version)
        if self.spec.aggregate is Aggregate.NONE:
            return requests
        asked = b"sum of" + struct.pack("<I", tasks.step)
        together = asked + b"".join(requests) + "\0".join(key.account for key in keys).encode()
        return [request + together for request in requests]

    def check(self, tasks: ClientTasks) -> None:
        """Refuse tasks that do not fit the job, before anything is charged."""
        if not len(tasks):
            return  # nobody who was asked is here
        if np.any((tasks.clients < 0) | (tasks.clients >= len(self.accounts))):
            raise BadMessage("a task is for a client that does not live here")
        sums = self.spec.aggregate is not Aggregate.NONE
        if sums != bool(tasks.step) or (sums and np.unique(tasks.rounds).size > 1):
            raise BadMessage("a task asks for sums, or for answers, where the job has the other")
        rounds = [tasks.step] if sums else tasks.rounds.tolist()
        if max(rounds) > self.spec.rounds:
            raise BadMessage(f"a task is for a later round than the job's {self.spec.rounds}")
        if len({self.spec.release(round_).kind for round_ in rounds}) > 1:
            raise BadMessage("a task asks for two kinds of answers at once")
        size, there = self.spec.point_size(rounds[0]), tasks.points.shape[1]
        if there != size:
            raise BadMessage(f"a task has {there} entries instead of {size}")
        if size > self.spec.dim and np.any(tasks.points[:, -1] < 1):
            raise BadMessage("a task has a radius below one grid step")


@dataclass(frozen=True, slots=True)
class AdmmAnswers:
    """The side of a party that holds one client or many."""

    host: AdmmHost
    context: JobContext

    @classmethod
    def of(cls, method: AdmmJobSpec, context: JobContext) -> "AdmmAnswers":
        """Build from context."""
        return cls(admm_host(method, context), context)

    def answer(self, round_: int, body: bytes) -> Replies:
        """Release what a task asks of clients."""
        spec, accounts = self.host.spec, self.host.accounts
        asked = tasks_from_bytes(body, n_clients=len(accounts), point_size=spec.point_size)
        if asked.rounds.size and int(asked.rounds.max()) > round_:
            raise BadMessage("a task has a question of a round that has not come")
        admitted, job = self.host.ledger.state.admitted, self.host.job
        clients = asked.clients.tolist()
        # Nothing was set aside for these: the job must not live on what becomes free later.
        outside = {c for c in clients if (job, accounts[c]) not in admitted}
        there = [row for row, client in enumerate(clients) if client not in outside]
        if drop_out := self.context.drop_out:
            there = [
                row for row in there if not is_away(job, round_, accounts[clients[row]], drop_out)
            ]
        replies = self.host.answer(asked.only(np.array(there, np.int64)))
        kind = spec.release(asked.round).kind if len(asked) else replies.kind
        return Replies(kind, replies.released, [*sorted(outside), *replies.declined])


def admm_host(method: AdmmJobSpec, context: JobContext) -> AdmmHost:
    """Return the clients of a party as a job asks them."""
    rows = context.units.rows()

    def client(number: int) -> ClientRows:
        columns, label = context.columns.features, context.columns.label
        if label is None:
            raise TypeError("every member of a job over clients holds its label")
        return ClientRows(columns[:, rows[number]], label[rows[number]])

    problems = KeptProblems(method.spec, len(rows), client)
    accounts, version = context.units.accounts(context.ledger), bytes.fromhex(context.version)
    return AdmmHost(
        method.spec, context.job_id, problems, accounts, version, context.gate, context.ledger
    )


def is_away(job: str, round_: int, account: str, chance: float) -> bool:
    """Return whether somebody is left out to try what then happens; the same at every retry."""
    coin = int.from_bytes(
        hashlib.sha256(f"away {job} {round_} {account}".encode()).digest()[:8], "little"
    )
    return coin < int(chance * 2**64)
