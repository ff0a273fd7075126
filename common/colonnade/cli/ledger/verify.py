"""``colonnade ledger verify``: check a ledger folder, or an export, from end to end."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.cli.amounts import add_delta, delta_of
from colonnade.cli.ledger.place import add_mirror, read_receipt
from colonnade.cli.ledger.summary import as_json, print_summary
from colonnade.core.errors import BadInput, VerificationFailed
from colonnade.ledger.create import open_ledger
from colonnade.ledger.export import Verified, summarise, verify_lines
from colonnade.ledger.receipts import Receipt
from colonnade.ledger.storage.files import LedgerFiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "path", type=Path, help="ledger folder, or a file of 'export' or 'evidence'"
    )
    add_mirror(parser)
    add_delta(parser, "for epsilon; ")
    parser.add_argument("--public-key", help="the key that the ledger must be signed with")
    parser.add_argument("--receipt", type=Path, help="a kept Release that it must contain")


def run(arguments: argparse.Namespace) -> int:
    """Verify the ledger or the export."""
    delta, path = delta_of(arguments), arguments.path
    receipt = read_receipt(arguments.receipt) if arguments.receipt else None
    if path.is_dir():
        with closing(open_ledger(LedgerFiles(path, arguments.mirror))) as ledger:
            summary = summarise(ledger.state)
            if receipt is not None:
                ledger.check_evidence(receipt)
        what = "ledger: files, chain, mirror, prices, totals and stored releases agree"
    else:
        found = _export(path, receipt)
        summary, attached = summarise(found.state), found.attached
        what = "export: chain, prices, totals, caps, decisions and signature agree"
        if attached.lines:
            what = (
                f"evidence: chain, prices, totals, caps, decisions, {len(attached.specs)} "
                f"specifications, {len(attached.policies)} policies, {len(attached.receipts)} "
                "receipts and signature agree"
            )
    if arguments.public_key and summary.public_key != arguments.public_key.lower():
        raise VerificationFailed(
            "it is signed by another key than the one given; it is another ledger's"
        )
    if arguments.json:
        print(json.dumps({"verified": True, **as_json(summary, delta)}))
    else:
        print(f"verified {what}")
        print_summary(summary, delta)
    return 0


def _export(path: Path, receipt: Receipt | None) -> Verified:
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path} is neither a ledger folder nor an export") from None
    return verify_lines(text.splitlines(), receipt=receipt)
