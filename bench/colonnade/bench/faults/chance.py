"""What a simulation draws, all from one seed."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Chance:
    """Draws of a simulation, each from the same stream."""

    def __init__(self, *seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def happens(self, chance: float) -> bool:
        """Return True with this chance."""
        return bool(self._draw.random() < chance)

    def share(self) -> float:
        """Return a number between 0 and 1."""
        return float(self._draw.random())

    def between(self, low: float, high: float) -> float:
        """Return a number between two others."""
        return float(self._draw.uniform(low, high))

    def around(self, mean: float) -> float:
        """Return a waiting time with this mean."""
        return float(self._draw.exponential(mean))

    def below(self, bound: int) -> int:
        """Return an integer from 0."""
        return int(self._draw.integers(bound))

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of some values."""
        return values[self.below(len(values))]

    def some_of(self, count: int, bound: int) -> list[int]:
        """Return different integers from 0 below a bound."""
        return [int(each) for each in self._draw.permutation(bound)[:count]]
