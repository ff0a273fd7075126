"""``colonnade party rows``: the row numbers of people, for a prediction."""

import argparse
import json
from pathlib import Path

from colonnade.cli.options.dialect import add_dialect_options, dialect_of
from colonnade.cli.whole_file import whole_file
from colonnade.core.errors import BadInput
from colonnade.core.text import counted
from colonnade.data.table import COARSE_NAME, Table
from colonnade.party.config import load_config
from colonnade.party.prediction.people import outcome_of
from colonnade.party.prediction.people_file import rows_of_people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Writes the row numbers that an alignment gave to the people in a file, one a line, for "
        "`colonnade job predict --rows`. Only this party can tell who a row is; numbers are "
        "pseudonyms that coordinator and parties share."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's file (TOML)")
    parser.add_argument(
        "--people", type=Path, required=True, help="CSV or Parquet with the alignment's id columns"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    add_dialect_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the rows."""
    data = load_config(arguments.config).data
    name = Table.open(data / COARSE_NAME).header.alignment
    if (outcome := outcome_of(data, name)) is None:
        raise BadInput(
            f"{data}: the table follows no alignment that this party kept; rows are then the "
            "places in the roster, from 0"
        )
    rows, without = rows_of_people(outcome, arguments.people, dialect=dialect_of(arguments))
    if not rows:
        raise BadInput(f"{arguments.people}: nobody in it has a row; compare the id columns")
    with whole_file(arguments.out) as file:
        file.write("row\n")
        file.writelines(f"{row}\n" for row in rows)
    if arguments.json:
        print(json.dumps({"rows": len(rows), "without_row": without, "out": str(arguments.out)}))
    else:
        told = counted(without, "person has none", "people have none")
        print(f"{arguments.out}: {counted(len(rows), 'row')}; {told} in the alignment")
    return 0
