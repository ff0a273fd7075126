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
from colonnade.server.methods.admm.duals import SparseDuals
from colonnade.wire.cohort import ClientAnswers

SEED_BYTES = 32
_HEAD = struct.Struct("<8s7I32s")
_MAGIC = b"admm/5\0\0"
_DENSE_MAGIC = b"admm/4\0\0"  # with the duals of all clients
_CHANGE_HEAD = struct.Struct("<8sIII")
_CHANGE_MAGIC = b"admm+3\0\0"


@dataclass(frozen=True, slots=True, eq=False)
class AdmmState:
    """The state before the answers of a drawing; vectors are in grid steps."""

    round: int  # that is open
    drawing: int  # of the job, that is open: the same number as the round while each needs but one
    seed: bytes  # of the sampling; the coordinator's secret
    z: IntArray  # (dim,); planned, (dim + 1,): the radius of the next question about the intercept
    total: IntArray  # (dim,): the exact sum of u; without duals, of the open round's displacements
    u: SparseDuals  # of n_clients; of none without duals
    taken: IntArray  # (n_clients,): displacements so far
    intercepts: IntArray  # (n_clients,): answers about the intercept so far
    owed: IntArray  # (n_clients,): round of the unanswered task of an earlier drawing, or 0
    declined: NDArray[np.bool_]  # (n_clients,)
    answered: NDArray[np.bool_]  # (n_clients,): in earlier drawings of the open round
    past: Mapping[int, IntArray] = field(default_factory=dict)  # z of the rounds in `owed`
    # (rounds done, 2): answers and noises that moved the model in each; only without duals.
    counts: IntArray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    # (rounds of the intercept opened, 5): b, radius, and sum, number and noises of the answers.
    questions: IntArray = field(default_factory=lambda: np.empty((0, 5), np.int64))

    @property
    def answers(self) -> IntArray:
        """Answers of each client so far, of all kinds."""
        return self.taken + self.intercepts


def start_state(
    n_clients: int, dim: int, seed: bytes, *, duals: bool = True, extra: int = 0
) -> AdmmState:
    """Return the state before round 1: all zero; ``extra`` numbers stand beside the model."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    none, empty = np.zeros(n_clients, np.int64), np.zeros(dim, np.int64)
    u = SparseDuals.zero(n_clients if duals else 0, dim)
    nobody, z = np.zeros(n_clients, np.bool_), np.zeros(dim + extra, np.int64)
    return AdmmState(1, 1, seed, z, empty, u, none, none, none, nobody, nobody)


def encode_state(state: AdmmState) -> bytes:
    """Return the whole state's bytes."""
    rounds = sorted(state.past)
    sizes = (state.taken.size, state.total.size, state.z.size, len(state.u))
    numbers = (state.taken, state.intercepts, state.owed, np.array(rounds))
    vectors = (state.z, state.total, state.counts, state.questions)
    changed = state.u.changed()
    lengths = np.array([len(state.counts), len(state.questions), changed.size])
    return b"".join(
        (
            _HEAD.pack(_MAGIC, *sizes, state.round, state.drawing, len(rounds), state.seed),
            *(part.astype("<u4").tobytes() for part in (lengths, *numbers, changed)),
            *(np.packbits(part).tobytes() for part in (state.declined, state.answered)),
            *(part.astype("<i8").tobytes() for part in vectors),
            *(state.past[round_].astype("<i8").tobytes() for round_ in rounds),
            state.u.of(changed).astype("<i8").tobytes(),
        )
    )


def decode_state(body: bytes) -> AdmmState:
    """Return the state that the bytes stand for; `ValueError` if they are no state."""
    dense = body.startswith(_DENSE_MAGIC)
    if len(body) < _HEAD.size or not (dense or body.startswith(_MAGIC)):
        raise ValueError("the bytes are no state")
    _, n, dim, size, duals, round_, drawing, n_past, seed = _HEAD.unpack_from(body)
    parts = _Parts(body, _HEAD.size)
    n_counts, n_questions = parts.take("<u4", 2).tolist()
    n_changed = duals if dense else int(parts.take("<u4", 1)[0])
    taken, intercepts, owed = (parts.take("<u4", n) for _ in range(3))
    rounds = parts.take("<u4", n_past)
    changed = np.arange(duals) if dense else parts.take("<u4", n_changed)
    declined, answered = parts.flags(n), parts.flags(n)
    z, total = parts.take("<i8", size), parts.take("<i8", dim)
    counts = parts.take("<i8", 2 * n_counts).reshape(-1, 2)
    questions = parts.take("<i8", 5 * n_questions).reshape(-1, 5)
    past = {number: parts.take("<i8", size) for number in rounds.tolist()}
    rows = parts.take("<i8", n_changed * dim).reshape(n_changed, dim)
    parts.end()
    u = _duals(duals, changed, rows)
    facts = (taken, intercepts, owed, declined, answered)
    return AdmmState(round_, drawing, seed, z, total, u, *facts, past, counts, questions)


def _duals(n_clients: int, changed: IntArray, rows: IntArray) -> SparseDuals:
    if np.unique(changed).size != changed.size or np.any(changed >= n_clients):
        raise ValueError("the bytes have the dual of a client twice, or of none")
    u = SparseDuals.zero(n_clients, rows.shape[1])
    some = rows.any(axis=1)
    u.put(changed[some], rows[some])
    return u


def encode_change(said: ClientAnswers, z: IntArray) -> bytes:
    """Return what a drawing used, and the model that came of it; bodies have their own sizes."""
    sizes = np.array([len(body) for body in said.bodies], np.int64)
    counts = z.size, said.clients.size, said.declined.size
    numbers = said.clients, said.rounds, said.declined, sizes
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
    _, dim, n_answers, n_declined = _CHANGE_HEAD.unpack_from(body)
    parts = _Parts(body, _CHANGE_HEAD.size)
    clients, rounds = parts.take("<u4", n_answers), parts.take("<u4", n_answers)
    declined, sizes = parts.take("<u4", n_declined), parts.take("<u4", n_answers)
    z = parts.take("<i8", dim)
    bodies = [parts.next(size) for size in sizes.tolist()]
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
