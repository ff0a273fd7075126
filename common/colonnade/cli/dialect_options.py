"""Options that say how a CSV file is written, for commands that read one without a schema."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.data.dialect import Dialect


def add_dialect_options(parser: argparse.ArgumentParser) -> None:
    """Add the options; they are those of a schema."""
    parser.add_argument("--delimiter", default=",", help="of CSV: between fields; default ','")
    parser.add_argument("--decimal", default=".", help="of CSV: before fractions; default '.'")
    parser.add_argument("--thousands", default="", help="of CSV: between digits; default none")
    parser.add_argument("--encoding", default="utf-8", help="of CSV: of its text; default UTF-8")


def dialect_of(arguments: argparse.Namespace) -> "Dialect":
    """Return how the file is written."""
    from colonnade.core.errors import BadInput
    from colonnade.data.dialect import Dialect

    delimiter = "\t" if arguments.delimiter == "\\t" else arguments.delimiter
    try:
        return Dialect(delimiter, arguments.decimal, arguments.thousands, arguments.encoding)
    except ValueError as error:
        raise BadInput(f"--{error}") from None
