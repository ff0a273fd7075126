"""Raw rows on their way into a table: staged on disk, matched to the roster, checked.

A staged value is a number, NaN if it is missing, NULL if it is neither: text where a number
should be. Errors name columns, counts and row numbers, never a value or an id. Statements are put
together from our own names and positions only; texts of the user are bound as parameters.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.data.schema import Column, Schema
from colonnade.party.data.division import Division, divide
from colonnade.party.data.order import RowsById, keep_aligned
from colonnade.party.data.sources import MAIN, ROWS, Relation, is_number, one_line

ROSTER = f"{MAIN}.roster"

_CHUNK_LINES = 50_000
_FETCH_VALUES = 2**20  # 8 MB
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = {*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "DECIMAL", "BOOLEAN"}
_FLOATS = {"FLOAT", "DOUBLE"}
_TEXTS = {"VARCHAR", "ENUM", '"NULL"'}
# Ids of clients: of whole numbers and texts under every rule, of other numbers if they are folded.
_CLIENT_IDS = (_NUMBERS | _TEXTS | {"UUID"}) - {"BOOLEAN", "DECIMAL"}
_FOLDED_IDS = {"DECIMAL", "DOUBLE"}


@dataclass(frozen=True, slots=True)
class Staged:
    """Give the staged columns, one at a time, in the order of the table.

    Parameters
    ----------
    index
        Staged row of each person on the roster, -1 for the absent; None keeps the staged order.
    division
        Who owns the rows, if they are divided among clients; then clients' rows stand together.
    """

    database: duckdb.DuckDBPyConnection
    n_rows: int
    n_absent: int
    index: IntArray | None
    division: Division | None = None
    n_left_out: int = 0  # rows of the source that the order of the table has no place for
    zero_absent: bool = False  # absent people are zero rows, not fills

    @property
    def absent(self) -> NDArray[np.bool_] | None:
        """Which rows are zero: those of absent people, if an alignment says who is."""
        return self.index < 0 if self.zero_absent and self.index is not None else None

    def columns(self, n_columns: int) -> Iterator[FloatArray]:
        """Yield the columns in the order of the schema; NaN where a value is missing.

        Short columns are fetched several at a time, because a statement costs milliseconds.
        """
        n_staged = self.n_rows - self.n_absent
        n_together = max(1, _FETCH_VALUES // n_staged)
        for start in range(0, n_columns, n_together):
            names = [f"v{i}" for i in range(start, min(start + n_together, n_columns))]
            sql = f"SELECT {', '.join(names)} FROM {ROWS}"  # noqa: S608
            fetched = self.database.execute(sql).fetchnumpy()
            for name in names:
                yield self._arranged(np.ma.getdata(fetched.pop(name)))

    def _arranged(self, values: FloatArray) -> FloatArray:
        if self.index is None:
            return values
        arranged = np.full(self.n_rows, np.nan)
        present = self.index >= 0
        arranged[present] = values[self.index[present]]
        return arranged


def stage(
    database: duckdb.DuckDBPyConnection,
    relation: Relation,
    *,
    schema: Schema,
    roster: Path | None = None,
    alignment: RowsById | None = None,
) -> Staged:
    """Copy what ``schema`` needs of ``relation`` into the staging database and check it."""
    n_roster = None if roster is None else _load_roster(database, roster)
    ids = () if alignment is None else alignment.columns
    with one_line(relation.origin):
        _copy(database, relation, schema=schema, has_roster=n_roster is not None, ids=ids)
    if alignment is not None:
        index, n_left_out = keep_aligned(database, alignment)
        _refuse_text(database, relation.origin, schema=schema, row="source_row")
        n_absent = int(np.count_nonzero(index < 0))
        return Staged(
            database,
            n_rows=alignment.n_rows,
            n_absent=n_absent,
            index=index,
            n_left_out=n_left_out,
            zero_absent=True,
        )
    row = "rowid + 1" if n_roster is None else "source_row"
    if schema.id is not None:
        _check_ids(
            database, relation.origin, schema=schema, row=row, has_roster=n_roster is not None
        )
    staged = _arrange(database, relation.origin, n_roster=n_roster)
    if n_roster is not None:
        count = f"SELECT count(*), 0 FROM {relation.sql}"  # noqa: S608
        n_source, _ = _pair(database.execute(count, dict(relation.parameters)).fetchone())
        staged = replace(staged, n_left_out=n_source - (n_roster - staged.n_absent))
    if schema.client is not None:
        found = divide(database, relation.origin, schema=schema)
        staged = replace(staged, index=found.index, division=found)
    _refuse_text(database, relation.origin, schema=schema, row=row)
    return staged


def _load_roster(database: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Read the list of people, one id a line, and return its length."""
    database.execute(f"CREATE TABLE {ROSTER} (position BIGINT, id VARCHAR)")
    insert = f"INSERT INTO {ROSTER} SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[])"
    n_lines = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            while lines := list(islice(file, _CHUNK_LINES)):
                ids = [line.removesuffix("\n") for line in lines]
                positions = range(n_lines, n_lines + len(ids))
                for position, person in zip(positions, ids, strict=True):
                    if not person.strip():
                        raise BadInput(f"{path}: line {position + 1} is empty; remove it")
                database.execute(insert, [list(positions), ids])
                n_lines += len(ids)
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; convert the roster to UTF-8") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot read the roster: {error.strerror}") from None
    if not n_lines:
        raise BadInput(f"{path}: the roster is empty; write one id a line")
    n_repeats, line = _count_repeats(database, ROSTER, row="position + 1")
    if n_repeats:
        raise BadInput(f"{path}: {n_repeats} lines repeat an earlier id, the first is line {line}")
    return n_lines


