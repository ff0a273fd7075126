"""``colonnade ledger cap``: set the cap, by a signed entry."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.cli.amounts import add_cap_options, cap_units
from colonnade.cli.ledger.place import add_place, files_of
from colonnade.core.errors import BadInput
from colonnade.ledger.create import open_ledger
from colonnade.ledger.receipts import approver_key_from_file
from colonnade.privacy.membership import MEMBERSHIP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_place(parser)
    add_cap_options(parser)
    parser.add_argument("--reason", required=True, help="why, for the record")
    parser.add_argument(
        "--account",
        default="",
        help="only this client, or 'membership' for alignments, 'hostile' for shields; default: "
        "the table's own, and all clients that have none",
    )
    parser.add_argument(
        "--approver-key", type=Path, help="second person's key, if the ledger has one"
    )


def run(arguments: argparse.Namespace) -> int:
    """Set the cap."""
    if arguments.account == MEMBERSHIP and arguments.epsilon is not None:
        raise BadInput(
            "alignments are priced in rho: one of epsilon E costs E*E/2, so two of epsilon 1 take "
            "--rho 1 in all, with what is spent"
        )
    units, stated = cap_units(arguments)
    if not arguments.reason.strip():
        raise BadInput("--reason is empty; say why, for the record")
    approver = arguments.approver_key and approver_key_from_file(arguments.approver_key)
    with closing(open_ledger(files_of(arguments))) as ledger:
        before = ledger.state.cap(arguments.account)
        reason = f"{stated}: {arguments.reason}"
        ledger.set_cap(units, reason=reason, account=arguments.account, approver=approver)
    if arguments.json:
        print(json.dumps({"cap_units": units, "before_units": before}))
    else:
        print(f"the cap is now {stated}; the change is signed and in the ledger")
    return 0
