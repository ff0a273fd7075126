"""What the verbs of ``colonnade ledger`` share: which ledger, and receipts kept outside of it."""

import argparse
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.ledger.receipts import Receipt
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.wire.codec import receipt_from_bytes


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the ledger's folder and its mirror."""
    parser.add_argument("ledger", type=Path, help="ledger folder")
    add_mirror(parser)


def add_mirror(parser: argparse.ArgumentParser) -> None:
    """Add the mirror of the ledger's head."""
    parser.add_argument("--mirror", type=Path, help="head mirror, if kept outside the folder")


def files_of(arguments: argparse.Namespace) -> LedgerFiles:
    """Return the ledger that the options name."""
    return LedgerFiles(arguments.ledger, arguments.mirror)


def read_receipt(path: Path) -> Receipt:
    """Read a release's message that was kept outside the ledger."""
    try:
        return receipt_from_bytes(path.read_bytes())
    except OSError:
        raise BadInput(f"{path} cannot be read; give a file with a Release message") from None
