"""Thresholds of secure aggregation: how many mask, how many may collude, how many it needs.

Why each number is what it is: `masking.cohort`.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.masking.errors import BadPart

_MIN_HONEST = 3


@dataclass(frozen=True, slots=True)
class CohortRules:
    """How many maskers there are, and how many of them may collude with the coordinator."""

    maskers: int
    colluding: int

    def __post_init__(self) -> None:
        if not 0 <= self.colluding < self.maskers <= 2**10:
            raise ValueError("a cohort has up to 1024 maskers, not all of which collude")
        if self.threshold > self.maskers or self.honest < _MIN_HONEST:
            raise ValueError(
                f"{self.maskers} maskers with {self.colluding} that may collude are too few: "
                "three honest ones must be in every sum"
            )

    @property
    def threshold(self) -> int:
        """``t``: below so many survivors nothing opens."""
        return (self.maskers + self.colluding) // 2 + 1

    @property
    def honest(self) -> int:
        """``t - c``: how many parts of the noise every sum has at least."""
        return self.threshold - self.colluding

    @classmethod
    def default(cls, maskers: int) -> "CohortRules":
        """Return rules for so many maskers: a third may collude, and a tenth drop out.

        Fewer may collude where three honest ones would not be left in every sum.
        """
        for colluding in range(maskers // 3, 0, -1):
            with contextlib.suppress(ValueError):
                rules = cls(maskers, colluding)
                if rules.threshold <= maskers - -(-maskers // 10):
                    return rules
        return cls(maskers, 0)

    def check(self, places: Sequence[int], what: str) -> tuple[int, ...]:
        """Return ``places`` in order, or refuse them: too few, unknown or named twice."""
        ordered = tuple(sorted(places))
        if len(set(ordered)) != len(ordered) or not all(0 <= p < self.maskers for p in ordered):
            raise BadPart(f"{what} names a masker twice, or one that is not on the roster")
        if len(ordered) < self.threshold:
            raise BadPart(
                f"{what} has {len(ordered)} maskers and needs {self.threshold}; nothing opens"
            )
        return ordered
