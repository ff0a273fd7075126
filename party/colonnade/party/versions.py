"""The versions of a party's table, and its columns under the bounds of a job.

Privacy: a job may name any bounds; they are public numbers. Whatever they are, an entry depends on
its own row's value and on them alone and lies within ``+-GRID``, so one row moves one entry of a
column by at most ``2 * GRID``, the constant that every mechanism is calibrated to. Nothing here
leaves the party, and the files are as private as the table they are made from.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colonnade.core.arrays import AnyArray, Int16Array, Int32Array
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.core.requantising import requantise
from colonnade.core.table import (
    COARSE_NAME,
    Role,
    Table,
    TableColumn,
    TableHeader,
    TableWriter,
    open_pair,
)
from colonnade.core.threads import over_ranges

CACHE_NAME = "cache"

_CHUNK_ROWS = 2**16  # half a megabyte of floats: it stays in cache while it is worked on


@dataclass(frozen=True, slots=True)
class JobColumns:
    """A party's columns as a job asked for them, read-only.

    Parameters
    ----------
    features
        Shape ``(n_features, n_rows)``, in the order asked for.
    label
        Shape ``(n_rows,)``, or None.
    """

    features: Int16Array
    label: Int16Array | None


def dataset_version(folder: Path) -> str:
    """Return the public name of the ingest that made the table in ``folder``.

    Privacy: 16 random bytes, in hexadecimal. It says that a table was made and nothing about it;
    a digest would say whether two tables are equal.
    """
    return version_of(Table.open(folder / COARSE_NAME))


def version_of(table: Table) -> str:
    """Return the version in the header of ``table``."""
    if not table.header.dataset_version:
        raise BadInput(f"{table.path}: made before tables had versions; ingest the source again")
    return table.header.dataset_version


def columns_for(
    folder: Path,
    features: Sequence[str],
    bounds: Sequence[Bounds],
    label: tuple[str, Bounds] | None = None,
) -> JobColumns:
    """Return the columns of the table in ``folder`` under the bounds of a job.

    A column under its declared bounds is the table's own; under others it is the fine copy,
    clipped and quantised again. If the table has what is asked for as it stands, that is mapped;
    else a table is made once, in a cache beside it, and mapped from then on.
    """
    coarse, fine = open_pair(folder)
    version = version_of(coarse)
    wanted = _wanted(coarse, features, bounds, label=label)
    n_features, stored = len(features), coarse.header.columns
    if wanted[:n_features] == stored[:n_features] and wanted[n_features:] in ((), stored[-1:]):
        return JobColumns(coarse.columns[:n_features], None if label is None else coarse.label)
    path = folder / CACHE_NAME / f"{version}-{_digest(version, wanted)}.table"
    header = TableHeader(
        coarse.header.schema_digest, coarse.n_rows, columns=wanted, dataset_version=version
    )
    made = _open_cached(path, header, fine_digest=fine.content_digest)
    if made is None:
        _make(path, header, coarse=coarse, fine=fine)
        made = Table.open(path)
    return JobColumns(made.columns, made.label)


def discard_stale(folder: Path) -> None:
    """Remove cached columns of other versions of the table, and what killed processes left."""
    cache = folder / CACHE_NAME
    if not cache.is_dir():
        return
    version = dataset_version(folder)
    for path in cache.iterdir():
        if not path.name.startswith(f"{version}-"):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # not empty
        cache.rmdir()


def _wanted(
    table: Table,
    features: Sequence[str],
    bounds: Sequence[Bounds],
    *,
    label: tuple[str, Bounds] | None,
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
            raise BadInput(f"{table.path}: has no {role} {name!r}; compare the job and the schema")
        declared = known[role, name]
        # Of equal bounds the declared ones: -0.0 equals 0.0 and is written differently.
        same = declared.bounds == limits
        columns.append(declared if same else TableColumn(name, role, limits, declared.fill))
    return tuple(columns)


def _digest(version: str, columns: Sequence[TableColumn]) -> str:
    """Return a short name for the columns: of public numbers only."""
    facts = [(c.name, c.role, c.bounds.low, c.bounds.high) for c in columns]
    return hashlib.sha256(json.dumps([version, facts]).encode()).hexdigest()[:32]


def _open_cached(path: Path, header: TableHeader, *, fine_digest: str) -> Table | None:
    """Return the table at ``path`` if it is whole and what is meant to be there.

    Privacy: all of it is read once, because sensitivities rest on every entry being on the grid.
    """
    try:
        made = Table.open(path)
        expected = replace(
            header, content_digest=made.header.content_digest, fine_digest=fine_digest
        )
        if made.header != expected:
            return None
        made.verify()
    except BadInput:  # absent, cut short, damaged
        return None
    return made


def _make(path: Path, header: TableHeader, *, coarse: Table, fine: Table) -> None:
    """Write the columns of ``header``, one at a time, so that memory stays small."""
    places = {(c.role, c.name): place for place, c in enumerate(coarse.header.columns)}
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with TableWriter(path, header) as writer:
            for column in header.columns:
                place = places[column.role, column.name]
                declared = coarse.header.columns[place].bounds
                if column.bounds == declared:
                    writer.append(_column(coarse, place))
                else:
                    values = _column(fine, place)
                    writer.append(_requantise(values, declared=declared, tight=column.bounds))
            writer.seal(fine_digest=fine.content_digest)
            writer.publish()
    except OSError as error:
        reason = f"{error.strerror}; free or change the disk"
        raise BadInput(f"{path.parent}: cannot keep a job's columns: {reason}") from None


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
