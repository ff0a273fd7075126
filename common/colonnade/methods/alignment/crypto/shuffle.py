"""Random orders that a secret seed determines, so that a restart draws the same one."""

import hashlib

import numpy as np

from colonnade.core.arrays import IntArray


def permutation(seed: bytes, label: bytes, size: int) -> IntArray:
    """Return a permutation of ``0 .. size - 1``: the order of ``size`` pseudorandom 64-bit keys.

    Equal keys, which stay in their order, occur with probability below ``size**2 / 2**65``.
    """
    stream = hashlib.shake_256(len(label).to_bytes(4, "big") + label + seed).digest(8 * size)
    return np.argsort(np.frombuffer(stream, "<u8"), kind="stable").astype(np.int64)
