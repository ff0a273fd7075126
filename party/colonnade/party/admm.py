"""A client's side of federated ADMM, for one client or for a host of many.

Privacy: one kind of release, through the gate, charged to the client's own account. What is handed
to the mechanism is an integer vector of norm at most ``R`` for any data and any task a coordinator
can send (`optim.admm.kernels.to_grid`), so that replacing all data of a client moves it by at most
``2 R`` and each participation costs what `optim.admm.spec` proves. A client's answer depends on its
own data and on the task alone: that clients are computed together changes nothing. Clients keep no
state but their ledger rows; the factorisations are a cache of their data.

Many clients at once, block by block: first every charge, durably; then the arithmetic of all; then
noise and store, client by client. So no row of a client is read for a task before it has paid.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.optim.admm.packing import pack
from colonnade.optim.admm.prox import Problems
from colonnade.optim.admm.spec import DISPLACEMENT, AdmmSpec
from colonnade.optim.admm.tasks import ClientTask
from colonnade.privacy.entries import ReleaseKey
from colonnade.privacy.gate import Gate
from colonnade.privacy.ledger import Ledger, Released
from colonnade.privacy.state import REFUSALS

# Clients that are computed together.
BLOCK = 32


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
    places
        Where each client is among the problems, by the name of its ledger account. The names come
        from the host's own list, never from a peer.
    version
        Names the version of the clients' data; the ledger binds answers to it.
    """

    spec: AdmmSpec
    job: str
    problems: Problems
    places: Mapping[str, int]
    version: bytes
    gate: Gate
    ledger: Ledger

    def admit(self) -> list[Declined]:
        """Set the job's greatest price aside for every client; return those that cannot pay."""
        refused = []
        for client in self.places:
            try:
                self.ledger.admit(self.job, units=self.spec.max_units, account=client)
            except REFUSALS as error:
                refused.append(Declined(client, 0, error.code))
        return refused

    def answer(self, tasks: Sequence[ClientTask]) -> list[Released | Declined]:
        """Release what the tasks ask for, in their order; a stored release is replayed."""
        self._check(tasks)
        encode = functools.partial(pack, self.spec.code)
        blocks = range(0, len(tasks), BLOCK)
        with self.ledger.lock:
            return [
                reply for at in blocks for reply in self._answer(tasks[at : at + BLOCK], encode)
            ]

    def _answer(
        self, tasks: Sequence[ClientTask], encode: Callable[[IntArray], bytes]
    ) -> list[Released | Declined]:
        mechanism = self.spec.mechanism
        keys = [ReleaseKey(self.job, task.round, DISPLACEMENT, task.client) for task in tasks]
        requests = [task.request(self.version) for task in tasks]
        replies: dict[int, Released | Declined] = {}
        for place, task in enumerate(tasks):
            digest = hashlib.sha256(requests[place]).hexdigest()
            try:
                self.ledger.charge(keys[place], mechanism, request_sha256=digest)
            except REFUSALS as error:
                replies[place] = Declined(task.client, task.round, error.code)
        paid = [place for place in range(len(tasks)) if place not in replies]
        new = [place for place in paid if keys[place] not in self.ledger.state.stored]
        moved = dict(zip(new, self._displacements([tasks[p] for p in new]), strict=True))
        for place in paid:
            compute = functools.partial(moved.__getitem__, place)  # not called for a replay
            replies[place] = self.gate.release(
                keys[place], requests[place], mechanism, compute, encode=encode
            )
        return [replies[place] for place in range(len(tasks))]

    def _displacements(self, tasks: Sequence[ClientTask]) -> IntArray:
        """Return the exact displacements of those that have paid and not yet answered."""
        if not tasks:
            return np.empty((0, self.spec.dim), np.int64)
        clients = np.array([self.places[task.client] for task in tasks], np.int64)
        return self.problems.displacements(clients, np.stack([task.v for task in tasks]))

    def _check(self, tasks: Sequence[ClientTask]) -> None:
        """Refuse tasks that do not fit the job, before anything is charged."""
        if len({task.client for task in tasks}) != len(tasks):
            raise BadInput("a client is asked twice at once")
        for task in tasks:
            if task.client not in self.places:
                raise BadInput("a task is for a client that does not live here")
            if not 1 <= task.round <= self.spec.rounds:
                raise BadInput(
                    f"a task is for round {task.round} of a job of {self.spec.rounds} rounds"
                )
            if task.v.shape != (self.spec.dim,):
                raise BadInput(f"a task has {task.v.size} entries instead of {self.spec.dim}")
