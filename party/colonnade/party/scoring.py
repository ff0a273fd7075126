"""Predictions for a table: a local computation by whoever holds it. Nothing is sent or charged."""

import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TextIO

import duckdb
import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.core.text import inert
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.data.kinds import UNKNOWN, Number
from colonnade.data.model import Input, LinearModel
from colonnade.party.data.reading.connection import connect, one_line
from colonnade.party.data.reading.sources import FileSource, Relation, open_source
from colonnade.party.data.reading.values import Missing, unknown_texts, value_sql

Counter = AbstractContextManager[Callable[[int], None]]

_CHUNK_VALUES = 2**21  # 16 MB
_TABLE = "colonnade_staging.main.rows"


def _uncounted(_: int) -> Counter:
    return nullcontext(lambda _: None)


def write_predictions(
    model: LinearModel,
    data: Path,
    file: TextIO,
    *,
    id_column: str | None = None,
    dialect: Dialect = PLAIN,
    progress: Callable[[int], Counter] = _uncounted,
) -> int:
    """Write the predictions for the rows of ``data`` to ``file``, as CSV, and return their number.

    Parameters
    ----------
    id_column
        Is copied beside the predictions; no cell of it is taken for a formula.
    dialect
        How a CSV file is written.
    progress
        Takes the number of rows; the context that it returns is told how many are done.
    """
    try:
        with (
            tempfile.TemporaryDirectory(prefix="colonnade-predict-") as folder,  # mode 0700
            one_line(str(data)),
            connect(Path(folder), n_columns=len(model.features) + 1) as database,
        ):
            source = FileSource(data)
            relation = open_source(database, source, folder=Path(folder), dialect=dialect)
            used = model.match(relation.names, origin=str(data), there=relation.list_names())
            n_rows = _stage(database, relation, used, id_column=id_column)
            writer = csv.writer(_Rows(file))
            names = [] if id_column is None else [inert(id_column)]
            writer.writerow([*names, "prediction"])
            done = 0
            with progress(n_rows) as show:
                for ids, columns, n in _chunks(database, tuple(used), n_rows, with_ids=id_column):
                    _refuse_unknown(columns, used, str(data), first=done)
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
    used: dict[str, Input],
    *,
    id_column: str | None,
) -> int:
    """Copy the used columns into a table whose row ranges can be fetched; return its length.

    Columns go by position, so no name from a file is part of a statement.
    """
    picks, parameters = [], dict(relation.parameters)
    declared: dict[tuple[str, ...], Missing] = {}
    for i, (name, needed) in enumerate(used.items()):
        texts = needed.encoding.missing
        missing = declared.setdefault(texts, Missing.of(texts, suffix=str(len(declared))))
        sql = value_sql(relation, name, needed.encoding.kind, missing)
        picks.append(f"{sql} AS v{i}")
        parameters |= missing.parameters(sql)
    if id_column is not None:
        picks.append(f"coalesce(CAST(c{relation.find(id_column)} AS VARCHAR), '') AS id")
    picks = picks or ["0 AS nothing"]  # a model without coefficients still has a row count
    sql = f"CREATE TABLE {_TABLE} AS SELECT {', '.join(picks)} FROM {relation.sql}"  # noqa: S608
    database.execute(sql, parameters)
    counts = ", ".join(["count(*)", *(f"count(v{i})" for i in range(len(used)))])
    n_rows, *n_numbers = database.execute(f"SELECT {counts} FROM {_TABLE}").fetchone() or (0,)  # noqa: S608
    for position, ((name, needed), n) in enumerate(zip(used.items(), n_numbers, strict=True)):
        if n < n_rows and isinstance(needed.encoding.kind, Number):
            first = f"SELECT min(rowid) + 1 FROM {_TABLE} WHERE v{position} IS NULL"  # noqa: S608
            (row,) = database.execute(first).fetchone() or (None,)
            fault = unknown_texts(name, needed.encoding, n_rows - n, row)
            raise BadInput(f"{relation.origin}: {fault}")
    return int(n_rows)


def _refuse_unknown(
    columns: dict[str, AnyArray], used: dict[str, Input], origin: str, *, first: int
) -> None:
    """Refuse texts that the model does not know, as training would have."""
    for name, needed in used.items():
        if isinstance(needed.encoding.kind, Number):
            continue
        # Read once more by the model: texts that were seen cost a lookup.
        numbers = needed.encoding.read(columns[name], len(columns[name]))
        if (unknown := np.flatnonzero(numbers == UNKNOWN)).size:
            fault = unknown_texts(name, needed.encoding, unknown.size, first + int(unknown[0]) + 1)
            raise BadInput(f"{origin}: {fault}")


def _chunks(
    database: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    n_rows: int,
    *,
    with_ids: str | None,
) -> Iterator[tuple[list[list[str]], dict[str, AnyArray], int]]:
    """Yield row ranges: the ids as a list of no or one column, the values, the number of rows."""
    n_chunk = max(1, _CHUNK_VALUES // (len(names) + 1))
    for start in range(0, n_rows, n_chunk):
        n = min(n_chunk, n_rows - start)
        sql = f"SELECT * FROM {_TABLE} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"  # noqa: S608
        fetched = database.execute(sql, [start, start + n]).fetchnumpy()
        columns = {name: _filled(fetched[f"v{i}"]) for i, name in enumerate(names)}
        yield [] if with_ids is None else [list(fetched["id"])], columns, n


def _filled(fetched: AnyArray) -> AnyArray:
    """Return numbers as they are, and texts with None for NULL."""
    if fetched.dtype != object:
        return np.ma.getdata(fetched)
    return np.array(np.ma.asarray(fetched).tolist(), dtype=object)
