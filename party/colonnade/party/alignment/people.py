"""Whom a party lists: the ids of its own source, as an alignment's rule writes them.

Ids are data. They are read before the first message of a run, because the time that it takes to
bring them into one form depends on them, and messages say how many rows are concerned, never which.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from colonnade.core.errors import BadInput
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.methods.alignment.normalise import IdRule, PreparedIds, prepare
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.sources import Relation, Source, open_source
from colonnade.party.data.roster import id_sql

_FETCH = 50_000


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
