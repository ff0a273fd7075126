"""Scores as sums of integers: the same bits, however the columns are spread over organizations.

Training sees values on the grid of `core.fixedpoint`, and so do predictions. Coefficients are
rounded to a power of two that follows from the model alone, so a score is an exact sum of integers,
in any order and split in any way, until its last operation makes a float of it.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID

if TYPE_CHECKING:
    from colonnade.data.model import LinearModel

# A score is below 2**54 in size, so that each of 256 parts is below 2**62 / 256.
_SCORE_BITS = 54
_GRID_BITS = GRID.bit_length() - 1
_MAX_BITS = 48
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class IntegerScores:
    """A model's coefficients as integers in units of ``2**-bits``."""

    bits: int
    intercept: int
    coef: tuple[int, ...]  # in the order of the model's features

    @classmethod
    def of(cls, model: "LinearModel") -> "IntegerScores":
        """Return the integers of a model: the finest that no score overflows with."""
        coef = [feature.coef_scaled for feature in model.features]
        size = math.fsum([abs(model.intercept_scaled), *map(abs, coef)])
        _, exponent = math.frexp(size)  # size < 2**exponent
        bits = min(_MAX_BITS, _SCORE_BITS - _GRID_BITS - 1 - exponent)
        return cls(bits, _fixed(model.intercept_scaled, bits), tuple(_fixed(c, bits) for c in coef))

    @property
    def scale(self) -> int:
        """What an integer score of 1.0 is, where that is at least 1."""
        return 1 << max(0, self.bits + _GRID_BITS)

    def score(self, total: IntArray) -> FloatArray:
        """Return the scores that belong to sums over all features, without the intercept."""
        whole = total + np.int64(self.intercept * GRID)
        return np.ldexp(whole.astype(np.float64), -(self.bits + _GRID_BITS))


def add_products(total: IntArray, columns: Int16Array, coef: Sequence[int]) -> None:
    """Add ``coef @ columns`` to ``total``, in place; columns are on the grid."""
    used = [(place, np.int64(number)) for place, number in enumerate(coef) if number]
    for start in range(0, total.size, _CHUNK):  # a chunk of the sum stays in cache
        part = slice(start, start + _CHUNK)
        for place, number in used:
            total[part] += number * columns[place, part]


def model_digest(model: "LinearModel") -> bytes:
    """Return the SHA-256 of what a model says, whatever noise it was fitted with.

    Numbers are written so that they read back exactly, so two models have one digest if and only
    if they agree in every bit.
    """
    facts = model.to_object()
    del facts["private"], facts["version"]
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(b"colonnade model v1\0" + text.encode()).digest()


def _fixed(number: float, bits: int) -> int:
    return round(math.ldexp(number, bits))
