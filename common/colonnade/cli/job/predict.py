"""``colonnade job predict``: have people scored by a job's model, for one party."""

import argparse
import csv
from pathlib import Path

from colonnade.cli.job.connection import add_client_options, open_client, tell_scores
from colonnade.cli.job.hand_in import add_hand_in_options, hand_in
from colonnade.cli.job.solve import add_solution_options, solution_of
from colonnade.cli.text import names_from
from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.core.config import read_text
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel, load_model
from colonnade.methods.prediction.claims import PROMISE, learned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Each party computes its partial score of the asked rows, masks it and seals it to the "
        "receiver, who adds the parts and writes a file. " + PROMISE + " Every party's policy must "
        "grant it ([[predict]])."
    )
    add_client_options(parser)
    parser.add_argument("model", help="a finished job's name, or its beginning, or its model.json")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--rows", type=Path, metavar="FILE", help="row numbers, one a line; see `party rows`"
    )
    asked.add_argument("--row", type=int, action="append", help="one row; may be repeated")
    parser.add_argument("--to", required=True, help="the party that gets the scores")
    parser.add_argument("--purpose", required=True, help="what for, as the grants say it")
    parser.add_argument(
        "--middle",
        metavar="A,B",
        help="parties that do not score: the middle of their features' bounds counts, in these "
        "rows and for this model for good",
    )
    add_solution_options(parser)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    add_hand_in_options(parser, purpose=False)


def run(arguments: argparse.Namespace) -> int:
    """Submit the prediction that the options ask for, and say what each side learns."""
    rows = arguments.row or read_rows(arguments.rows)
    expected = _model(arguments.model)
    options = PredictOptions(
        arguments.to,
        arguments.purpose,
        middle=() if arguments.middle is None else tuple(names_from(arguments.middle)),
        solution=solution_of(arguments),
    )
    with open_client(arguments) as client:
        trained = client.show(arguments.model if expected is None else expected.job_id)
        job = author_prediction(
            trained.spec,
            client.releases(trained.view.job_id),
            rows,
            options,
            offers=client.parties(),
            expected=expected,
            name=arguments.name,
            timeout_s=arguments.timeout,
        )
        if not arguments.json:
            print(PROMISE)
            for who, what in learned(options.to, len(job.members), options.middle):
                print(f"  learns      {who}: {what}")

        def ended(name: str) -> None:
            tell_scores(client, name, as_json=arguments.json)

        return hand_in(client, client.plan(job), arguments, ended)


def read_rows(path: Path) -> list[int]:
    """Read row numbers: the column ``row``, or the first."""
    lines = list(csv.reader(read_text(path).splitlines()))
    column = 0
    if lines and lines[0] and not lines[0][0].strip().isdigit():
        head = [cell.strip() for cell in lines.pop(0)]
        column = head.index("row") if "row" in head else 0
    try:
        return [int(line[column]) for line in lines if line]
    except (ValueError, IndexError):
        raise BadInput(f"{path}: give row numbers, one a line, or a column 'row'") from None


def _model(text: str) -> LinearModel | None:
    """Return the model in a file; None for the name of a job."""
    path = Path(text)
    return load_model(path) if path.suffix == ".json" or path.is_file() else None
