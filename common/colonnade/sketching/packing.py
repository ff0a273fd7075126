"""How noisy sketches and sums cross the wire: coarsened, packed at a width known beforehand.

Coarsening happens after the noise, so it is post-processing and costs no privacy; only the coarse
bytes are ever stored. The step is a quarter of the noise, which adds under one percent to it.
"""

import math
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.sparse import Sketch

# Standard deviations that fit before a value saturates.
_REACH = 6


def share_mechanism(sketch: Sketch, units: int) -> DiscreteGaussian:
    """Return the noise of a shared column that costs at most ``units``.

    Privacy: replacing a row moves the sketch by at most ``2 GRID`` times a column of ``J``.
    """
    sensitivity2 = (2 * GRID) ** 2 * sketch.column_norm2
    return DiscreteGaussian.within(units, l2_sensitivity2=sensitivity2)


@dataclass(frozen=True, slots=True)
class ShareCode:
    """A fixed-width code for noisy sketches; everything follows from public numbers."""

    dim: int
    step: int
    width: int

    @classmethod
    def of(cls, sketch: Sketch, n_rows: int, mechanism: DiscreteGaussian) -> "ShareCode":
        """Return the code for a sketch of ``n_rows`` values within the grid, with noise."""
        step = max(1, math.isqrt(mechanism.sigma2) // 4)
        # Energy of J a spreads evenly over the dimensions: at most s n GRID^2 / m in each.
        signal2 = sketch.column_norm2 * n_rows * GRID**2 // sketch.dim
        spread = math.isqrt(mechanism.sigma2 + signal2) + 1
        levels = 2 * (_REACH * spread // step + 1)
        return cls(sketch.dim, step, max(2, (levels - 1).bit_length()))

    @classmethod
    def bounded(cls, dim: int, bound: int, mechanism: DiscreteGaussian) -> "ShareCode":
        """Return the code for ``dim`` integers within ``+-bound``, with noise."""
        step = max(1, math.isqrt(mechanism.sigma2) // 4)
        levels = 2 * ((bound + _REACH * (math.isqrt(mechanism.sigma2) + 1)) // step + 1)
        return cls(dim, step, max(2, (levels - 1).bit_length()))

    @property
    def n_bytes(self) -> int:
        """Size of every body."""
        return -(-self.dim * self.width // 8)

    def encode(self, noisy: IntArray) -> bytes:
        """Pack a noisy sketch."""
        half = 1 << (self.width - 1)
        codes = np.clip((noisy + self.step // 2) // self.step, -half, half - 1) + half
        places = np.arange(self.width, dtype=np.int64)
        bits = (codes.reshape(-1, 1) >> places) & 1
        return np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()

    def decode(self, body: bytes) -> IntArray:
        """Unpack a body to the integers it stands for; `ValueError` for another size."""
        if len(body) != self.n_bytes:
            raise ValueError(f"a share has {len(body)} bytes instead of {self.n_bytes}")
        packed = np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
        bits = packed[: self.dim * self.width].reshape(self.dim, self.width).astype(np.int64)
        half = 1 << (self.width - 1)
        codes: IntArray = bits @ (1 << np.arange(self.width, dtype=np.int64)) - half
        return codes * self.step
