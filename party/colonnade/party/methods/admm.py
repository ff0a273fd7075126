"""A client's side of federated ADMM, for one client or for a host of many.

Privacy: one kind of release, through the gate, charged to the client's own account. What is handed
to the mechanism is an integer vector of norm at most ``R`` for any data and any task a coordinator
can send (`optim.admm.kernels.to_grid`), so that replacing all data of a client moves it by at most
``2 R`` and each participation costs what `optim.admm.spec` proves. A client's answer depends on its
own data and on the task alone: that clients are computed together changes nothing. Clients keep no
state but their ledger rows; the factorisations are a cache of their data.

Many clients pass the gate together (`Gate.release_many`): a client that cannot pay declines by
itself, and its rows are not read.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, request_digest
from colonnade.ledger.ledger import MAX_TOGETHER, Ledger, Released
from colonnade.ledger.storage import MAX_BODY_BYTES
from colonnade.methods.admm.packing import pack
from colonnade.methods.admm.prox import Problems
from colonnade.methods.admm.spec import DISPLACEMENT, AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks


@dataclass(frozen=True, slots=True)
class Declined:
    """A client that does not answer: over its cap, or asked what it may not answer. Public."""

    client: str
    round: int
    code: str


@dataclass(frozen=True, slots=True)
class AdmmHost:
    """Answers the tasks of one job for the clients that live here.

    Parameters
    ----------
    problems
        Factorises the clients' data when it is first needed, which is after the first charge: how
        long that takes follows from how many rows clients have, and a proposal is free.
    places
        Where each client is among the problems, by the name of its ledger account. The names come
        from the host's own list, never from a peer.
    version
        Names the version of the clients' data; the ledger binds answers to it.
    """

    spec: AdmmSpec
    job: str
    problems: Callable[[], Problems]
    places: Mapping[str, int]
    version: bytes
    gate: Gate
    ledger: Ledger

    def admit(self) -> list[Declined]:
        """Set the job's greatest price aside for every client; return those that cannot pay."""
        names = list(self.places)
        refused = self.ledger.admit_many(self.job, names, units=self.spec.max_units)
        return [Declined(client, 0, error.code) for client, error in refused.items()]

    def answer(self, tasks: ClientTasks) -> list[Released | Declined]:
        """Release what the tasks ask for, in their order; a stored release is replayed."""
        self._check(tasks)
        together = self.together
        return [
            reply
            for at in range(0, len(tasks), together)
            for reply in self._answer(tasks.part(slice(at, at + together)))
        ]

    @property
    def together(self) -> int:
        """How many clients answer in one commit."""
        return max(1, min(MAX_TOGETHER, MAX_BODY_BYTES // self.spec.body_bytes))

    def _answer(self, tasks: ClientTasks) -> list[Released | Declined]:
        job, mechanism = self.job, self.spec.mechanism
        keys = [
            ReleaseKey(job, round_, DISPLACEMENT, client)
            for client, round_ in zip(tasks.clients, tasks.rounds.tolist(), strict=True)
        ]
        digests = map(request_digest, tasks.requests(self.version))
        requests = [
            ReleaseRequest(key, mechanism, digest)
            for key, digest in zip(keys, digests, strict=True)
        ]
        row_of = {key: row for row, key in enumerate(keys)}
        replies = self.gate.release_many(
            requests,
            lambda paid: self._displacements(tasks, [row_of[key] for key in paid]),
            encode=functools.partial(pack, self.spec.code),
        )
        return [
            reply if isinstance(reply, Released) else Declined(key.account, key.round, reply.code)
            for key, reply in zip(keys, replies, strict=True)
        ]

    def _displacements(self, tasks: ClientTasks, rows: Sequence[int]) -> Sequence[IntArray]:
        """Return the exact displacements of those that have paid and not yet answered."""
        clients = np.array([self.places[tasks.clients[row]] for row in rows], np.int64)
        return list(self.problems().displacements(clients, tasks.points[list(rows)]))

    def _check(self, tasks: ClientTasks) -> None:
        """Refuse tasks that do not fit the job, before anything is charged."""
        if not self.places.keys() >= {*tasks.clients}:
            raise BadMessage("a task is for a client that does not live here")
        if len(tasks) and int(tasks.rounds.max()) > self.spec.rounds:
            raise BadMessage(f"a task is for a later round than the job's {self.spec.rounds}")
        if tasks.points.shape[1] != self.spec.dim:
            raise BadMessage(
                f"a task has {tasks.points.shape[1]} entries instead of {self.spec.dim}"
            )
