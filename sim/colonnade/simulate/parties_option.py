"""``--parties`` of a simulation: how many there are, or which columns each of them has."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from colonnade.cli.text import names_from
from colonnade.core.arguments import BadArgument
from colonnade.core.config import Strict, Text, load_toml
from colonnade.simulate.data.story import party_names
from colonnade.simulate.data_options import check_parties

MAX_PARTIES = 32
Columns = Annotated[list[Text], Meta(min_length=1)]


class PartiesFile(Strict, frozen=True):
    """The columns of each party, by its name."""

    parties: dict[str, Columns]


def add_parties_option(parser: argparse.ArgumentParser) -> None:
    """Add the option, which `parties_of` reads."""
    parser.add_argument(
        "--parties",
        action="extend",
        nargs="+",
        metavar="N|FILE|NAME=COLUMN,COLUMN",
        help="how many organizations (default 3); or, with --data, which columns each has: a TOML "
        'file whose [parties] says name = ["column", ...], or NAME=COLUMN,COLUMN for each of them',
    )


def parties_of(values: Sequence[str] | None) -> tuple[str, ...] | Mapping[str, Sequence[str]]:
    """Return the parties' names, with their columns if those were given."""
    if values is None:
        return party_names(3)
    first, *more = values
    if not more and first.lstrip("+-").isdigit():
        check_parties(int(first), most=MAX_PARTIES)
        return party_names(int(first))
    if not more and "=" not in first:
        found: Mapping[str, Sequence[str]] = load_toml(Path(first), PartiesFile).parties
    else:
        found = _named(values)
    check_parties(len(found), most=MAX_PARTIES)
    return found


def _named(values: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        name, given, columns = value.partition("=")
        if not given:
            raise BadArgument("parties", f"{value!r} is not of the form NAME=COLUMN,COLUMN")
        if name in found:
            raise BadArgument("parties", f"names {name} twice")
        found[name] = [each for each in names_from(columns) if each]
    return found
