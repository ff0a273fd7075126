"""Count the rows of a party's table at or below thresholds, whoever of the people it has."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import Int32Array, IntArray
from colonnade.data.table import Table
from colonnade.party.engine.base import Engine, RowRange
from colonnade.party.engine.local import LOCAL
from colonnade.party.engine.stored import StoredColumns, column_at


@dataclass(frozen=True, slots=True)
class FineColumns:
    """Columns of the fine copy of a table, by their places."""

    table: Table
    places: Sequence[int]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.table.columns.shape[1])

    @property
    def n_columns(self) -> int:
        """How many columns are counted in."""
        return len(self.places)

    @property
    def stored(self) -> StoredColumns:
        """Where other machines find them."""
        return StoredColumns(
            folder=str(self.table.path.parent.absolute()),
            version=self.table.header.dataset_version,
            n_rows=self.n_rows,
            places=tuple(self.places),
            tight=(None,) * len(self.places),
            has_label=False,
            fine=True,
        )

    def rows(self, first: int, last: int) -> RowRange:
        """Return rows ``first .. last``."""
        held = self.table.presence
        presence = None if held is None else held[first:last]
        block = np.stack([column_at(self.table, place)[first:last] for place in self.places])
        return RowRange(first, block, None, presence)


def count_rows(
    table: Table, columns: Sequence[int], thresholds: Int32Array, *, engine: Engine = LOCAL
) -> IntArray:
    """Count the rows at or below the thresholds of the columns at these places.

    Privacy: a sum over rows of a number that is 0 or 1 in every count and follows from the row, its
    place and public numbers, so replacing a row, its presence included, moves a count by at most 1.
    """
    return engine.sum("counts", FineColumns(table, columns), {"thresholds": thresholds})
