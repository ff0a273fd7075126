"""What clients are asked in a round: bounded integers, checked where they enter."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.methods.admm.spec import MAX_V
from colonnade.methods.messages import int64s
from colonnade.v1 import job_pb2


@dataclass(frozen=True, slots=True, eq=False)
class ClientTasks:
    """Ask each of ``clients`` for its displacement from a row of ``points``, in grid steps.

    Clients are numbered in the order of the job, or of one party. ``rounds`` are those that the
    tasks were made in: a client that did not answer is asked the same again, so that it never pays
    twice for one answer.
    """

    clients: IntArray
    rounds: IntArray
    points: IntArray  # (clients, dim)
    step: int = 0  # of sums: the round of the job; ``rounds`` is then the number of the drawing

    def __post_init__(self) -> None:
        if np.unique(self.clients).size != len(self):
            raise ValueError("a client is asked twice at once")
        if self.rounds.shape != (len(self),) or self.points.shape[:-1] != (len(self),):
            raise ValueError("a task is for one client, of one round and from one point")
        if {self.clients.dtype, self.rounds.dtype, self.points.dtype} != {np.dtype(np.int64)}:
            raise ValueError("tasks hold 64-bit integers")
        if len(self) and not 1 <= int(self.rounds.min()) <= int(self.rounds.max()) < 2**32:
            raise ValueError("a task belongs to a round from 1")
        if self.points.size and not -MAX_V <= self.points.min() <= self.points.max() <= MAX_V:
            raise ValueError("an entry of a task is too large")

    @property
    def round(self) -> int:
        """The round of the job that is asked about, of tasks that are all of one."""
        return self.step or int(self.rounds[0])

    def __len__(self) -> int:
        return len(self.clients)

    def only(self, where: slice | IntArray | NDArray[np.bool_]) -> "ClientTasks":
        """Return some of the tasks."""
        return ClientTasks(self.clients[where], self.rounds[where], self.points[where], self.step)

    def shifted(self, first: int) -> "ClientTasks":
        """Return the same with other numbers for the clients, beginning at ``first``."""
        return ClientTasks(self.clients + first, self.rounds, self.points, self.step)

    def requests(self, version: bytes) -> list[bytes]:
        """Return what the ledger binds each answer to: the task and the version of the data."""
        size = self.points.shape[-1]
        return [
            b"admm step" + struct.pack("<II", round_, size) + point.tobytes() + version
            for round_, point in zip(self.rounds.tolist(), self.points.astype("<i8"), strict=True)
        ]


def write_step(step: job_pb2.AdmmStep, asked: ClientTasks) -> None:
    """Write what a party's clients are asked into a message."""
    step.clients.extend(asked.clients.tolist())
    step.rounds.extend(asked.rounds.tolist())
    step.points = asked.points.astype("<i8", copy=False).tobytes()
    step.step = asked.step


def read_step(
    step: job_pb2.AdmmStep, *, n_clients: int, point_size: Callable[[int], int]
) -> ClientTasks:
    """Decode what a party's clients are asked, or refuse it."""
    clients, rounds = int64s(step.clients), int64s(step.rounds)
    dim = point_size(step.step or (int(rounds.max()) if rounds.size else 1))
    if rounds.size != clients.size or len(step.points) != 8 * clients.size * dim:
        raise BadMessage(f"a task's points are not of the job's size {dim}")
    if np.any(clients >= n_clients):
        raise BadMessage(f"a task asks a client beyond the party's {n_clients}")
    points = np.frombuffer(step.points, "<i8").reshape(clients.size, dim).astype(np.int64)
    try:
        return ClientTasks(clients, rounds, points, step.step)
    except ValueError as error:
        raise BadMessage(f"a task cannot be used: {error}") from None
