"""Raw rows on their way into a table: staged on disk, matched to the roster, checked.

A staged number is NaN if it is missing, NULL if it is neither: text where a number should be. Of
other columns the texts are staged, NULL for a missing one, and read as `data.encoding` says when
they are fetched. Errors name columns, counts and row numbers, never a value or an id. Statements
are put together from our own names and positions only; texts of the user are bound as parameters.
"""

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.data.kinds import Number
from colonnade.data.schema import Schema
from colonnade.party.data.division import divide
from colonnade.party.data.order import Roster, RowsById, keep_aligned
from colonnade.party.data.reading.connection import one_line
from colonnade.party.data.reading.in_place import find_in_place
from colonnade.party.data.reading.sources import ROWS, Relation
from colonnade.party.data.reading.staged import StagedColumns
from colonnade.party.data.reading.values import (
    Missing,
    holds_numbers,
    texts_of,
    value_sql,
)
from colonnade.party.data.roster import (
    ROSTER,
    WRITTEN,
    client_sql,
    count_repeats,
    id_sql,
    load_roster,
    pair,
)


def stage(
    database: duckdb.DuckDBPyConnection,
    relation: Relation,
    *,
    schema: Schema,
    roster: Roster | None = None,
    alignment: RowsById | None = None,
    in_place: bool = False,
) -> StagedColumns:
    """Copy what ``schema`` needs of ``relation`` into the staging database and check it.

    Parameters
    ----------
    in_place
        Rows that nothing has to be checked of may stay where they are, if only parts are read.
    """
    if in_place and roster is None and alignment is None:
        rows = find_in_place(database, relation, schema)
        if rows is not None:
            return StagedColumns(database, rows.n_rows, n_absent=0, index=None, in_place=rows)
    n_roster = None if roster is None else load_roster(database, roster.path, roster.rule)
    ids = () if alignment is None else alignment.columns
    with one_line(relation.origin):
        _copy(database, relation, schema=schema, roster=roster, ids=ids)
    if alignment is not None:
        index, n_left_out = keep_aligned(database, alignment)
        _refuse_text(database, relation, schema=schema, row="source_row")
        n_absent = int(np.count_nonzero(index < 0))
        return StagedColumns(
            database,
            n_rows=alignment.n_rows,
            n_absent=n_absent,
            index=index,
            origin=relation.origin,
            row="source_row",
            n_left_out=n_left_out,
            zero_absent=True,
        )
    row = "rowid + 1" if n_roster is None else "source_row"
    if schema.id is not None:
        _check_ids(
            database, relation.origin, schema=schema, row=row, has_roster=n_roster is not None
        )
    staged = _arrange(database, relation.origin, n_roster=n_roster)
    staged = replace(staged, origin=relation.origin, row=row)
    if n_roster is not None:
        count = f"SELECT count(*), 0 FROM {relation.sql}"  # noqa: S608
        n_source, _ = pair(database.execute(count, dict(relation.parameters)).fetchone())
        staged = replace(staged, n_left_out=n_source - (n_roster - staged.n_absent))
    if schema.client is not None:
        found = divide(database, relation.origin, schema=schema)
        staged = replace(staged, index=found.index, division=found)
    _refuse_text(database, relation, schema=schema, row=row)
    return staged


def staged_texts(database: duckdb.DuckDBPyConnection, place: int) -> AnyArray:
    """Return the staged texts of a column, None for a missing one."""
    fetched = database.execute(f"SELECT v{place} AS text FROM {ROWS}").fetchnumpy()["text"]  # noqa: S608
    return np.array(list(texts_of(fetched)), dtype=object)


