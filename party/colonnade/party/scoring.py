"""Predictions for a table: a local computation by whoever holds it. Nothing is sent or charged."""

import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TextIO

import duckdb
import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.text import inert
from colonnade.data.model import LinearModel, ModelFeature
from colonnade.data.schema import DEFAULT_MISSING
from colonnade.party.data.sources import FileSource, Relation, connect, one_line, open_source

Counter = AbstractContextManager[Callable[[int], None]]

_CHUNK_VALUES = 2**21  # 16 MB
_TABLE = "colonnade_staging.main.rows"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = {
    *_INTEGERS,
    *(f"U{name}" for name in _INTEGERS),
    *("DECIMAL", "FLOAT", "DOUBLE", "BOOLEAN"),
}
_TEXTS = {"VARCHAR", "ENUM", '"NULL"'}


def _uncounted(_: int) -> Counter:
    return nullcontext(lambda _: None)


def write_predictions(
    model: LinearModel,
    data: Path,
    file: TextIO,
    *,
    id_column: str | None = None,
    progress: Callable[[int], Counter] = _uncounted,
) -> int:
    """Write the predictions for the rows of ``data`` to ``file``, as CSV, and return their number.

    Parameters
    ----------
    id_column
        Is copied beside the predictions; no cell of it is taken for a formula.
    progress
        Takes the number of rows; the context that it returns is told how many are done.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix="colonnade-predict-") as folder,  # mode 0700
            one_line(str(data)),
            connect(Path(folder), n_columns=len(model.features) + 1) as database,
        ):
            relation = open_source(database, FileSource(data))
            used = model.match(relation.names, origin=str(data), there=relation.list_names())
            n_rows = _stage(database, relation, used, id_column=id_column)
            writer = csv.writer(_Rows(file))
            names = [] if id_column is None else [inert(id_column)]
            writer.writerow([*names, "prediction"])
            done = 0
            with progress(n_rows) as show:
                for ids, columns, n in _chunks(database, tuple(used), n_rows, with_ids=id_column):
                    predictions = model.predict(columns, n_rows=n).tolist()
                    cells = (map(inert, each) for each in ids)
                    writer.writerows(zip(*cells, predictions, strict=True))
                    done += n
                    show(done)
    except UnicodeEncodeError:
        raise BadInput("a path or a name is not valid UTF-8; rename it") from None
    return n_rows


class _Rows:
    """Ends the rows that ``csv`` writes with a line feed, as it would have been told to.

    Told so, it does not quote carriage returns, which others take for the end of a row.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write one row, which ends with carriage return and line feed."""
        self._file.write(f"{row[:-2]}\n")


def _stage(
    database: duckdb.DuckDBPyConnection,
    relation: Relation,
    used: dict[str, ModelFeature],
    *,
    id_column: str | None,
) -> int:
    """Copy the used columns into a table whose row ranges can be fetched; return its length.

    Columns go by position, so no name from a file is part of a statement.
    """
    picks = [f"{_number_sql(relation, name)} AS v{i}" for i, name in enumerate(used)]
    if id_column is not None:
        picks.append(f"coalesce(CAST(c{relation.find(id_column)} AS VARCHAR), '') AS id")
    picks = picks or ["0 AS nothing"]  # a model without coefficients still has a row count
    sql = f"CREATE TABLE {_TABLE} AS SELECT {', '.join(picks)} FROM {relation.sql}"  # noqa: S608
    tokens = {"missing": list(DEFAULT_MISSING)} if "$missing" in sql else {}
    database.execute(sql, {**relation.parameters, **tokens})
    counts = ", ".join(["count(*)", *(f"count(v{i})" for i in range(len(used)))])
    n_rows, *n_numbers = database.execute(f"SELECT {counts} FROM {_TABLE}").fetchone() or (0,)  # noqa: S608
    for position, (name, n) in enumerate(zip(used, n_numbers, strict=True)):
        if n < n_rows:
            first = f"SELECT min(rowid) + 1 FROM {_TABLE} WHERE v{position} IS NULL"  # noqa: S608
            (row,) = database.execute(first).fetchone() or (None,)
            where = f"{relation.origin}: column {name!r} has {n_rows - n} values that are no"
            raise BadInput(f"{where} numbers, the first in data row {row}; correct them")
    return int(n_rows)


def _number_sql(relation: Relation, name: str) -> str:
    """Return SQL for a value: NaN if it is missing, NULL if it is no number."""
    position = relation.find(name)
    cell, kind = f"c{position}", relation.types[position].partition("(")[0]
    if kind not in _NUMBERS | _TEXTS:
        raise BadInput(f"{relation.origin}: column {name!r} holds {kind} values, not numbers")
    missing = f"{cell} IS NULL"
    if kind in _TEXTS:
        missing += f" OR list_contains($missing::VARCHAR[], trim(CAST({cell} AS VARCHAR)))"
    nan = "CAST('nan' AS DOUBLE)"
    return f"coalesce(TRY_CAST({cell} AS DOUBLE), CASE WHEN {missing} THEN {nan} END)"


def _chunks(
    database: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    n_rows: int,
    *,
    with_ids: str | None,
) -> Iterator[tuple[list[list[str]], dict[str, FloatArray], int]]:
    """Yield row ranges: the ids as a list of no or one column, the values, the number of rows."""
    n_chunk = max(1, _CHUNK_VALUES // (len(names) + 1))
    for start in range(0, n_rows, n_chunk):
        n = min(n_chunk, n_rows - start)
        sql = f"SELECT * FROM {_TABLE} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"  # noqa: S608
        fetched = database.execute(sql, [start, start + n]).fetchnumpy()
        columns = {name: np.ma.getdata(fetched[f"v{i}"]) for i, name in enumerate(names)}
        yield [] if with_ids is None else [list(fetched["id"])], columns, n
