"""What is known of a vertical job before any data is read."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        if not self.features or not all(self.features.values()):
            raise ValueError("a plan needs parties with at least one feature each")
        if self.n_rows < 1 or self.rho_units < 1:
            raise ValueError("a plan needs rows and a budget")
        if self.label_owner is not None and self.label_owner not in self.features:
            raise ValueError("the owner of the label is not a party")
        if self.correlation is not None and not 0.0 <= self.correlation < 1.0:
            raise ValueError("a correlation must lie in 0 .. 1")

    @property
    def sketched(self) -> bool:
        """Whether the label is held by one party alone among several."""
        return self.label_owner is not None and len(self.features) > 1

    @property
    def expected(self) -> float:
        """The correlation to plan for."""
        return DEFAULT_CORRELATION if self.correlation is None else self.correlation
