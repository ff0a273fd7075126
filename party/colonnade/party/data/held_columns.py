"""A party's columns in the order of a job, as methods and engines read them."""

from dataclasses import dataclass
from typing import Protocol

from colonnade.core.arrays import Int16Array
from colonnade.party.engine.base import RowRange, RowSource
from colonnade.party.engine.stored import StoredColumns


class Columns(RowSource, Protocol):
    """A party's features in the order of a job, and the label if it holds it.

    An engine reads them a range of rows at a time; what it does not compute maps them whole.
    """

    @property
    def has_label(self) -> bool:
        """Whether the label is among them."""

    @property
    def has_presence(self) -> bool:
        """Whether they tell whom the party has."""

    @property
    def features(self) -> Int16Array:
        """Shape ``(n_features, n_rows)``, read-only."""

    @property
    def label(self) -> Int16Array | None:
        """Shape ``(n_rows,)``, or None."""

    @property
    def presence(self) -> Int16Array | None:
        """Shape ``(n_rows,)``: above 0 for people whom the party has; None if it has everybody."""


@dataclass(frozen=True, slots=True)
class HeldColumns:
    """Columns that are there."""

    features: Int16Array
    label: Int16Array | None
    presence: Int16Array | None = None
    stored: StoredColumns | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.features.shape[1])

    @property
    def n_columns(self) -> int:
        """How many columns a row has, with the label."""
        return len(self.features) + self.has_label

    @property
    def has_label(self) -> bool:
        """Whether the label is among them."""
        return self.label is not None

    @property
    def has_presence(self) -> bool:
        """Whether they tell whom the party has."""
        return self.presence is not None

    def rows(self, first: int, last: int) -> RowRange:
        """Return rows ``first .. last``: views."""
        label = None if self.label is None else self.label[first:last]
        presence = None if self.presence is None else self.presence[first:last]
        return RowRange(first, self.features[:, first:last], label, presence)
