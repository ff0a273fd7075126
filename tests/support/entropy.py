"""Repeatable stand-ins for operating-system entropy, for tests only."""

import hashlib
from collections.abc import Callable

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.privacy import sampling


def shake(seed: str) -> Callable[[int], bytes]:
    """Return a source of bytes that depends on ``seed`` alone."""
    calls = 0

    def read(size: int) -> bytes:
        nonlocal calls
        calls += 1
        return hashlib.shake_256(f"{seed}/{calls}".encode()).digest(size)

    return read


class ShakeNoise:
    """The shipped samplers on repeatable entropy."""

    def __init__(self, seed: str) -> None:
        self._entropy = shake(seed)

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        return sampling.gaussians(sigma2, size, self._entropy)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        return sampling._draw(size, self._entropy, scale=scale, sigma2=0)

    def below(self, bound: int) -> int:
        bits = bound.bit_length()
        while True:
            value = int.from_bytes(self._entropy((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if value < bound:
                return value


class ScriptedNoise:
    """Noise written down beforehand."""

    def __init__(self, value: int) -> None:
        self._value = value

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        return np.full(size, self._value, np.int64)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        return np.full(size, self._value, np.int64)

    def below(self, bound: int) -> int:
        return self._value % bound
