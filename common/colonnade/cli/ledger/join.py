"""``colonnade ledger join``: one cap by person over the ledgers of several projects."""

import argparse
import json
import time
from pathlib import Path

from colonnade.cli.amounts import add_delta, delta_of, format_amount
from colonnade.cli.ledger.place import add_place, files_of
from colonnade.core.errors import BadInput
from colonnade.ledger.people.joining import join_account
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.snapshot import read_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Have this ledger charge the account of its people before itself, as the ledgers of other "
        "projects about the same people do: what all of them cost a person stays under the "
        "account's cap. The account is a ledger of its own, made with 'party init' and without a "
        "table. What this one has spent counts there at once. It is joined for good; again, the "
        "verb only notes where the account is now."
    )
    add_place(parser)
    parser.add_argument("--people", type=Path, required=True, help="folder of the account")
    parser.add_argument("--people-mirror", type=Path, help="its head mirror, if kept elsewhere")
    parser.add_argument("--reason", required=True, help="why, for the record")
    add_delta(parser, "for epsilon; ")


def run(arguments: argparse.Namespace) -> int:
    """Join, and show what a person has left."""
    delta = delta_of(arguments)
    if not arguments.reason.strip():
        raise BadInput("--reason is empty; say why, for the record")
    files, account = files_of(arguments), LedgerFiles(arguments.people, arguments.people_mirror)
    joined = join_account(files, account, reason=arguments.reason, clock=time.time)
    person = read_snapshot(files).person
    if arguments.json:
        print(json.dumps({"account": joined.account, "claimed_units": joined.units}))
        return 0
    print(f"joined the account {joined.account} of the same people, for good")
    print(f"  counted there  {format_amount(joined.units, delta)}")
    if person is not None:
        print(f"  a person's left  {format_amount(person.left, delta, left=True)}")
    return 0
