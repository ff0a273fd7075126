"""The version of a party's table, and its columns under the bounds of a job.

Privacy: a job may name any bounds; they are public numbers. Whatever they are, an entry depends on
its own row's value and on them alone and lies within ``+-GRID``, so one row moves one entry of a
column by at most ``2 * GRID``, the constant that every mechanism is calibrated to. Nothing here
leaves the party. Columns that had to be made lie in files without a name, which are gone with the
process or with the last job that uses them, however either ends.
"""

import errno
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from colonnade.core.arrays import Int16Array
from colonnade.core.errors import BadInput, LowDisk
from colonnade.core.fixedpoint import Bounds
from colonnade.core.threads import over_ranges
from colonnade.data.table import Table
from colonnade.data.table_header import Role, TableColumn
from colonnade.methods.holdout import held_out, rows_fitted
from colonnade.party.data.held_columns import Columns, HeldColumns
from colonnade.party.engine.base import RowRange
from colonnade.party.engine.stored import StoredColumns, read_column

__all__ = ["MAX_MADE", "ColumnCache", "Columns", "HeldColumns", "columns_for", "version_of"]

MAX_MADE = 8
"""Jobs whose columns are kept at once; those of others are made again when they are needed."""

_CHUNK_ROWS = 2**16  # half a megabyte of floats: it stays in cache while it is worked on
_WRITE_ROWS = 2**22  # 8 MB of a column, made by all threads and written at once
_ALIGNMENT = 32  # values in a cache line, so that kernels read each column from an aligned start

Label = tuple[str, Bounds] | None


def version_of(table: Table) -> str:
    """Return the public name of the ingest that made ``table``.

    Privacy: 16 random bytes, in hexadecimal. It says that a table was made and nothing about it;
    a digest would say whether two tables are equal.
    """
    if not table.header.dataset_version:
        raise BadInput(f"{table.path}: made before tables had versions; ingest the source again")
    return table.header.dataset_version


def columns_for(
    coarse: Table, fine: Table, features: Sequence[str], bounds: Sequence[Bounds], label: Label
) -> HeldColumns:
    """Return columns of a table under the bounds of a job.

    A column under its declared bounds is the table's own; under others it is the fine copy,
    clipped and quantised again. If the table has what is asked for as it stands, that is mapped.

    Parameters
    ----------
    coarse, fine
        The two copies of the table.
    """
    wanted = _wanted(coarse, features, bounds, label=label)
    return _own(wanted, coarse) or _made(wanted, coarse, fine)


class JobColumns:
    """The columns of one job, made when they are first needed and again if they had to go."""

    def __init__(
        self, cache: "ColumnCache", wanted: Sequence[TableColumn], *, holdout: int = 0
    ) -> None:
        self._cache, self.wanted, self.holdout = cache, wanted, holdout
        self.stored = cache.describe(wanted, holdout)
        self.n_rows, self.n_columns = rows_fitted(self.stored.n_rows, holdout), len(wanted)
        self.has_label, self.has_presence = self.stored.has_label, cache.has_presence

    def rows(self, first: int, last: int) -> RowRange:
        """Return rows ``first .. last`` of those that the job has."""
        return self._cache.get(self).rows(first, last)

    @property
    def features(self) -> Int16Array:
        """Shape ``(n_features, n_rows)``, read-only."""
        return self._cache.get(self).features

    @property
    def label(self) -> Int16Array | None:
        """Shape ``(n_rows,)``, or None."""
        return self._cache.get(self).label

    @property
    def presence(self) -> Int16Array | None:
        """Shape ``(n_rows,)``, or None."""
        return self._cache.get(self).presence


class ColumnCache:
    """The columns of the jobs that were answered last: whatever is proposed, few are kept."""

    def __init__(self, coarse: Table, fine: Table, *, most: int = MAX_MADE) -> None:
        self._coarse, self._fine, self._most = coarse, fine, most
        self._made: OrderedDict[JobColumns, HeldColumns] = OrderedDict()
        self._lock = threading.Lock()

    def of_job(
        self, features: Sequence[str], bounds: Sequence[Bounds], label: Label, *, holdout: int = 0
    ) -> Columns:
        """Return the columns that a job asks for, or say which the table does not have.

        Nothing is read or written before they are needed. They are without the rows that the job
        keeps out, so that no method can fit to them.
        """
        wanted = _wanted(self._coarse, features, bounds, label=label)
        own = None if holdout else _own(wanted, self._coarse)
        return own or JobColumns(self, wanted, holdout=holdout)

    @property
    def has_presence(self) -> bool:
        """Whether the table tells whom the party has."""
        return self._coarse.presence is not None

    def describe(self, wanted: Sequence[TableColumn], holdout: int = 0) -> StoredColumns:
        """Return where other machines find columns."""
        return _described(wanted, self._coarse, holdout=holdout)

    def get(self, columns: JobColumns) -> HeldColumns:
        """Return a job's columns, making them if they are not there."""
        with self._lock:
            if columns not in self._made:
                self._made[columns] = _made(
                    columns.wanted, self._coarse, self._fine, holdout=columns.holdout
                )
            self._made.move_to_end(columns)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
            return self._made[columns]

    def prepare(self, columns: Columns) -> None:
        """Make a job's columns, so that a lack of disk shows before anything is charged."""
        if isinstance(columns, JobColumns):
            self.get(columns)

    def forget(self, columns: Columns) -> None:
        """Let a job's columns go; their file ends with the last view of it."""
        if isinstance(columns, JobColumns):
            with self._lock:
                self._made.pop(columns, None)

    def __len__(self) -> int:
        return len(self._made)


