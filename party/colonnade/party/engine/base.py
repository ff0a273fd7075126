"""What an engine is: it runs an exact integer kernel over row ranges and adds the partial sums.

A kernel (`party.engine.kernels`) is a function of some rows and of public numbers whose results
for disjoint ranges of rows add up to that of all of them. They are integers, so the total is the
same bit for bit, however rows are divided, in whatever order parts arrive, and if some of them
were computed twice.

Privacy: an engine is called inside `ledger.gate`, after the charge. It knows no ledger, no noise
and no key, and what it returns stays at the head until noise was added there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from colonnade.core.arrays import AnyArray, Int16Array, IntArray
from colonnade.party.engine.stored import StoredColumns

Argument: TypeAlias = AnyArray | bytes | float | Mapping[str, bytes | int]
Arguments: TypeAlias = Mapping[str, Argument]
"""Public numbers of a kernel, by name: plain arrays and scalars, so that any machine reads them."""


@dataclass(frozen=True, slots=True, eq=False)
class RowRange:
    """Some rows of a job's columns, one after the other.

    Parameters
    ----------
    start
        The place of the first among all rows of the job.
    features
        Shape ``(n_features, n_rows)``: ``int16``, or ``int32`` of the fine copy.
    label, presence
        Shape ``(n_rows,)``, or None where the job has none.
    """

    start: int
    features: AnyArray
    label: Int16Array | None
    presence: Int16Array | None

    @property
    def n_rows(self) -> int:
        """How many rows these are."""
        return int(self.features.shape[1])


class RowSource(Protocol):
    """Columns whose rows can be read a range at a time."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n_columns(self) -> int:
        """How many columns a row has, with the label."""

    @property
    def stored(self) -> StoredColumns | None:
        """Where other machines find the same columns; None if they are in memory alone."""

    def rows(self, first: int, last: int) -> RowRange:
        """Return rows ``first .. last``."""


class Engine(Protocol):
    """Where sums over rows are computed."""

    def sum(self, kernel: str, source: RowSource, arguments: Arguments) -> IntArray:
        """Return the sum of a kernel over all rows of ``source``; ``kernel`` names one of ours."""

    @property
    def reads_shared(self) -> bool:
        """Whether columns are read where they are stored, so that none are made at the head."""

    def close(self) -> None:
        """Let go of what the engine holds."""
