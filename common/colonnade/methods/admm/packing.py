"""Pack and unpack bodies quickly: the same bytes as `ShareCode`, for thousands of clients."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.constant_time import floor_divide
from colonnade.core.jit import njit
from colonnade.sketching.packing import ShareCode


def pack(code: ShareCode, noisy: IntArray) -> bytes:
    """Return ``code.encode(noisy)``."""
    body = np.zeros(code.n_bytes, np.uint8)
    _pack(noisy, code.step, 1.0 / code.step, code.width, body)
    return body.tobytes()


@njit
def _pack(noisy: IntArray, step: int, inverse: float, width: int, body: NDArray[np.uint8]) -> None:
    """Write codes of ``width`` bits, lowest bit first, into a body of zeros.

    Privacy: the time it takes does not depend on the values, which a code represents in part.
    """
    half = np.int64(1) << np.int64(width - 1)
    most = float(half * step)  # below 2**43: see `AdmmSpec`
    for at in range(noisy.size):
        value = np.int64(min(max(float(noisy[at]), -most), most))
        code = float(floor_divide(value + step // 2, step, inverse))
        bits = np.int64(min(code, float(half - 1))) + half
        for bit in range(width):
            place = at * width + bit
            body[place >> 3] |= np.uint8(((bits >> np.int64(bit)) & 1) << (place & 7))


def unpack_many(code: ShareCode, bodies: Sequence[bytes]) -> IntArray:
    """Return ``code.decode`` of every body, one in a row."""
    if set(map(len, bodies)) - {code.n_bytes}:
        raise ValueError(f"a body has another size than {code.n_bytes} bytes")
    packed = np.frombuffer(b"".join(bodies), np.uint8).reshape(len(bodies), code.n_bytes)
    values = np.empty((len(bodies), code.dim), np.int64)
    _unpack(packed, code.step, code.width, values)
    return values


@njit
def _unpack(packed: NDArray[np.uint8], step: int, width: int, values: IntArray) -> None:
    """Read codes of ``width`` bits, lowest bit first, from every row into a row of ``values``."""
    half = np.int64(1) << np.int64(width - 1)
    for row in range(values.shape[0]):
        place = 0
        for entry in range(values.shape[1]):
            code, done = np.int64(0), 0
            while done < width:  # as many bits at a time as a byte still has
                low = place & 7
                taken = min(8 - low, width - done)
                bits = (np.int64(packed[row, place >> 3]) >> low) & ((1 << taken) - 1)
                code |= bits << done
                place, done = place + taken, done + taken
            values[row, entry] = (code - half) * step
