"""The state of a federated ADMM job, and its bytes.

A state is written whole, or as what changed since the one before: the duals of the clients that
answered. Both are exact, so a coordinator that reads them back goes on bit for bit.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray

SEED_BYTES = 32
_HEAD = struct.Struct("<8sIIIII32s")
_MAGIC = b"admm/1\0\0"


@dataclass(frozen=True, slots=True, eq=False)
class AdmmState:
    """The state in round ``round``, before its answers; vectors are in grid steps."""

    round: int
    seed: bytes  # of the sampling; the coordinator's secret
    z: IntArray  # (dim,)
    total: IntArray  # (dim,): the exact sum of u
    u: IntArray  # (n_clients, dim)
    taken: IntArray  # (n_clients,): answers so far
    owed: IntArray  # (n_clients,): round of the unanswered task of an earlier round, or 0
    declined: NDArray[np.bool_]  # (n_clients,)
    past: Mapping[int, IntArray] = field(default_factory=dict)  # z of the rounds in `owed`


def start_state(n_clients: int, dim: int, seed: bytes) -> AdmmState:
    """Return the state before round 1: all zero."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    none, empty = np.zeros(n_clients, np.int64), np.zeros(dim, np.int64)
    u = np.zeros((n_clients, dim), np.int64)
    return AdmmState(1, seed, empty, empty, u, none, none, np.zeros(n_clients, np.bool_))


def encode_state(state: AdmmState, *, since: AdmmState | None = None) -> bytes:
    """Return the state's bytes: all of it, or what ``since`` lacks."""
    n, dim = state.u.shape
    rows = np.arange(n)
    if since is not None:
        rows = np.flatnonzero(state.taken != since.taken)
    parts = [
        _HEAD.pack(_MAGIC, n, dim, state.round, len(state.past), rows.size, state.seed),
        state.taken.astype("<u4").tobytes(),
        state.owed.astype("<u4").tobytes(),
        np.packbits(state.declined).tobytes(),
        np.array(sorted(state.past), "<u4").tobytes(),
        rows.astype("<u4").tobytes(),
    ]
    vectors = [state.z, state.total, *(state.past[round_] for round_ in sorted(state.past))]
    parts.extend(vector.astype("<i8").tobytes() for vector in vectors)
    parts.append(state.u[rows].astype("<i8").tobytes())
    return b"".join(parts)


def decode_state(body: bytes, *, since: AdmmState | None = None) -> AdmmState:
    """Return the state that the bytes stand for; `ValueError` if they are no state."""
    if len(body) < _HEAD.size:
        raise ValueError("the bytes are no state")
    magic, n, dim, round_, n_past, n_rows, seed = _HEAD.unpack_from(body)
    declined_bytes = -(-n // 8)
    size = _HEAD.size + 8 * n + declined_bytes + 4 * (n_past + n_rows)
    size += 8 * dim * (2 + n_past + n_rows)
    if magic != _MAGIC or len(body) != size:
        raise ValueError("the bytes are no state")
    at = _HEAD.size

    def take(kind: str, count: int) -> NDArray[np.int64]:
        nonlocal at
        values = np.frombuffer(body, kind, count, at)
        at += values.nbytes
        return values.astype(np.int64)

    taken, owed = take("<u4", n), take("<u4", n)
    declined = np.unpackbits(take("u1", declined_bytes).astype(np.uint8), count=n).astype(np.bool_)
    rounds, rows = take("<u4", n_past), take("<u4", n_rows)
    z, total = take("<i8", dim), take("<i8", dim)
    past = {int(number): take("<i8", dim) for number in rounds}
    if since is None:
        if n_rows != n:
            raise ValueError("the bytes hold a change, and there is no state that it changes")
        u = take("<i8", n * dim).reshape(n, dim)
    else:
        if since.u.shape != (n, dim) or np.any(rows >= n):
            raise ValueError("the bytes change another state")
        u = since.u.copy()
        u[rows] = take("<i8", n_rows * dim).reshape(n_rows, dim)
    return AdmmState(round_, seed, z, total, u, taken, owed, declined, past)
