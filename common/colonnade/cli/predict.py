"""``colonnade predict``: apply a model to a table that somebody already holds."""

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import duckdb
import numpy as np

from colonnade.cli.parser import WrongUsage
from colonnade.cli.progress import counter
from colonnade.core.arrays import FloatArray
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.core.text import inert
from colonnade.data.model import LinearModel, ModelFeature, load_model
from colonnade.data.schema import DEFAULT_MISSING
from colonnade.party.data.sources import FileSource, Relation, connect, one_line, open_source

NOTE = (
    "Prediction is outside the privacy promise: it is a local computation on a table that whoever"
    " runs it already holds. Nothing is sent, nothing is charged."
)

_CHUNK_VALUES = 2**21  # 16 MB
_TABLE = "colonnade_staging.main.rows"
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = {
    *_INTEGERS,
    *(f"U{name}" for name in _INTEGERS),
    *("DECIMAL", "FLOAT", "DOUBLE", "BOOLEAN"),
}
_TEXTS = {"VARCHAR", "ENUM", '"NULL"'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Apply a model to a joined table, one prediction a row in the table's order:"
        " the label's value, for a logistic model the probability of its high value, for a support"
        " vector machine its high or low value."
        " A column is called party.feature, or feature where that is unique; those of features"
        " with a coefficient of zero are not needed. A missing value (empty, NA, NaN, null) becomes"
        " the fill that training put in its place, which model.json says; values are clipped to"
        " the model's bounds. Other texts that a party's schema declares as missing: make them"
        " empty first. " + NOTE
    )
    parser.add_argument("--model", type=Path, required=True, help="model.json of a job")
    parser.add_argument("--data", type=Path, required=True, help="CSV (plain or gzip) or Parquet")
    parser.add_argument("--out", type=Path, help="CSV file to write; default: standard output")
    parser.add_argument(
        "--id",
        metavar="NAME",
        help="column to copy beside the predictions; a cell that a spreadsheet would take for a "
        "formula gets an apostrophe, numbers stay as they are",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the predictions; with standard output, what is to be said goes to standard error."""
    if arguments.json and arguments.out is None:
        raise WrongUsage("--json needs --out, because predictions go to standard output")
    if arguments.id == "prediction":
        raise WrongUsage("--id: rename that column; 'prediction' is the column to be written")
    model = load_model(arguments.model)
    if arguments.out is None:
        _predict(model, arguments.data, sys.stdout, id_column=arguments.id)
        sys.stdout.flush()  # before it is called done
        print(_notes(model), file=sys.stderr)
        return EXIT_OK
    with _replacing(arguments.out, keep=(arguments.data, arguments.model)) as file:
        n_rows = _predict(model, arguments.data, file, id_column=arguments.id)
    print(_summary(arguments, model, n_rows))
    return EXIT_OK


def _summary(arguments: argparse.Namespace, model: LinearModel, n_rows: int) -> str:
    if not arguments.json:
        return f"{arguments.out}: {n_rows} predictions\n{_notes(model)}"
    facts = {
        "out": str(arguments.out),
        "n_rows": n_rows,
        "job_id": model.job_id,
        "loss": model.loss,
        "label": model.label.name,
        "private": model.private,
        "note": NOTE,
    }
    return json.dumps(facts)


def _notes(model: LinearModel) -> str:
    if model.private:
        return NOTE
    return f"{NOTE}\nThe model is NOT PRIVATE: it is from a simulation, or its noise was not exact."


def _predict(model: LinearModel, data: Path, file: TextIO, *, id_column: str | None) -> int:
    """Write the predictions for ``data`` to ``file`` and return their number."""
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
            for ids, columns, n in _chunks(database, tuple(used), n_rows, with_ids=id_column):
                predictions = model.predict(columns, n_rows=n).tolist()
                writer.writerows(zip(*(map(inert, each) for each in ids), predictions, strict=True))
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
    with counter(n_rows, what="predict", unit="row") as show:
        for start in range(0, n_rows, n_chunk):
            n = min(n_chunk, n_rows - start)
            sql = f"SELECT * FROM {_TABLE} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"  # noqa: S608
            fetched = database.execute(sql, [start, start + n]).fetchnumpy()
            columns = {name: np.ma.getdata(fetched[f"v{i}"]) for i, name in enumerate(names)}
            yield [] if with_ids is None else [list(fetched["id"])], columns, n
            show(start + n)


@contextmanager
def _replacing(out: Path, *, keep: Sequence[Path]) -> Iterator[TextIO]:
    """Write a file that appears under its name only when it is whole."""
    if any(out.exists() and path.exists() and out.samefile(path) for path in keep):
        raise BadInput(f"{out}: would replace the file it is made from; choose another --out")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                yield file
            Path(name).replace(out)
        except BaseException:
            Path(name).unlink()
            raise
    except OSError as error:
        raise BadInput(f"{out}: cannot write predictions: {error.strerror}") from None
