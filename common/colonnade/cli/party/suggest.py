"""``colonnade party suggest``: draft a schema from a file, for a person to complete."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from colonnade.cli.options.dialect import add_dialect_options, dialect_of
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.party.data.reading.suggest import check_new, guess_dialect, suggest
from colonnade.party.enrol import open_bounds

DESCRIPTION = (
    "Drafts a schema from the header and the types of a CSV or Parquet file. A schema is public, so"
    " the draft has no bounds: each is a '?' that ingest refuses until a person has replaced it by"
    " what is known without the rows. Types and levels are taken from rows and marked as to be"
    " reviewed; levels that fewer than 10 rows have are left out. Nothing is sent."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = DESCRIPTION
    parser.add_argument("source", type=Path, help="CSV (plain or gzip) or Parquet")
    parser.add_argument("--out", type=Path, help="file to write; default: standard output")
    parser.add_argument("--id", metavar="COLUMN", help="the column that names the person")
    parser.add_argument("--label", metavar="COLUMN", help="the label, where it is held")
    add_dialect_options(parser, guessed=True)


def run(arguments: argparse.Namespace) -> int:
    """Write the draft."""
    if arguments.out is not None:
        check_new(arguments.out)
    given = arguments.delimiter, arguments.decimal, arguments.thousands, arguments.encoding
    dialect = dialect_of(arguments) if any(given) else guess_dialect(arguments.source)
    if arguments.duplicates is not None:
        dialect = replace(dialect, duplicates=dialect_of(arguments).duplicates)
    ids = () if arguments.id is None else (arguments.id,)
    draft = suggest(arguments.source, dialect=dialect, ids=ids, label=arguments.label).text
    n_open = open_bounds(draft)
    if arguments.out is not None:
        try:
            arguments.out.write_text(draft, "utf-8")
        except OSError as error:
            raise BadInput(f"{arguments.out}: cannot write the draft: {error.strerror}") from None
    if arguments.json:
        out = None if arguments.out is None else str(arguments.out)
        print(json.dumps({"out": out, "bounds_to_decide": n_open, "draft": draft}))
    elif arguments.out is None:
        print(draft, end="")
    else:
        print(f"{arguments.out}: a draft with {n_open} bounds to be decided; then: party ingest")
    return EXIT_OK
