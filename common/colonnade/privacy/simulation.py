"""Noise for simulations and tests. Nothing here is private, and no real ledger accepts it."""

import numpy as np

from colonnade.core.arrays import IntArray


class SeededNoise:
    """Fast, repeatable noise from a seed: rounded floating-point samples.

    Not private: the seed reveals every draw and the samples are not exact.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        """Draw rounded Gaussian samples."""
        return np.rint(self._generator.normal(0.0, float(sigma2) ** 0.5, size)).astype(np.int64)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        """Draw rounded Laplace samples."""
        return np.rint(self._generator.laplace(0.0, float(scale), size)).astype(np.int64)

    def below(self, bound: int) -> int:
        """Draw a uniform integer below ``bound``, up to the resolution of a seeded generator."""
        return int.from_bytes(self._generator.bytes(bound.bit_length() // 8 + 9), "little") % bound


class ZeroNoise:
    """No noise at all, for comparing a federation with its centralised twin.

    Not private. A selection under it takes the middle of the total weight.
    """

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.int64)

    def below(self, bound: int) -> int:
        """Return the middle of the range."""
        return bound // 2
