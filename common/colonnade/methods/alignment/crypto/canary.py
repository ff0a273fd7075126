"""Canaries: ids that exactly two parties list, which must land on equal rows.

Each pair derives 64 ids from a key that only the two hold, so nobody else can tell them from
people. After the rows have come each party sends each other one a MAC of the rows that these got,
and of the number of rows. The coordinator, which relays, learns only whether they agree.

What this catches: a party that skips or spoils a fraction ``f`` of the multiplications of a list is
missed with probability ``(1 - f)**64`` for each pair. It does not catch one altered row.
"""

import hmac
import struct

import numpy as np
from numpy.typing import NDArray

from colonnade.methods.alignment.crypto.exchange import PairKeys
from colonnade.methods.alignment.sizes import MAC_BYTES
from colonnade.methods.alignment.spec import CANARIES

Rows = NDArray[np.uint32]


def canary_ids(pair: PairKeys) -> list[bytes]:
    """Return the ids of a pair's canaries: no real id begins with their first byte."""
    return [b"\2" + pair.canary + index.to_bytes(4, "big") for index in range(CANARIES)]


def row_mac(
    pair: PairKeys, *, sender: int, receiver: int, n_rows: int, kept: int, rows: Rows
) -> bytes:
    """Return the MAC of the canaries' rows, in the canaries' order."""
    head = struct.pack(">HHII", sender, receiver, n_rows, kept)
    message = b"colonnade alignment canaries v1\0" + head + rows.astype(">u4").tobytes()
    return hmac.digest(pair.mac, message, "sha256")[:MAC_BYTES]


def same_mac(one: bytes, other: bytes) -> bool:
    """Return whether two MACs are equal, in constant time."""
    return hmac.compare_digest(one, other)
