"""``colonnade ledger recover``: create a new ledger after damage or a restored backup."""

import argparse
import json
from pathlib import Path

from colonnade.cli.ledger.place import add_place, files_of, read_receipt
from colonnade.core.errors import BadInput
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import format_units, rho_from_units

_NAMES = {"": "default account", "*": "accounts not named"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Create a new ledger that adopts everything the damaged or rolled-back one, its mirror and "
        "the given receipts show to be spent, and a margin. Old jobs are not answered again. The "
        "old ledger can no longer be opened."
    )
    add_place(parser)
    parser.add_argument("--into", type=Path, required=True, help="folder of the new ledger")
    parser.add_argument("--into-mirror", type=Path, help="its head mirror, best on another disk")
    parser.add_argument(
        "--receipt", type=Path, action="append", default=[], help="a Release message kept elsewhere"
    )


def run(arguments: argparse.Namespace) -> int:
    """Recover the ledger."""
    receipts = [read_receipt(path) for path in arguments.receipt]
    into = LedgerFiles(arguments.into, arguments.into_mirror)
    try:
        adopted = recover_ledger(files_of(arguments), into, receipts=receipts)
    except OSError as error:
        raise BadInput(
            f"no ledger can be made in {arguments.into}: {error.strerror}; "
            "free some space or name another folder"
        ) from None
    again = files_of(arguments).people.exists() and not into.people.exists()
    if arguments.json:
        rho = {account: rho_from_units(units) for account, units in adopted.items()}
        found = {"ledger": str(arguments.into), "adopted_rho": rho, "join_again": again}
        print(json.dumps(found))
        return 0
    print(f"a new ledger is in {arguments.into}; it starts with this much spent:")
    for account, units in adopted.items():
        print(f"  {_NAMES.get(account, account):<20} {format_units(units)}")
    if again:  # the entry that says so is not readable
        print(
            "the old ledger had joined an account of its people: join it again with 'ledger join'"
        )
    print("the old ledger is stopped; 'ledger cap' can raise the new cap, signed")
    return 0
