"""Options that say how a CSV file is written, for commands that read one without a schema."""

import argparse

from colonnade.core.errors import BadInput
from colonnade.data.dialect import Dialect

_HELP = {
    "delimiter": ("between fields", "','"),
    "decimal": ("before fractions", "'.'"),
    "thousands": ("between digits", "none"),
    "encoding": ("of its text", "UTF-8"),
    "duplicates": ("a name twice in its header: refuse, or number as x, x (2)", "refuse"),
}


def add_dialect_options(parser: argparse.ArgumentParser, *, guessed: bool = False) -> None:
    """Add the options; they are those of a schema. With none, the command guesses if it may."""
    for name, (what, default) in _HELP.items():
        shown = "guessed if none is given" if guessed else default
        parser.add_argument(f"--{name}", help=f"of CSV: {what}; default {shown}")


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """Return how the file is written."""
    given = {name: value for name in _HELP if (value := getattr(arguments, name)) is not None}
    if given.get("delimiter") == "\\t":
        given["delimiter"] = "\t"
    try:
        return Dialect(**given)
    except ValueError as error:
        raise BadInput(f"--{error}") from None
