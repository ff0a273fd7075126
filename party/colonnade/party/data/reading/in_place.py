"""Rows of Parquet files that are read where they are, because nothing about them must be staged.

A staged copy serves to check ids, to bring rows into another order and to find texts among numbers.
Rows in the order of the table, without ids and in columns of numbers, need none of that. They are
read by whole row groups, so that each is decoded once, and of as many columns as fit into memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.data.kinds import Number
from colonnade.data.schema import Schema
from colonnade.party.data.reading.connection import one_line
from colonnade.party.data.reading.sources import Relation, literal_path
from colonnade.party.data.reading.values import Missing, holds_numbers, value_sql

_GROUPS = 4  # row groups that are read together if they fit: each keeps one thread busy
_MAX_GROUP_ROWS = 2**23  # of larger ones not even a column would fit
_ROW = "file_row_number"


@dataclass(frozen=True, slots=True)
class Span:
    """Rows ``first .. last`` of one file, whole row groups, and where they are in the table."""

    file: int
    first: int
    last: int
    place: int


@dataclass(frozen=True, slots=True)
class RowsInPlace:
    """Columns of numbers in Parquet files.

    Parameters
    ----------
    sql
        Yields ``v0``, ``v1``, ... and the ``place`` of a row in the file ``$path``.
    paths, facts
        The files, and what changes when somebody writes them.
    groups
        Rows of each row group, by file.
    """

    database: duckdb.DuckDBPyConnection
    sql: str
    parameters: Mapping[str, object]
    origin: str
    paths: tuple[Path, ...]
    facts: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return sum(map(sum, self.groups))

    def spans(self, n_columns: int, *, block_values: int) -> list[Span]:
        """Divide all rows, for blocks of some values of as many columns as fit."""
        found, place = [], 0
        for file, groups in enumerate(self.groups):
            first = last = n_together = 0
            for n_rows in groups:
                n_held = last - first
                wide = n_held * n_columns >= block_values and n_together >= _GROUPS
                if n_held and (wide or n_held + n_rows > block_values):
                    found.append(Span(file, first, last, place + first))
                    first, n_together = last, 0
                last, n_together = last + n_rows, n_together + 1
            if last > first:
                found.append(Span(file, first, last, place + first))
            place += last
        return found

    def read(self, span: Span, columns: Sequence[int]) -> Iterator[FloatArray]:
        """Yield some columns of a span; NaN is missing."""
        names = ", ".join(f"v{column}" for column in columns)
        sql = f"SELECT {names} FROM {self.sql} WHERE place >= $first AND place < $last"  # noqa: S608
        path = literal_path(self.paths[span.file])
        asked = {"path": path, "first": span.first, "last": span.last}
        with one_line(self.origin):
            fetched = self.database.execute(sql, {**self.parameters, **asked}).fetchnumpy()
        for column in columns:
            numbers = np.ma.getdata(fetched.pop(f"v{column}"))
            if numbers.size != span.last - span.first:
                self._refuse_changed()
            yield numbers

    def check_unchanged(self) -> None:
        """Refuse files that were written since they were found: parts may be of two versions."""
        if tuple(map(_facts, self.paths)) != self.facts:
            self._refuse_changed()

    def _refuse_changed(self) -> None:
        raise BadInput(
            f"{self.origin}: was written while it was read; ingest it again when it is complete"
        )


def find_in_place(
    database: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema
) -> RowsInPlace | None:
    """Return how to read ``relation`` where it is; None if it must be staged."""
    numbers = all(
        isinstance(each.kind, Number) and holds_numbers(relation, each.column)
        for each in schema.columns
    )
    taken = any(name.lower() == _ROW for name in relation.names)
    if not relation.parquet or not numbers or taken or schema.id or schema.client:
        return None
    missing = Missing.of(schema.missing)
    picks = ", ".join(
        f"{value_sql(relation, column.column, column.kind, missing)} AS v{position}"
        for position, column in enumerate(schema.columns)
    )
    aliases = ", ".join([*(f"c{at}" for at in range(len(relation.names))), "place"])
    reader = f"read_parquet($path, hive_partitioning = false, {_ROW} = true)"
    sql = f"(SELECT {picks}, place FROM {reader} AS source({aliases}))"  # noqa: S608
    facts = tuple(map(_facts, relation.parquet))
    with one_line(relation.origin):
        database.execute("SET parquet_metadata_cache = true")  # each block would parse all of it
        groups = tuple(_groups(database, path) for path in relation.parquet)
    if not any(map(sum, groups)) or max(map(max, filter(None, groups))) > _MAX_GROUP_ROWS:
        return None
    return RowsInPlace(
        database,
        sql,
        missing.parameters(sql),
        relation.origin,
        relation.parquet,
        facts,
        groups,
    )


def _facts(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise BadInput(f"{path}: cannot read the source: {error.strerror}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _groups(database: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, ...]:
    """Return how many rows each row group of a file has."""
    sql = (
        "SELECT max(row_group_num_rows) FROM parquet_metadata($path) "
        "GROUP BY row_group_id ORDER BY row_group_id"
    )
    return tuple(
        int(rows) for (rows,) in database.execute(sql, {"path": literal_path(path)}).fetchall()
    )
