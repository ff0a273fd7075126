"""``colonnade ledger export``: write all entries for an auditor."""

import argparse
import json
import sys
from pathlib import Path

from colonnade.cli.ledger.place import add_place, files_of
from colonnade.cli.whole_file import whole_file
from colonnade.core.errors import BadInput
from colonnade.ledger.bundle import export_of
from colonnade.ledger.receipts import ledger_key_from_file
from colonnade.ledger.storage.snapshot import read_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_place(parser)
    parser.add_argument("--out", type=Path, help="file to write; standard output by default")


def run(arguments: argparse.Namespace) -> int:
    """Write the entries."""
    files = files_of(arguments)
    found = read_snapshot(files)  # a running party is not disturbed
    text = "\n".join(export_of(found, ledger_key_from_file(files.key))) + "\n"
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    _write(arguments.out, text, arguments.ledger)
    entries = text.count("\n") - 1
    if arguments.json:
        print(json.dumps({"out": str(arguments.out), "entries": entries}))
    else:
        print(f"wrote {entries} entries to {arguments.out}")
    return 0


def _write(out: Path, text: str, ledger: Path) -> None:
    """Write the file whole or not at all, and never among the ledger's own files."""
    if out.resolve().is_relative_to(ledger.resolve()):
        raise BadInput(f"{out} lies in the ledger's folder; name another place")
    try:
        with whole_file(out) as file:
            file.write(text)
    except OSError as error:
        raise BadInput(f"{out} cannot be written: {error.strerror}; name another file") from None