def _wanted(
    table: Table, features: Sequence[str], bounds: Sequence[Bounds], *, label: Label
) -> tuple[TableColumn, ...]:
    """Describe the columns asked for, or say which one the table does not have."""
    if not features or len(features) != len(bounds):
        raise BadInput("a job asks for at least one feature, with bounds for each")
    if len({*features}) != len(features):
        raise BadInput("a job asks for a feature twice; name each once")
    asked: list[tuple[str, Bounds, Role]] = [
        (name, limits, "feature") for name, limits in zip(features, bounds, strict=True)
    ]
    if label is not None:
        asked.append((*label, "label"))
    known = {(column.role, column.name): column for column in table.header.columns}
    columns = []
    for name, limits, role in asked:
        if (role, name) not in known:
            raise BadInput(f"the table has no {role} {name!r}; compare the job and the schema")
        declared = known[role, name]
        # Of equal bounds the declared ones: -0.0 equals 0.0 and is written differently.
        same = declared.bounds == limits
        columns.append(declared if same else TableColumn(name, role, limits, declared.fill))
    return tuple(columns)


def _own(wanted: Sequence[TableColumn], coarse: Table) -> HeldColumns | None:
    """Return a view of the table, if it has the columns as they are wanted."""
    stored, labelled = coarse.header.columns, wanted[-1].role == "label"
    features = wanted[:-1] if labelled else wanted
    if features != stored[: len(features)] or (labelled and wanted[-1] != coarse.header.label):
        return None
    label = coarse.label if labelled else None
    described = _described(wanted, coarse)
    return HeldColumns(coarse.columns[: len(features)], label, coarse.presence, described)


def _described(wanted: Sequence[TableColumn], coarse: Table, *, holdout: int = 0) -> StoredColumns:
    known = {(each.role, each.name): at for at, each in enumerate(coarse.header.columns)}
    places = tuple(known[each.role, each.name] for each in wanted)
    declared = [coarse.header.columns[place].bounds for place in places]
    return StoredColumns(
        folder=str(coarse.path.parent.absolute()),
        version=coarse.header.dataset_version,
        n_rows=coarse.n_rows,
        places=places,
        tight=tuple(
            None if each.bounds == own else (each.bounds.low, each.bounds.high)
            for each, own in zip(wanted, declared, strict=True)
        ),
        has_label=wanted[-1].role == "label",
        holdout=holdout,
    )


def _made(
    wanted: Sequence[TableColumn], coarse: Table, fine: Table, *, holdout: int = 0
) -> HeldColumns:
    """Return the columns in a mapped file without a name, written some rows at a time."""
    stored = _described(wanted, coarse, holdout=holdout)
    n_rows = rows_fitted(coarse.n_rows, holdout)
    presence = coarse.presence
    if presence is not None and holdout:
        presence = presence[~held_out(coarse.n_rows, holdout)]
    try:
        # Nobody else can open it, and it is gone when the last view of it is.
        with tempfile.TemporaryFile(dir=coarse.path.parent) as file:
            for column, place in zip(wanted, stored.places, strict=True):
                for first in range(0, coarse.n_rows, _WRITE_ROWS):
                    last = min(first + _WRITE_ROWS, coarse.n_rows)
                    values = _quantised(coarse, fine, place, column.bounds, first, last)
                    if holdout:
                        values = values[~held_out(last - first, holdout, first=first)]
                    file.write(np.ascontiguousarray(values, "<i2").data)
                file.write(bytes(2 * (-n_rows % _ALIGNMENT)))
            file.flush()
            block = _mapped(file, len(wanted), n_rows)
            if stored.has_label:
                return HeldColumns(block[:-1], block[-1], presence, stored)
            return HeldColumns(block, None, presence, stored)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LowDisk("there is no room beside the table for a job's columns") from None
        raise BadInput(
            f"a job's columns cannot be kept beside the table: {error.strerror}"
        ) from None


def _mapped(file: BinaryIO, n_columns: int, n_rows: int) -> Int16Array:
    shape = (n_columns, n_rows + -n_rows % _ALIGNMENT)
    block = np.memmap(file, dtype="<i2", mode="r", shape=shape)
    # A plain view: slices of np.memmap are slow to make, and compiled kernels know ndarray only.
    return np.asarray(block)[:, :n_rows]


def _quantised(
    coarse: Table, fine: Table, place: int, bounds: Bounds, first: int, last: int
) -> Int16Array:
    """Return rows ``first .. last`` of a column under its bounds, made by all threads."""
    made = np.empty(last - first, np.int16)

    def part(begin: int, end: int) -> None:
        for at in range(begin, end, _CHUNK_ROWS):
            stop = min(at + _CHUNK_ROWS, end)
            rows = slice(first + at, first + stop)
            made[at:stop] = read_column(coarse, fine, place, bounds, rows)

    over_ranges(part, last - first)
    return made
