"""Pack and unpack bodies quickly: the same bytes as `ShareCode`, for thousands of clients."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit
from colonnade.optim.vertical.shares import ShareCode


def pack(code: ShareCode, noisy: IntArray) -> bytes:
    """Return ``code.encode(noisy)``."""
    body = np.zeros(code.n_bytes, np.uint8)
    _pack(noisy, code.step, code.width, body)
    return body.tobytes()


@njit
def _pack(noisy: IntArray, step: int, width: int, body: NDArray[np.uint8]) -> None:
    """Write codes of ``width`` bits, lowest bit first, into a body of zeros."""
    half = np.int64(1) << np.int64(width - 1)
    place = 0
    for value in noisy:
        code = min(max((value + step // 2) // step, -half), half - 1) + half
        for bit in range(width):
            if (code >> np.int64(bit)) & 1:
                body[place >> 3] |= np.uint8(1 << (place & 7))
            place += 1


def unpack_many(code: ShareCode, bodies: Sequence[bytes]) -> IntArray:
    """Return ``code.decode`` of every body, one in a row."""
    if any(len(body) != code.n_bytes for body in bodies):
        raise ValueError(f"a body has another size than {code.n_bytes} bytes")
    packed = np.frombuffer(b"".join(bodies), np.uint8).reshape(len(bodies), code.n_bytes)
    bits = np.unpackbits(packed, axis=1, bitorder="little")[:, : code.dim * code.width]
    places = bits.reshape(len(bodies), code.dim, code.width)
    codes = np.zeros((len(bodies), code.dim), np.int64)
    for place in range(code.width):
        codes |= places[:, :, place].astype(np.int64) << place
    return (codes - (1 << (code.width - 1))) * code.step
