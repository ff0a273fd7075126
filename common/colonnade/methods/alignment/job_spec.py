"""An alignment as the method of a job: what it costs and how much it sends, at most.

How long lists are is known only when their owners have said it, so rounds and sizes are upper
bounds here. The report compares with the exact sizes, which follow from the lengths
(`methods.alignment.sizes`).
"""

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.schedule import RoundSchedule
from colonnade.methods.alignment.spec import AlignmentPart, AlignmentSpec
from colonnade.methods.base import MAX_POPULATION
from colonnade.methods.problem import Labels, Loss


@dataclass(frozen=True, slots=True)
class AlignmentJobSpec:
    """An alignment that a coordinator runs as a job."""

    kind: ClassVar[str] = AlignmentSpec.kind
    labels: ClassVar[Labels] = Labels.NONE
    loss: ClassVar[Loss] = Loss.NONE
    sketch_dim: ClassVar[int] = 0  # nothing is sketched
    alignment: AlignmentSpec

    @property
    def parts(self) -> tuple[AlignmentPart, ...]:
        """The parties, in the order in which lists travel."""
        return self.alignment.parts

    @property
    def population(self) -> int:
        """The most people that all lists together can name."""
        return min(MAX_POPULATION, sum(part.max_people for part in self.parts))

    @property
    def rounds(self) -> int:
        """The most rounds after the first."""
        return self._longest.rounds - 1

    def max_units(self, party: str) -> int:
        """Return the price of the dummies, which a party pays once."""
        self.alignment.place(party)
        return self.alignment.noise.cost

    def max_releases(self, party: str) -> Mapping[str, int]:
        """Return how many bodies of each kind a party sends if all lists are as long as can be."""
        return {kind: count for kind, (count, _) in _most(self.alignment, party).items()}

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the greatest size of one body."""
        return _most(self.alignment, party)[kind][1]

    def task_entries(self, party: str) -> int:
        """Return the points of a task, as numbers of 9 bytes: what a message has room for."""
        self.alignment.place(party)
        return -(-32 * self.alignment.chunk * self.alignment.n_parties // 9)

    @property
    def _longest(self) -> RoundSchedule:
        return RoundSchedule(self.alignment, self.alignment.max_counts())


@functools.lru_cache(maxsize=64)
def _most(spec: AlignmentSpec, party: str) -> Mapping[str, tuple[int, int]]:
    """Return, for each kind, the most bodies and the size of the greatest."""
    place, counts = spec.place(party), spec.max_counts()
    number, greatest = Counter[str](), dict.fromkeys(sizes.KINDS, 0)
    for round_ in range(RoundSchedule(spec, counts).rounds):
        for kind, size in sizes.answer_bytes(spec, place, round_, counts).items():
            number[kind] += 1
            greatest[kind] = max(greatest[kind], size)
    return {kind: (number[kind], greatest[kind]) for kind in sizes.KINDS}