def _copy(
    database: duckdb.DuckDBPyConnection,
    relation: Relation,
    *,
    schema: Schema,
    has_roster: bool,
    ids: Sequence[str] = (),
) -> None:
    """Create the table of staged rows; of people not on the roster nothing is written."""
    # A missing token such as -999 counts as a number: it also stands for -999.0 in a typed column.
    codes = [float(token) for token in schema.missing if is_number(token)]
    codes = [code for code in codes if not math.isnan(code)]
    picks = [
        f"{_number_sql(relation, column, has_codes=bool(codes))} AS v{position}"
        for position, column in enumerate(schema.columns)
    ]
    picks += [f"{id_sql(relation, name)} AS k{at}" for at, name in enumerate(ids)]
    if schema.id is not None:
        picks.append(f"{id_sql(relation, schema.id)} AS id")
    if schema.client is not None:
        picks.append(f"{_client_sql(relation, schema.client, schema.client_ids)} AS client")
    # Numbering the source's rows costs its parallel scan; without a filter the rowid does it.
    number = "row_number() OVER () AS source_row, " if has_roster or ids else ""
    chosen = f"SELECT {number}{', '.join(picks)} FROM {relation.sql}"  # noqa: S608
    if has_roster:
        chosen = f"SELECT * FROM ({chosen}) WHERE id IN (SELECT id FROM {ROSTER})"  # noqa: S608
    values = {"missing": list(schema.missing), "codes": codes}
    used = {name: value for name, value in values.items() if f"${name}" in chosen}
    database.execute(f"CREATE TABLE {ROWS} AS {chosen}", {**relation.parameters, **used})


def _number_sql(relation: Relation, column: Column, *, has_codes: bool) -> str:
    """Return SQL for a column's staged value."""
    position = relation.find(column.column)
    kind = relation.types[position].partition("(")[0]
    if kind not in _NUMBERS | _FLOATS | _TEXTS:
        fix = "convert it to a number in a query"
        raise BadInput(f"{relation.origin}: column {column.column!r} holds {kind} values; {fix}")
    cell = f"c{position}"
    number = f"TRY_CAST({cell} AS DOUBLE)"
    nan = "CAST('nan' AS DOUBLE)"
    missing = f"{cell} IS NULL"
    if kind in _TEXTS:
        text = f"coalesce({cell}, '')" if relation.is_csv else f"CAST({cell} AS VARCHAR)"
        missing = f"{text} IS NULL OR list_contains($missing::VARCHAR[], trim({text}))"
    # Casts come first because most values are numbers, and comparing texts is three times slower.
    value = f"coalesce({number}, CASE WHEN {missing} THEN {nan} END)"
    if not has_codes:
        return value
    return f"CASE WHEN list_contains($codes::DOUBLE[], {number}) THEN {nan} ELSE {value} END"


def id_sql(relation: Relation, name: str) -> str:
    """Return SQL for the text of an id."""
    position = relation.find(name)
    if relation.types[position] in _FLOATS:  # its text would be "7.0", which is on no roster
        fix = "convert it to text in a query"
        raise BadInput(f"{relation.origin}: id column {name!r} holds floating-point values; {fix}")
    return f"CAST(c{position} AS VARCHAR)"


