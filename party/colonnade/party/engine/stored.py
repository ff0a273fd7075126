"""A job's columns as a machine finds them that shares the table's folder with the head.

What is shipped is a description: the folder, the version of the table, places of columns and
public bounds. Each machine maps the table itself and reads the range of rows that it is told; a
column under tighter bounds is quantised again from the fine copy, row by row, as it is read.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.core.arrays import AnyArray, Int16Array
from colonnade.core.errors import DatasetChanged
from colonnade.core.fixedpoint import Bounds
from colonnade.data.requantise import requantise
from colonnade.data.table import Table, open_pair
from colonnade.methods.holdout import held_out

_COUNT_ROWS = 2**22  # whose places are looked at together, to count those that are kept


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Describe columns of an ingested table: plain numbers and texts, nothing of its rows.

    Parameters
    ----------
    places
        Where the columns are in the table, in the order of the job.
    tight
        Low and high bounds under which each is quantised again; None for the declared ones.
    has_label
        Whether the last of them is the label.
    holdout
        Rows of a thousand that the job keeps out.
    fine
        Whether the fine copy is read as it is.
    """

    folder: str
    version: str
    n_rows: int
    places: tuple[int, ...]
    tight: tuple[tuple[float, float] | None, ...]
    has_label: bool
    holdout: int = 0
    fine: bool = False

    def plain(self) -> dict[str, Any]:
        """Return the description as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "StoredColumns":
        """Return a description from plain values, whose lists may have been tuples."""
        made = dict(plain)
        made["places"] = tuple(made["places"])
        made["tight"] = tuple(None if each is None else (*each,) for each in made["tight"])
        return cls(**made)

    def kept_between(self, first: int, last: int) -> int:
        """Return how many of the table's rows ``first .. last`` the job has."""
        if not self.holdout:
            return last - first
        spans = ((at, min(_COUNT_ROWS, last - at)) for at in range(first, last, _COUNT_ROWS))
        kept = (~held_out(count, self.holdout, first=at) for at, count in spans)
        return sum(int(np.count_nonzero(each)) for each in kept)

    def read(self, first: int, last: int) -> tuple[AnyArray, Int16Array | None, Int16Array | None]:
        """Return features, label and presence of rows ``first .. last`` of the table.

        Those that the job keeps out are left out.
        """
        coarse, fine = _open(self.folder, self.version)
        span = slice(first, last)
        columns: list[AnyArray] = []
        for place, limits in zip(self.places, self.tight, strict=True):
            bounds = None if limits is None else Bounds(*limits)
            columns.append(
                column_at(fine, place)[span]
                if self.fine
                else read_column(coarse, fine, place, bounds, span)
            )
        presence = None if coarse.presence is None else coarse.presence[span]
        if self.holdout:
            kept = ~held_out(last - first, self.holdout, first=first)
            columns = [column[kept] for column in columns]
            presence = None if presence is None else presence[kept]
        label = columns.pop() if self.has_label else None
        return np.stack(columns), label, presence


def read_column(
    coarse: Table, fine: Table, place: int, bounds: Bounds | None, rows: slice
) -> Int16Array:
    """Return rows of a column under its bounds: the table's own, or the fine copy's quantised.

    ``bounds`` are None for the declared ones.
    """
    declared = coarse.header.columns[place]
    if bounds is None or bounds == declared.bounds:
        return column_at(coarse, place)[rows]
    made = requantise(column_at(fine, place)[rows], declared=declared.bounds, tight=bounds)
    # A row of nobody is 0 under all bounds; of a category it has no level, as in the table, or all
    # its columns would move with one person, and `methods.groups` counts two.
    if coarse.presence is not None and not declared.group:
        made *= coarse.presence[rows] > 0
    return made


def column_at(table: Table, place: int) -> AnyArray:
    """Return a column by its place, the label being the last."""
    if place == len(table.columns) and table.label is not None:
        return table.label
    column: AnyArray = table.columns[place]
    return column


@lru_cache(maxsize=2)
def _open(folder: str, version: str) -> tuple[Table, Table]:
    """Map a table, once a process; refuse another version than the head has opened."""
    coarse, fine = open_pair(Path(folder))
    if coarse.header.dataset_version != version:
        raise DatasetChanged("the folder holds another version of the table than the head's")
    return coarse, fine
