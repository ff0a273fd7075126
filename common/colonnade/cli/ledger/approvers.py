"""``colonnade ledger approvers``: show or change whose keys decide on jobs and caps."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.cli.ledger.place import add_place, files_of
from colonnade.core.errors import BadInput
from colonnade.ledger.create import open_ledger
from colonnade.ledger.receipts import approver_key_from_file, approver_public_key
from colonnade.ledger.storage.snapshot import read_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_place(parser)
    for name, text in (("add", "a further approver's key"), ("remove", "one who decides no more")):
        parser.add_argument(
            f"--{name}", type=Path, action="append", default=[], help=f"PEM file: {text}"
        )
    parser.add_argument("--reason", default="", help="why, for the record; needed for a change")
    parser.add_argument(
        "--approver-key",
        type=Path,
        action="append",
        default=[],
        help="key of one who decides until now; once for each, of as many as decisions need",
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the approvers, or change them by a signed entry."""
    if arguments.add or arguments.remove:
        _change(arguments)
    keys = read_snapshot(files_of(arguments)).state.docket.approvers
    if arguments.json:
        print(json.dumps({"approvers": list(keys)}))
        return 0
    for key in keys:
        print(key)
    if not keys:
        print("the ledger names no approver: no policy may ask, and its own key sets caps")
    return 0


def _change(arguments: argparse.Namespace) -> None:
    if not arguments.reason.strip():
        raise BadInput("--reason is missing; say why, for the record")
    added = [approver_public_key(path) for path in arguments.add]
    removed = [approver_public_key(path) for path in arguments.remove]
    approvers = [approver_key_from_file(path) for path in arguments.approver_key]
    with closing(open_ledger(files_of(arguments))) as ledger:
        before = [bytes.fromhex(key) for key in ledger.state.docket.approvers]
        if not {*removed} <= {*before}:
            raise BadInput("--remove: that key is no approver's of this ledger")
        keys = dict.fromkeys([*(key for key in before if key not in removed), *added])
        ledger.decisions.set_approvers(list(keys), reason=arguments.reason, approvers=approvers)
