"""What a client is asked in a round: bounded integers, checked where they enter."""

import struct
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.optim.admm.spec import MAX_V


@dataclass(frozen=True, slots=True, eq=False)
class ClientTask:
    """Ask ``client`` for its displacement from ``v``, in grid steps.

    ``round`` is the round that the task was made in: a client that did not answer is asked the
    same again, so that it never pays twice for one answer.
    """

    client: str
    round: int
    v: IntArray

    def __post_init__(self) -> None:
        if not 1 <= self.round < 2**32:
            raise ValueError("a task belongs to a round from 1")
        if self.v.dtype != np.int64 or self.v.ndim != 1:
            raise ValueError("a task holds a vector of 64-bit integers")
        if self.v.size and (int(self.v.max()) > MAX_V or int(self.v.min()) < -MAX_V):
            raise ValueError("an entry of a task is too large")

    def request(self, version: bytes) -> bytes:
        """Return what the ledger binds the answer to: the task and the version of the data."""
        head = struct.pack("<II", self.round, self.v.size)
        return b"admm step" + head + self.v.astype("<i8").tobytes() + version
