"""A client's side of federated ADMM, for one client or for a host of many.

Privacy: one kind of release, through the gate, charged to the client's own account. What is handed
to the mechanism is an integer vector of norm at most ``R`` for any data and any task a coordinator
can send (`admm.kernels.to_grid`), so that replacing all data of a client moves it by at most
``2 R`` and each participation costs what `admm.spec` proves. A client's answer depends on its
own data and on the task alone: that clients are computed together changes nothing. Clients keep no
state but their ledger rows; the factorisations are a cache of their data.

Many clients pass the gate together (`Gate.release_many`): a client that cannot pay declines by
itself, and its rows are not read.
"""

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, request_digest
from colonnade.ledger.ledger import MAX_TOGETHER, Ledger, Released
from colonnade.ledger.storage.base import MAX_BODY_BYTES
from colonnade.methods.admm.codec import tasks_from_bytes
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import Client, Problems, factorise
from colonnade.methods.admm.spec import DISPLACEMENT, AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.party.methods.base import JobContext
from colonnade.wire.cohort import Replies


@dataclass(frozen=True, slots=True)
class AdmmHost:
    """Answers the tasks of one job for the clients that live here.

    Parameters
    ----------
    problems
        Factorises the clients' data when it is first needed, which is after the first charge: how
        long that takes follows from how many rows clients have, and a proposal is free.
    accounts
        The names of the clients' ledger accounts, in the host's own order. They come from the
        host's own list, never from a peer.
    version
        Names the version of the clients' data; the ledger binds answers to it.
    """

    spec: AdmmSpec
    job: str
    problems: Callable[[], Problems]
    accounts: Sequence[str]
    version: bytes
    gate: Gate
    ledger: Ledger

    def admit(self) -> list[int]:
        """Set the job's greatest price aside for every client; return those that cannot pay."""
        refused = self.ledger.admit_many(self.job, self.accounts, units=self.spec.max_units)
        return [client for client, name in enumerate(self.accounts) if name in refused]

    def answer(self, tasks: ClientTasks) -> Replies:
        """Release what the tasks ask for; a stored release is replayed, who cannot pay declines."""
        self._check(tasks)
        released, declined = dict[int, Released](), list[int]()
        for at in range(0, len(tasks), self.together):
            part = tasks.only(slice(at, at + self.together))
            for client, reply in zip(part.clients.tolist(), self._answer(part), strict=True):
                if isinstance(reply, Released):
                    released[client] = reply
                else:
                    declined.append(client)
        return Replies(DISPLACEMENT, released, declined)

    @property
    def together(self) -> int:
        """How many clients answer in one commit."""
        return max(1, min(MAX_TOGETHER, MAX_BODY_BYTES // self.spec.body_bytes))

    def _answer(self, tasks: ClientTasks) -> Sequence[object]:
        """Return, in the order of the tasks, a release or the reason why there is none."""
        pairs = zip(tasks.clients.tolist(), tasks.rounds.tolist(), strict=True)
        keys = [
            ReleaseKey(self.job, round_, DISPLACEMENT, self.accounts[client])
            for client, round_ in pairs
        ]
        digests = map(request_digest, tasks.requests(self.version))
        requests = [
            ReleaseRequest(key, self.spec.mechanism, digest)
            for key, digest in zip(keys, digests, strict=True)
        ]
        row_of = {key: row for row, key in enumerate(keys)}
        return self.gate.release_many(
            requests,
            lambda paid: self._displacements(tasks, [row_of[key] for key in paid]),
            encode=functools.partial(pack, self.spec.code),
        )

    def _displacements(self, tasks: ClientTasks, rows: Sequence[int]) -> Sequence[IntArray]:
        """Return the exact displacements of those that have paid and not yet answered."""
        paid = tasks.only(np.array(rows, np.int64))
        return list(self.problems().displacements(paid.clients, paid.points))

    def _check(self, tasks: ClientTasks) -> None:
        """Refuse tasks that do not fit the job, before anything is charged."""
        if np.any((tasks.clients < 0) | (tasks.clients >= len(self.accounts))):
            raise BadMessage("a task is for a client that does not live here")
        if len(tasks) and int(tasks.rounds.max()) > self.spec.rounds:
            raise BadMessage(f"a task is for a later round than the job's {self.spec.rounds}")
        if tasks.points.shape[1] != self.spec.dim:
            raise BadMessage(
                f"a task has {tasks.points.shape[1]} entries instead of {self.spec.dim}"
            )


@dataclass(frozen=True, slots=True)
class AdmmAnswers:
    """The side of a party that holds one client or many."""

    host: AdmmHost
    context: JobContext

    @classmethod
    def of(cls, method: AdmmJobSpec, context: JobContext) -> "AdmmAnswers":
        """Build from context."""

        @functools.cache
        def problems() -> Problems:
            columns, label = context.columns.features, context.columns.label
            if label is None:
                raise TypeError("every member of a job over clients holds its label")
            # One matrix at a time: factorised, the clients' rows are not needed again.
            clients = (Client(columns[:, rows], label[rows]) for rows in context.units.rows())
            return factorise(clients, method.spec)

        accounts, version = context.units.accounts(context.ledger), bytes.fromhex(context.version)
        host = AdmmHost(
            method.spec, context.job_id, problems, accounts, version, context.gate, context.ledger
        )
        return cls(host, context)

    def answer(self, round_: int, body: bytes) -> Replies:
        """Release what a task asks of clients."""
        spec, accounts = self.host.spec, self.host.accounts
        asked = tasks_from_bytes(body, n_clients=len(accounts), dim=spec.dim)
        if asked.rounds.size and int(asked.rounds.max()) > round_:
            raise BadMessage("a task has a question of a round that has not come")
        admitted, job = self.host.ledger.state.admitted, self.host.job
        clients = asked.clients.tolist()
        # Nothing was set aside for these: the job must not live on what becomes free later.
        outside = {c for c in clients if (job, accounts[c]) not in admitted}
        there = [row for row, client in enumerate(clients) if client not in outside]
        if drop_out := self.context.drop_out:
            there = [row for row in there if secrets.randbelow(10**6) >= drop_out * 10**6]
        replies = self.host.answer(asked.only(np.array(there, np.int64)))
        return Replies(replies.kind, replies.released, [*sorted(outside), *replies.declined])
