"""``colonnade predict``: apply a model to a table that somebody already holds."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from colonnade.cli.options.dialect import add_dialect_options, dialect_of
from colonnade.cli.parser import WrongUsage
from colonnade.cli.progress import counter
from colonnade.cli.whole_file import whole_file
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.data.model import LinearModel, load_model
from colonnade.party.scoring import Counter, write_predictions

NOTE = (
    "Prediction is outside the privacy promise: it is a local computation on a table that whoever"
    " runs it already holds. Nothing is sent, nothing is charged."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Apply a model to a joined table, one prediction a row in the table's order:"
        " the label's value, for a logistic model the probability of its high value, for a support"
        " vector machine its high or low value."
        " A column is called party.feature, or feature where that is unique, or as in the party's"
        " source; those of features with a coefficient of zero are not needed. Columns are raw:"
        " texts, dates and missing values are encoded as the parties' schemas said, which"
        " model.json carries, and values are clipped to the model's bounds. " + NOTE
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


def run(arguments: argparse.Namespace) -> int:
    """Write the predictions; with standard output, what is to be said goes to standard error."""
    if arguments.json and arguments.out is None:
        raise WrongUsage("--json needs --out, because predictions go to standard output")
    if arguments.id == "prediction":
        raise WrongUsage("--id: rename that column; 'prediction' is the column to be written")
    model, options = load_model(arguments.model), _options(arguments)
    if arguments.out is None:
        write_predictions(model, arguments.data, sys.stdout, **options)
        sys.stdout.flush()  # before it is called done
        print(_notes(model), file=sys.stderr)
        return EXIT_OK
    with _replacing(arguments.out, keep=(arguments.data, arguments.model)) as file:
        n_rows = write_predictions(model, arguments.data, file, **options)
    print(_summary(arguments, model, n_rows))
    return EXIT_OK


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"id_column": arguments.id, "dialect": dialect_of(arguments), "progress": _bar}


def _bar(n_rows: int) -> Counter:
    return counter(n_rows, what="predict", unit="row")


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


@contextmanager
def _replacing(out: Path, *, keep: Sequence[Path]) -> Iterator[TextIO]:
    """Write a file that appears under its name only when it is whole."""
    if any(out.exists() and path.exists() and out.samefile(path) for path in keep):
        raise BadInput(f"{out}: would replace the file it is made from; choose another --out")
    try:
        with whole_file(out) as file:
            yield file
    except OSError as error:
        raise BadInput(f"{out}: cannot write predictions: {error.strerror}") from None
