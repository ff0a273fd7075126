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
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from colonnade.core.arrays import AnyArray, Int16Array, Int32Array
from colonnade.core.errors import BadInput, LowDisk
from colonnade.core.fixedpoint import Bounds
from colonnade.core.threads import over_ranges
from colonnade.data.requantise import requantise
from colonnade.data.table import Table
from colonnade.data.table_header import Role, TableColumn
from colonnade.methods.holdout import held_out

MAX_MADE = 8
"""Jobs whose columns are kept at once; those of others are made again when they are needed."""

_CHUNK_ROWS = 2**16  # half a megabyte of floats: it stays in cache while it is worked on
_ALIGNMENT = 32  # values in a cache line, so that kernels read each column from an aligned start

Label = tuple[str, Bounds] | None


class Columns(Protocol):
    """A party's features in the order of a job, and the label if it holds it."""

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
    return HeldColumns(coarse.columns[: len(features)], label, coarse.presence)


def _made(
    wanted: Sequence[TableColumn], coarse: Table, fine: Table, *, holdout: int = 0
) -> HeldColumns:
    """Return the columns in a mapped file without a name, written one at a time."""
    kept = ~held_out(coarse.n_rows, holdout) if holdout else slice(None)
    n_rows = coarse.n_rows if isinstance(kept, slice) else int(kept.sum())
    presence = None if coarse.presence is None else coarse.presence[kept]
    places = {(known.role, known.name): at for at, known in enumerate(coarse.header.columns)}
    try:
        # Nobody else can open it, and it is gone when the last view of it is.
        with tempfile.TemporaryFile(dir=coarse.path.parent) as file:
            for column in wanted:
                place = places[column.role, column.name]
                _append(file, _quantised(column, place, coarse=coarse, fine=fine)[kept])
            file.flush()
            block = _mapped(file, len(wanted), n_rows)
            if wanted[-1].role == "label":
                return HeldColumns(block[:-1], block[-1], presence)
            return HeldColumns(block, None, presence)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LowDisk("there is no room beside the table for a job's columns") from None
        raise BadInput(
            f"a job's columns cannot be kept beside the table: {error.strerror}"
        ) from None


def _append(file: BinaryIO, values: Int16Array) -> None:
    file.write(np.ascontiguousarray(values, "<i2").data)
    file.write(bytes(2 * (-values.size % _ALIGNMENT)))


def _mapped(file: BinaryIO, n_columns: int, n_rows: int) -> Int16Array:
    shape = (n_columns, n_rows + -n_rows % _ALIGNMENT)
    block = np.memmap(file, dtype="<i2", mode="r", shape=shape)
    # A plain view: slices of np.memmap are slow to make, and compiled kernels know ndarray only.
    return np.asarray(block)[:, :n_rows]


def _quantised(column: TableColumn, place: int, *, coarse: Table, fine: Table) -> Int16Array:
    """Return a column under its bounds: the table's own, or the fine copy quantised again."""
    declared = coarse.header.columns[place].bounds
    if column.bounds == declared:
        return _column(coarse, place)
    made = _requantise(_column(fine, place), declared=declared, tight=column.bounds)
    # A row of nobody is 0 under all bounds; of a category it has no level, as in the table, or all
    # its columns would move with one person, and `methods.groups` counts two.
    if coarse.presence is not None and not coarse.header.columns[place].group:
        made *= coarse.presence > 0
    return made


def _column(table: Table, place: int) -> AnyArray:
    """Return a column by its place, the label being the last."""
    if place == len(table.columns) and table.label is not None:
        return table.label
    column: AnyArray = table.columns[place]
    return column


def _requantise(fine: Int32Array, *, declared: Bounds, tight: Bounds) -> Int16Array:
    """Quantise a column again, in chunks of rows."""
    made = np.empty(fine.size, np.int16)

    def part(first: int, last: int) -> None:
        for begin in range(first, last, _CHUNK_ROWS):
            rows = slice(begin, min(begin + _CHUNK_ROWS, last))
            made[rows] = requantise(fine[rows], declared=declared, tight=tight)

    over_ranges(part, fine.size)
    return made