def _copy(
    database: duckdb.DuckDBPyConnection,
    relation: Relation,
    *,
    schema: Schema,
    roster: Roster | None,
    ids: Sequence[str] = (),
) -> None:
    """Create the table of staged rows; of people not on the roster nothing is written."""
    missing = Missing.of(schema.missing)
    picks = [
        f"{value_sql(relation, column.column, column.kind, missing)} AS v{position}"
        for position, column in enumerate(schema.columns)
    ]
    picks += [f"{id_sql(relation, name)} AS k{at}" for at, name in enumerate(ids)]
    if schema.id is not None:
        text = id_sql(relation, schema.id)
        by_rule = roster is not None and roster.rule is not None
        picks.append(f"{WRITTEN}({text}) AS id" if by_rule else f"{text} AS id")
    if schema.client is not None:
        picks.append(f"{client_sql(relation, schema.client, schema.client_ids)} AS client")
    # Numbering the source's rows costs its parallel scan; without a filter the rowid does it.
    number = "row_number() OVER () AS source_row, " if roster or ids else ""
    chosen = f"SELECT {number}{', '.join(picks)} FROM {relation.sql}"  # noqa: S608
    if roster is not None:
        chosen = f"SELECT * FROM ({chosen}) WHERE id IN (SELECT id FROM {ROSTER})"  # noqa: S608
    parameters = {**relation.parameters, **missing.parameters(chosen)}
    database.execute(f"CREATE TABLE {ROWS} AS {chosen}", parameters)


def _check_ids(
    database: duckdb.DuckDBPyConnection, origin: str, *, schema: Schema, row: str, has_roster: bool
) -> None:
    """Refuse a person with two rows and, without a roster, a row without a person."""
    if not has_roster:  # with one, only rows with an id of the list are staged
        is_missing = "id IS NULL OR list_contains(?::VARCHAR[], id)"
        sql = f"SELECT count(*), min({row}) FROM {ROWS} WHERE {is_missing}"  # noqa: S608
        n_missing, first = pair(database.execute(sql, [list(schema.missing)]).fetchone())
        if n_missing:
            where = f"the first is data row {first}"
            raise BadInput(f"{origin}: {n_missing} rows have no id in {schema.id!r}; {where}")
    n_repeats, first = count_repeats(database, ROWS, row=row)
    if n_repeats:
        where = f"the first is data row {first}"
        raise BadInput(f"{origin}: {n_repeats} rows repeat an earlier id in {schema.id!r}; {where}")


def _arrange(
    database: duckdb.DuckDBPyConnection, origin: str, *, n_roster: int | None
) -> StagedColumns:
    """Find the staged row of each row of the table."""
    n_staged, _ = pair(database.execute(f"SELECT count(*), 0 FROM {ROWS}").fetchone())  # noqa: S608
    if not n_staged:
        fault = (
            "no rows" if n_roster is None else "no row of a person on the roster; compare the ids"
        )
        raise BadInput(f"{origin}: {fault}")
    if n_roster is None:
        return StagedColumns(database, n_rows=n_staged, n_absent=0, index=None)
    matched = database.execute(
        f"SELECT position, r.rowid AS staged FROM {ROWS} r JOIN {ROSTER} USING (id)"  # noqa: S608
    ).fetchnumpy()
    index = np.full(n_roster, -1, dtype=np.int64)
    index[np.ma.getdata(matched["position"])] = np.ma.getdata(matched["staged"])
    return StagedColumns(database, n_rows=n_roster, n_absent=n_roster - n_staged, index=index)


def _refuse_text(
    database: duckdb.DuckDBPyConnection, relation: Relation, *, schema: Schema, row: str
) -> None:
    """Refuse values that are neither numbers nor missing."""
    origin = relation.origin
    numbers = [
        i
        for i, each in enumerate(schema.columns)
        if isinstance(each.kind, Number) and not holds_numbers(relation, each.column)
    ]
    if not numbers:
        return
    counts = ", ".join(f"count(*) - count(v{i})" for i in numbers)
    n_texts = database.execute(f"SELECT {counts} FROM {ROWS}").fetchone() or ()  # noqa: S608
    faulty = [(i, count) for i, count in zip(numbers, n_texts, strict=True) if count]
    if not faulty:
        return
    place, n_faulty = faulty[0]
    sql = f"SELECT 0, min({row}) FROM {ROWS} WHERE v{place} IS NULL"  # noqa: S608
    _, first = pair(database.execute(sql).fetchone())
    where = f"{schema.columns[place].column!r} has {n_faulty} values that are no numbers"
    others = f" ({len(faulty) - 1} other columns too)" if faulty[1:] else ""
    fix = (
        "correct them or declare their text in 'missing', their 'type', or how they are written in "
        "'decimal' and 'thousands'"
    )
    raise BadInput(f"{origin}: column {where}, the first in data row {first}{others}; {fix}")
