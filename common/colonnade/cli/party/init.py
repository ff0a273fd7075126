"""``colonnade party init``: create the ledger that all of a party's releases are paid from."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.cli.amounts import add_cap_options, cap_units
from colonnade.core.errors import BadInput
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.receipts import approver_public_key
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.pki.identity import check_part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Create a ledger: the account of everything this party will ever release about its people. "
        "The cap belongs to the people, not to a file: keep one ledger for them."
    )
    parser.add_argument("--ledger", type=Path, required=True, help="folder to make")
    parser.add_argument("--name", required=True, help="the party's name")
    parser.add_argument("--mirror", type=Path, help="head mirror, best on another disk")
    parser.add_argument(
        "--approver",
        type=Path,
        action="append",
        default=[],
        help="PEM file: whose key decides on jobs that wait and signs every raise of a cap; once "
        "for each person",
    )
    add_cap_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Create the ledger."""
    check_part("name", arguments.name)  # as the certificate will have it
    units, stated = cap_units(arguments)
    approvers = tuple(dict.fromkeys(approver_public_key(path) for path in arguments.approver))
    files = LedgerFiles(arguments.ledger, arguments.mirror)
    config = LedgerConfig(arguments.name, {"": units}, reason=stated, approver_keys=approvers)
    try:
        create_ledger(files, config)
    except OSError as error:
        raise BadInput(
            f"no ledger can be made in {arguments.ledger}: {error.strerror}; "
            "free some space or name another folder"
        ) from None
    with closing(open_ledger(files)) as ledger:
        name, key = ledger.opened.ledger_id, ledger.opened.public_key
    if arguments.json:
        print(json.dumps({"ledger_id": name, "public_key": key, "cap_units": units}))
    else:
        print(f"made ledger {name} for {arguments.name} in {arguments.ledger}")
        print(f"  cap         {stated}")
        print(f"  public key  {key}")
    return 0
