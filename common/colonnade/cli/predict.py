"""The ``colonnade predict`` command: apply a model to a table that somebody already holds.

Imports of the package stay inside the handlers, so that ``colonnade --help`` is quick.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from colonnade.cli.dialect_options import add_dialect_options, dialect_of

if TYPE_CHECKING:
    import duckdb

    from colonnade.core.arrays import AnyArray
    from colonnade.data.dialect import Dialect
    from colonnade.data.model import Input, LinearModel
    from colonnade.party.data.sources import Relation

NOTE = (
    "Prediction is outside the privacy promise: it is a local computation on a table that whoever"
    " runs it already holds. Nothing is sent, nothing is charged."
)

_CHUNK_VALUES = 2**21  # 16 MB
_TABLE = "colonnade_staging.main.rows"

Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add ``predict`` to the command line."""
    parser = commands.add_parser(
        "predict",
        help="apply a model to a joined table",
        description="Apply a model to a joined table, one prediction a row in the table's order:"
        " the label's value, for a logistic model the probability of its high value, for a support"
        " vector machine its high or low value."
        " A column is called party.feature, or feature where that is unique, or as in the party's"
        " source; those of features with a coefficient of zero are not needed. Columns are raw:"
        " texts, dates and missing values are encoded as the parties' schemas said, which"
        " model.json carries, and values are clipped to the model's bounds. " + NOTE,
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
    add_dialect_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object; needs --out")
    parser.set_defaults(handler=_run, usage_error=parser.error)


def _run(arguments: argparse.Namespace) -> int:
    import sys

    from colonnade.core.errors import EXIT_OK
    from colonnade.data.model import load_model

    if arguments.json and arguments.out is None:
        arguments.usage_error("--json needs --out, because predictions go to standard output")
    if arguments.id == "prediction":
        arguments.usage_error("--id: rename that column; 'prediction' is the column to be written")
    model, dialect = load_model(arguments.model), dialect_of(arguments)
    if arguments.out is None:
        _predict(model, arguments.data, sys.stdout, dialect, id_column=arguments.id)
        sys.stdout.flush()  # before it is called done
        print(_notes(model), file=sys.stderr)
        return EXIT_OK
    with _replacing(arguments.out, keep=(arguments.data, arguments.model)) as file:
        n_rows = _predict(model, arguments.data, file, dialect, id_column=arguments.id)
    print(_summary(arguments, model, n_rows))
    return EXIT_OK


def _summary(arguments: argparse.Namespace, model: "LinearModel", n_rows: int) -> str:
    import json

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


def _notes(model: "LinearModel") -> str:
    if model.private:
        return NOTE
    return f"{NOTE}\nThe model is NOT PRIVATE: it is from a simulation, or its noise was not exact."


def _predict(
    model: "LinearModel", data: Path, file: TextIO, dialect: "Dialect", *, id_column: str | None
) -> int:
    """Write the predictions for ``data`` to ``file`` and return their number."""
    import csv
    import tempfile

    from colonnade.core.errors import BadInput
    from colonnade.core.text import inert
    from colonnade.party.data.sources import FileSource, connect, one_line, open_source

    try:
        with (
            tempfile.TemporaryDirectory(prefix="colonnade-predict-") as folder,  # mode 0700
            one_line(str(data)),
            connect(Path(folder), n_columns=len(model.features) + 1) as database,
        ):
            relation = open_source(database, FileSource(data), folder=Path(folder), dialect=dialect)
            used = model.match(relation.names, origin=str(data), there=relation.list_names())
            n_rows = _stage(database, relation, used, id_column=id_column)
            writer = csv.writer(_Rows(file))
            names = [] if id_column is None else [inert(id_column)]
            writer.writerow([*names, "prediction"])
            first = 0
            for ids, columns, n in _chunks(database, tuple(used), n_rows, with_ids=id_column):
                _refuse_unknown(columns, used, str(data), first=first)
                predictions = model.predict(columns, n_rows=n).tolist()
                first += n
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
    database: "duckdb.DuckDBPyConnection",
    relation: "Relation",
    used: "dict[str, Input]",
    *,
    id_column: str | None,
) -> int:
    """Copy the used columns into a table whose row ranges can be fetched; return its length.

    Columns go by position, so no name from a file is part of a statement.
    """
    from colonnade.core.errors import BadInput
    from colonnade.data.encoding import Number
    from colonnade.party.data.values import Missing, unknown_texts, value_sql

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
    columns: "dict[str, AnyArray]", used: "dict[str, Input]", origin: str, *, first: int
) -> None:
    """Refuse texts that the model does not know, as training would have."""
    import numpy as np

    from colonnade.core.errors import BadInput
    from colonnade.data.encoding import UNKNOWN, Number
    from colonnade.party.data.values import unknown_texts

    for name, needed in used.items():
        if isinstance(needed.encoding.kind, Number):
            continue
        # Read once more by the model: texts that were seen cost a lookup.
        numbers = needed.encoding.read(columns[name], len(columns[name]))
        if (unknown := np.flatnonzero(numbers == UNKNOWN)).size:
            fault = unknown_texts(name, needed.encoding, unknown.size, first + int(unknown[0]) + 1)
            raise BadInput(f"{origin}: {fault}")


def _chunks(
    database: "duckdb.DuckDBPyConnection",
    names: Sequence[str],
    n_rows: int,
    *,
    with_ids: str | None,
) -> "Iterator[tuple[list[list[str]], dict[str, AnyArray], int]]":
    """Yield row ranges: the ids as a list of no or one column, the values, the number of rows."""
    import sys

    from tqdm import tqdm

    n_chunk = max(1, _CHUNK_VALUES // (len(names) + 1))
    # disable=None: a bar on a terminal, nothing elsewhere.
    with tqdm(
        total=n_rows, desc="predict", unit="row", leave=False, file=sys.stderr, disable=None
    ) as bar:
        for start in range(0, n_rows, n_chunk):
            n = min(n_chunk, n_rows - start)
            sql = f"SELECT * FROM {_TABLE} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"  # noqa: S608
            fetched = database.execute(sql, [start, start + n]).fetchnumpy()
            columns = {name: _filled(fetched[f"v{i}"]) for i, name in enumerate(names)}
            yield [] if with_ids is None else [list(fetched["id"])], columns, n
            bar.update(n)


def _filled(fetched: "AnyArray") -> "AnyArray":
    """Return numbers as they are, and texts with None for NULL."""
    import numpy as np

    if fetched.dtype != object:
        return np.ma.getdata(fetched)
    return np.array(np.ma.asarray(fetched).tolist(), dtype=object)


@contextmanager
def _replacing(out: Path, *, keep: Sequence[Path]) -> Iterator[TextIO]:
    """Write a file that appears under its name only when it is whole."""
    import os
    import tempfile

    from colonnade.core.errors import BadInput

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
