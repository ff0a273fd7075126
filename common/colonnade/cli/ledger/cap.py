"""``colonnade ledger cap``: set the cap, by a signed entry."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from colonnade.cli.amounts import add_cap_options, cap_units
from colonnade.cli.ledger.place import add_place, files_of
from colonnade.core.errors import BadInput
from colonnade.ledger.caps import MONTH, MONTHS, OPERATOR, PURPOSE, describe_place
from colonnade.ledger.create import open_ledger
from colonnade.ledger.receipts import approver_key_from_file
from colonnade.privacy.membership import MEMBERSHIP

_SCOPES = {
    OPERATOR: "the jobs of this operator (the name in the certificate)",
    PURPOSE: "jobs for this purpose",
    MONTH: "the jobs that are admitted in this month, such as 2026-11,",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_place(parser)
    add_cap_options(parser)
    parser.add_argument("--reason", required=True, help="why, for the record")
    of = parser.add_mutually_exclusive_group()
    of.add_argument(
        "--account",
        default="",
        help="only this client, or 'membership' for alignments, 'hostile' for shields; default: "
        "the table's own, and all clients that have none",
    )
    for scope, text in _SCOPES.items():
        of.add_argument(
            f"--{scope}", help=f"what {text} may cost, beside the table's cap; '*': each"
        )
    parser.add_argument(
        "--approver-key",
        type=Path,
        action="append",
        default=[],
        help="for a raise: an approver's key; once for each, of as many as decisions need",
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
    approvers = [approver_key_from_file(path) for path in arguments.approver_key]
    with closing(open_ledger(files_of(arguments))) as ledger:
        scope, name = _place(arguments)
        state = ledger.state
        before = state.scoped.cap((scope, name)) if scope else state.cap(name)
        reason = f"{stated}: {arguments.reason}"
        ledger.set_cap(units, reason=reason, scope=scope, account=name, approvers=approvers)
    of = f" of {describe_place((scope, name)) if name else f'each {scope}'}" if scope else ""
    if arguments.json:
        print(json.dumps({"cap_units": units, "before_units": before}))
    else:
        print(f"the cap{of} is now {stated}; the change is signed and in the ledger")
    return 0


def _place(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the scope of the cap, and whose it is there; nobody's in particular for all."""
    for scope in _SCOPES:
        if (name := getattr(arguments, scope)) is not None:
            if scope == MONTH and name != "*" and not MONTHS.fullmatch(name):
                raise BadInput("--month is a year and a month, such as 2026-11, or '*' for each")
            return scope, "" if name == "*" else name.strip()
    return "", arguments.account
