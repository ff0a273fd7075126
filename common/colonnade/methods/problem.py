"""A planning problem: what is public about a vertical job before any data is read."""

import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from colonnade.methods.groups import moved_columns, units_of

# What is expected between columns of different parties if nobody says.
DEFAULT_CORRELATION = 0.2


class Labels(enum.Enum):
    """Who holds the label."""

    SHARED = "shared"
    SKETCHED = "sketched"
    NONE = "none"  # a job without a model has no label


class Loss(enum.Enum):
    """What is minimised; logistic is its second-order surrogate, least squares, then calibrated."""

    SQUARED = "squared"
    LOGISTIC = "logistic"
    NONE = "none"  # a job without a model minimises nothing


@dataclass(frozen=True, slots=True)
class Problem:
    """What is known before any data is read; ``rho_units`` is for all parties together."""

    n_rows: int
    features: Mapping[str, Sequence[str]]  # by party
    rho_units: int
    label_owner: str | None = None  # None if every party holds the label
    loss: Loss = Loss.SQUARED
    correlation: float | None = None  # expected between columns of different parties
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of the features, by party
    presence: bool = False  # whether tables say whom a party has
    people: Mapping[tuple[str, ...], int] = field(default_factory=dict)  # of one party or two
    shields: Mapping[str, int] = field(default_factory=dict)  # that policies ask of sealed jobs

    def __post_init__(self) -> None:
        if not self.features or not all(self.features.values()):
            raise ValueError("a plan needs parties with at least one feature each")
        if self.n_rows < 1 or self.rho_units < 1:
            raise ValueError("a plan needs rows and a budget")
        if self.label_owner is not None and self.label_owner not in self.features:
            raise ValueError("the owner of the label is not a party")
        if self.correlation is not None and not 0.0 <= self.correlation < 1.0:
            raise ValueError("a correlation must lie in 0 .. 1")

    def moved(self, party: str) -> int:
        """Return how many columns of ``party`` one row can move."""
        return moved_columns(self.features[party], self.groups.get(party, ()))

    def widest(self) -> int:
        """Return the most features that a party has, where a category is one."""
        return max(
            units_of(features, self.groups.get(party, ()))
            for party, features in self.features.items()
        )

    def overlap(self) -> tuple[int, ...]:
        """Return how many people each two parties have in common, if an alignment counted them."""
        pairs = [tuple(sorted(pair)) for pair in itertools.combinations(self.features, 2)]
        known = {tuple(sorted(names)): count for names, count in self.people.items()}
        if not self.presence or not all(pair in known for pair in pairs):
            return ()
        return tuple(min(max(known[pair], 0), self.n_rows) for pair in pairs)

    @property
    def rows_alone(self) -> int:
        """Rows that a party's own sums are over, at the party with fewest."""
        own = [self.people.get((party,), self.n_rows) for party in self.features]
        return max(1, min(*own, self.n_rows))

    @property
    def rows_between(self) -> int:
        """Rows of complete tables whose products between parties err as those of these do.

        A sum over the people of two parties has the noise of all rows of one of them.
        """
        overlap = self.overlap()
        return max(1, min(overlap) ** 2 // self.rows_alone) if overlap else self.n_rows

    @property
    def sketched(self) -> bool:
        """Whether the label is held by one party alone among several."""
        return self.label_owner is not None and len(self.features) > 1

    @property
    def expected(self) -> float:
        """The correlation to plan for."""
        return DEFAULT_CORRELATION if self.correlation is None else self.correlation


@dataclass(frozen=True, slots=True)
class Solution:
    """Which of the models that a job's releases allow: its own, or that of another penalty."""

    penalty: str = ""  # empty for the job's own
    numbers: Mapping[str, float] = field(default_factory=dict)
