"""The state of a federated ADMM job, and its bytes.

The first state of a job is written whole, and each later one as its change: what a drawing used,
and the model that came of it. The rest of a state follows from the one before in exact integers
(`steps.AdmmCoordinator.replay`), so a coordinator that reads them back goes on bit for bit.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.wire.cohort import ClientAnswers

SEED_BYTES = 32
_HEAD = struct.Struct("<8sIIIII32s")
_MAGIC = b"admm/3\0\0"
_CHANGE_HEAD = struct.Struct("<8sIIII")
_CHANGE_MAGIC = b"admm+2\0\0"


@dataclass(frozen=True, slots=True, eq=False)
class AdmmState:
    """The state before the answers of a drawing; vectors are in grid steps."""

    round: int  # that is open
    drawing: int  # of the job, that is open: the same number as the round while each needs but one
    seed: bytes  # of the sampling; the coordinator's secret
    z: IntArray  # (dim,)
    total: IntArray  # (dim,): the exact sum of u
    u: IntArray  # (n_clients, dim)
    taken: IntArray  # (n_clients,): answers so far
    owed: IntArray  # (n_clients,): round of the unanswered task of an earlier drawing, or 0
    declined: NDArray[np.bool_]  # (n_clients,)
    answered: NDArray[np.bool_]  # (n_clients,): in earlier drawings of the open round
    past: Mapping[int, IntArray] = field(default_factory=dict)  # z of the rounds in `owed`


def start_state(n_clients: int, dim: int, seed: bytes) -> AdmmState:
    """Return the state before round 1: all zero."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    none, empty = np.zeros(n_clients, np.int64), np.zeros(dim, np.int64)
    u = np.zeros((n_clients, dim), np.int64)
    nobody = np.zeros(n_clients, np.bool_)
    return AdmmState(1, 1, seed, empty, empty, u, none, none, nobody, nobody)


def encode_state(state: AdmmState) -> bytes:
    """Return the whole state's bytes."""
    n, dim = state.u.shape
    rounds = sorted(state.past)
    return b"".join(
        (
            _HEAD.pack(_MAGIC, n, dim, state.round, state.drawing, len(rounds), state.seed),
            *(part.astype("<u4").tobytes() for part in (state.taken, state.owed, np.array(rounds))),
            *(np.packbits(part).tobytes() for part in (state.declined, state.answered)),
            *(part.astype("<i8").tobytes() for part in (state.z, state.total)),
            *(state.past[round_].astype("<i8").tobytes() for round_ in rounds),
            state.u.astype("<i8").tobytes(),
        )
    )


def decode_state(body: bytes) -> AdmmState:
    """Return the state that the bytes stand for; `ValueError` if they are no state."""
    if len(body) < _HEAD.size or not body.startswith(_MAGIC):
        raise ValueError("the bytes are no state")
    _, n, dim, round_, drawing, n_past, seed = _HEAD.unpack_from(body)
    parts = _Parts(body, _HEAD.size)
    taken, owed, rounds = parts.take("<u4", n), parts.take("<u4", n), parts.take("<u4", n_past)
    declined, answered = parts.flags(n), parts.flags(n)
    z, total = parts.take("<i8", dim), parts.take("<i8", dim)
    past = {number: parts.take("<i8", dim) for number in rounds.tolist()}
    u = parts.take("<i8", n * dim).reshape(n, dim)
    parts.end()
    return AdmmState(round_, drawing, seed, z, total, u, taken, owed, declined, answered, past)


def encode_change(said: ClientAnswers, z: IntArray) -> bytes:
    """Return what a drawing used, all bodies of one size, and the model that came of it."""
    size = len(said.bodies[0]) if said.bodies else 0
    counts = z.size, said.clients.size, said.declined.size, size
    numbers = said.clients, said.rounds, said.declined
    return b"".join(
        (
            _CHANGE_HEAD.pack(_CHANGE_MAGIC, *counts),
            *(part.astype("<u4").tobytes() for part in numbers),
            z.astype("<i8").tobytes(),
            *said.bodies,
        )
    )


def decode_change(body: bytes) -> tuple[ClientAnswers, IntArray]:
    """Return what the bytes of a change say; `ValueError` if they are none."""
    if len(body) < _CHANGE_HEAD.size or not body.startswith(_CHANGE_MAGIC):
        raise ValueError("the bytes are no change of a state")
    _, dim, n_answers, n_declined, size = _CHANGE_HEAD.unpack_from(body)
    parts = _Parts(body, _CHANGE_HEAD.size)
    clients, rounds = parts.take("<u4", n_answers), parts.take("<u4", n_answers)
    declined, z = parts.take("<u4", n_declined), parts.take("<i8", dim)
    bodies = [parts.next(size) for _ in range(n_answers)]
    parts.end()
    return ClientAnswers(clients, rounds, bodies, declined), z


@dataclass(slots=True)
class _Parts:
    """Arrays that lie one after the other in ``body``."""

    body: bytes
    at: int

    def next(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.body):
            raise ValueError("the bytes are too few for a state")
        return self.body[self.at - size : self.at]

    def take(self, kind: str, count: int) -> IntArray:
        raw = self.next(np.dtype(kind).itemsize * count)
        return np.frombuffer(raw, kind).astype(np.int64)

    def flags(self, count: int) -> NDArray[np.bool_]:
        bits = np.frombuffer(self.next(-(-count // 8)), np.uint8)
        return np.unpackbits(bits, count=count).astype(np.bool_)

    def end(self) -> None:
        if self.at != len(self.body):
            raise ValueError("the bytes are too many for a state")
