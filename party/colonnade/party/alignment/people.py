"""Whom a party lists: the ids of its own source, as an alignment's rule writes them.

Ids are data. They are read before the first message of a run, because the time that it takes to
bring them into one form depends on them, and messages say how many rows are concerned, never which.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from colonnade.core.config import Strict, Text
from colonnade.core.errors import BadInput
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.data.schema import load_schema
from colonnade.methods.alignment.normalise import IdRule, PreparedIds, prepare
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.sources import (
    FileSource,
    QuerySource,
    Relation,
    Source,
    open_source,
)
from colonnade.party.data.roster import id_sql

_FETCH = 50_000


class AlignConfig(Strict, frozen=True):
    """Where the people are that a party aligns: ``[align]`` of its configuration."""

    id: tuple[Text, ...]
    source: Path | None = None
    schema: Path | None = None  # says how the file is written: delimiter, encoding
    query: str | None = None
    database: str | None = None

    def __post_init__(self) -> None:
        if (self.source is None) == (self.query is None):
            raise ValueError("give source, a file, or query, one SELECT")
        if self.database is not None and self.query is None:
            raise ValueError("database: belongs to query")
        if self.schema is not None and self.source is None:
            raise ValueError("schema: belongs to source")
        if not self.id:
            raise ValueError("id: name the columns that tell people apart")

    @property
    def rows(self) -> Source:
        """The source."""
        if self.source is not None:
            return FileSource(self.source)
        return QuerySource(self.query or "", database=self.database)

    def people(self, rule: IdRule) -> PreparedIds:
        """Return the distinct ids of the source, as ``rule`` writes them."""
        dialect = PLAIN if self.schema is None else load_schema(self.schema).dialect
        return read_people(self.rows, self.id, rule, dialect=dialect)


def read_people(
    source: Source, columns: Sequence[str], rule: IdRule, *, dialect: Dialect = PLAIN
) -> PreparedIds:
    """Return the distinct ids of a source, and which of its rows they are."""
    if len(columns) != len(rule.columns):
        raise BadInput(
            f"the alignment makes ids of {len(rule.columns)} columns and [align] id names "
            f"{len(columns)}; agree on them with the operator"
        )
    with (
        tempfile.TemporaryDirectory(prefix="colonnade-align-") as folder,
        connect(Path(folder), n_columns=len(columns)) as database,
    ):
        relation = open_source(database, source, folder=Path(folder), dialect=dialect)
        with one_line(relation.origin):
            return prepare(id_rows(database, relation, columns), rule)


def id_rows(
    database: duckdb.DuckDBPyConnection, relation: Relation, columns: Sequence[str]
) -> Iterator[tuple[str | None, ...]]:
    """Yield the texts of the id columns, in the order of the source."""
    picks = ", ".join(id_sql(relation, name) for name in columns)
    query = f"SELECT {picks} FROM {relation.sql}"  # noqa: S608 (our own SQL)
    found = database.execute(query, dict(relation.parameters))
    while rows := found.fetchmany(_FETCH):
        yield from rows
