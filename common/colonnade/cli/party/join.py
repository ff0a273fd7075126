"""``colonnade party join``: finish a party's folder with the certificate that came back."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from colonnade.cli.amounts import add_delta, cap_units
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.party.enrol import CONFIG, SCHEMA, Cap, certified_name, join_folder
from colonnade.privacy.membership import MembershipNoise

_MEMBERSHIP_DELTA = 1e-9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Installs the certificate in the folder that `party new` made and creates the ledger with "
        "its cap. The cap belongs to the people and is for good. Run it again to renew a "
        "certificate: the ledger stays."
    )
    parser.add_argument("bundle", metavar="CERT.pem", type=Path, help="what the operator sent")
    parser.add_argument(
        "--folder", type=Path, help="the party's folder; default: this one, or the party's name"
    )
    parser.add_argument("--fingerprint", help="refuse any root other than this one")
    cap = parser.add_mutually_exclusive_group()
    cap.add_argument("--epsilon", type=float, help="cap as epsilon, with --delta")
    cap.add_argument("--rho", type=float, help="cap as rho of zero-concentrated privacy")
    add_delta(parser)
    parser.add_argument(
        "--membership-epsilon",
        type=float,
        default=1.0,
        metavar="E",
        help="besides, for alignments: one of this epsilon, or smaller ones whose squares add up "
        "to it (default 1)",
    )
    parser.add_argument("--mirror", type=Path, help="the ledger's head mirror, on another disk")


def run(arguments: argparse.Namespace) -> int:
    """Finish the folder."""
    folder = arguments.folder
    if folder is None:
        here = Path(CONFIG).is_file()
        folder = Path() if here else Path(certified_name(arguments.bundle))
    joined = join_folder(
        folder,
        arguments.bundle,
        _cap(arguments),
        expected_root=arguments.fingerprint,
        mirror=arguments.mirror,
    )
    if arguments.json:
        print(json.dumps(asdict(joined), default=str))
        return EXIT_OK
    print(f"{folder}/ belongs to {joined.identity}")
    print(f"  root fingerprint {joined.root_fingerprint}; compare it with the operator's")
    if joined.ledger_made:
        _, stated = cap_units(arguments)
        membership = float(_membership(arguments).epsilon)
        print(f"  ledger made, cap {stated} for jobs, and one alignment of epsilon {membership:g}")
    if joined.bounds_to_decide:
        print(f"  {folder / SCHEMA} still has {joined.bounds_to_decide} bounds to be decided")
    print("next:")
    print(f"  colonnade preflight --party {joined.config}")
    print(f"  colonnade party run --config {joined.config}")
    return EXIT_OK


def _cap(arguments: argparse.Namespace) -> Cap | None:
    if arguments.epsilon is None and arguments.rho is None:
        return None
    units, stated = cap_units(arguments)
    return Cap(units, stated, _membership(arguments).cost)


def _membership(arguments: argparse.Namespace) -> MembershipNoise:
    try:
        return MembershipNoise.within(arguments.membership_epsilon, _MEMBERSHIP_DELTA)
    except ValueError as error:
        raise BadInput(f"--membership-epsilon: {error}") from None