def _client_sql(relation: Relation, name: str, rule: str) -> str:
    position = relation.find(name)
    kind = relation.types[position].partition("(")[0]
    if kind not in _CLIENT_IDS | (set() if rule == "exact" else _FOLDED_IDS):
        raise BadInput(
            f"{relation.origin}: client column {name!r} holds {kind} values, which are written in "
            "many ways; convert it to text in a query"
        )
    text = f"CAST(c{position} AS VARCHAR)"
    return f"CASE WHEN isfinite(c{position}) THEN {text} END" if kind == "DOUBLE" else text


def _check_ids(
    database: duckdb.DuckDBPyConnection, origin: str, *, schema: Schema, row: str, has_roster: bool
) -> None:
    """Refuse a person with two rows and, without a roster, a row without a person."""
    if not has_roster:  # with one, only rows with an id of the list are staged
        is_missing = "id IS NULL OR list_contains(?::VARCHAR[], id)"
        sql = f"SELECT count(*), min({row}) FROM {ROWS} WHERE {is_missing}"  # noqa: S608
        n_missing, first = _pair(database.execute(sql, [list(schema.missing)]).fetchone())
        if n_missing:
            where = f"the first is data row {first}"
            raise BadInput(f"{origin}: {n_missing} rows have no id in {schema.id!r}; {where}")
    n_repeats, first = _count_repeats(database, ROWS, row=row)
    if n_repeats:
        where = f"the first is data row {first}"
        raise BadInput(f"{origin}: {n_repeats} rows repeat an earlier id in {schema.id!r}; {where}")


def _arrange(database: duckdb.DuckDBPyConnection, origin: str, *, n_roster: int | None) -> Staged:
    """Find the staged row of each row of the table."""
    n_staged, _ = _pair(database.execute(f"SELECT count(*), 0 FROM {ROWS}").fetchone())  # noqa: S608
    if not n_staged:
        fault = (
            "no rows" if n_roster is None else "no row of a person on the roster; compare the ids"
        )
        raise BadInput(f"{origin}: {fault}")
    if n_roster is None:
        return Staged(database, n_rows=n_staged, n_absent=0, index=None)
    matched = database.execute(
        f"SELECT position, r.rowid AS staged FROM {ROWS} r JOIN {ROSTER} USING (id)"  # noqa: S608
    ).fetchnumpy()
    index = np.full(n_roster, -1, dtype=np.int64)
    index[np.ma.getdata(matched["position"])] = np.ma.getdata(matched["staged"])
    return Staged(database, n_rows=n_roster, n_absent=n_roster - n_staged, index=index)


def _refuse_text(
    database: duckdb.DuckDBPyConnection, origin: str, *, schema: Schema, row: str
) -> None:
    """Refuse values that are neither numbers nor missing."""
    counts = ", ".join(f"count(*) - count(v{i})" for i in range(len(schema.columns)))
    n_texts = database.execute(f"SELECT {counts} FROM {ROWS}").fetchone() or ()  # noqa: S608
    faulty = [position for position, count in enumerate(n_texts) if count]
    if not faulty:
        return
    sql = f"SELECT 0, min({row}) FROM {ROWS} WHERE v{faulty[0]} IS NULL"  # noqa: S608
    _, first = _pair(database.execute(sql).fetchone())
    where = (
        f"{schema.columns[faulty[0]].column!r} has {n_texts[faulty[0]]} values that are no numbers"
    )
    others = f" ({len(faulty) - 1} other columns too)" if faulty[1:] else ""
    fix = "correct them or declare their text in 'missing'"
    raise BadInput(f"{origin}: column {where}, the first in data row {first}{others}; {fix}")


def _count_repeats(database: duckdb.DuckDBPyConnection, table: str, *, row: str) -> tuple[int, int]:
    """Return how many rows repeat an earlier id, and the number of the first such row."""
    nth = f"row_number() OVER (PARTITION BY id ORDER BY {row})"
    numbered = f"SELECT {row} AS number, {nth} AS nth FROM {table}"  # noqa: S608
    sql = f"SELECT count(*), min(number) FROM ({numbered}) WHERE nth > 1"  # noqa: S608
    return _pair(database.execute(sql).fetchone())


def _pair(fetched: tuple[int | None, ...] | None) -> tuple[int, int]:
    first, second = fetched or (0, 0)
    return first or 0, second or 0
