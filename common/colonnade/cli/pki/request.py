"""``colonnade pki request``: make a key and a request for a certificate."""

import argparse
from pathlib import Path

from colonnade.cli.pki.output import show
from colonnade.pki.authority import REQUEST, create_request, fingerprint
from colonnade.pki.identity import Identity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Make a key, which never leaves its folder, and a request to be approved. Again: to renew."
    )
    parser.add_argument("--folder", type=Path, required=True, help="the member's TLS folder")
    parser.add_argument("--role", required=True, choices=("coordinator", "party", "operator"))
    parser.add_argument("--federation", required=True, help="the federation's name")
    parser.add_argument("--name", required=True, help="the member's name in the federation")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        help="a coordinator's host name or address, as parties dial it; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the request."""
    identity = Identity(arguments.federation, arguments.role, arguments.name)
    pem = create_request(arguments.folder, identity, arguments.host)
    facts = {
        "identity": identity.uri,
        "fingerprint": fingerprint(pem),
        "request": str(arguments.folder / REQUEST),
    }
    show(arguments, "made a request; send this one file to the federation's authority", facts)
    return 0
