"""``colonnade coordinator new``: make a federation, and approve those who have asked already."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.job.connection import ADDRESS
from colonnade.core.errors import EXIT_OK, BadIdentity, BadInput
from colonnade.pki.authority import (
    ROOT,
    approve_request,
    create_authority,
    create_request,
    fingerprint,
    install_certificate,
)
from colonnade.pki.certificates import request_from_pem
from colonnade.pki.files import file_faults, read_bounded, write_whole
from colonnade.pki.identity import COORDINATOR, Identity
from colonnade.server.config import TEMPLATE
from colonnade.wire.limits import split_address

CONFIG, AUTHORITY, OPERATOR, APPROVED = "coordinator.toml", "authority", "operator", "approved"
_LISTEN = "0.0.0.0:7443"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Makes a federation in one folder: its authority, the coordinator's certificate and "
        "configuration, an operator's credentials, and the certificates of the parties whose "
        "requests are given. Later ones: colonnade pki approve."
    )
    parser.add_argument("federation", help="the federation's name")
    parser.add_argument(
        "--host",
        action="append",
        required=True,
        help="the coordinator's host name or address, as parties dial it; may be repeated",
    )
    parser.add_argument("--listen", default=_LISTEN, metavar="HOST:PORT", help=f"default {_LISTEN}")
    parser.add_argument(
        "--approve",
        nargs="+",
        type=Path,
        default=[],
        metavar="REQUEST.csr",
        help="requests of parties; compare the printed fingerprints before sending anything back",
    )
    parser.add_argument("--hub", default="hub", help="the coordinator's name (default hub)")
    parser.add_argument(
        "--folder", type=Path, help="folder to make; default: the federation's name"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the federation."""
    federation, now = arguments.federation, datetime.now(UTC)
    folder: Path = arguments.folder or Path(federation)
    hub = Identity(federation, COORDINATOR, arguments.hub)
    operator = Identity(federation, "operator", OPERATOR)
    _, port = split_address(arguments.listen)
    requests = [_request(path, federation) for path in arguments.approve]
    with file_faults(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadInput(f"{folder}: is not empty; name a new folder with --folder")
    authority = folder / AUTHORITY
    root = create_authority(authority, federation, now=now)
    for identity, home, hosts in (
        (hub, folder / "pki", arguments.host),
        (operator, folder / OPERATOR, ()),
    ):
        request = create_request(home, identity, hosts)
        install_certificate(home, approve_request(authority, request, now=now), root)
    address = f"{arguments.host[0]}:{port}"
    approved: list[dict[str, str]] = []
    with file_faults(folder):
        (folder / OPERATOR / ADDRESS).write_text(f"{address}\n", "utf-8")
        (folder / CONFIG).write_text(TEMPLATE.replace(_LISTEN, arguments.listen), "utf-8")
        (folder / APPROVED).mkdir(exist_ok=True)
        for identity, pem in requests:
            path = folder / APPROVED / f"{identity.name}.pem"
            chain = approve_request(authority, pem, now=now)
            write_whole(path, chain + read_bounded(authority / ROOT))
            approved.append(
                {"party": identity.name, "fingerprint": fingerprint(pem), "certificate": str(path)}
            )
    if arguments.json:
        facts = {
            "federation": federation,
            "folder": str(folder),
            "root_fingerprint": fingerprint(root),
            "coordinator": address,
            "approved": approved,
        }
        print(json.dumps(facts))
        return EXIT_OK
    print(f"made {folder}/ for the federation {federation}; parties dial {address}")
    print(f"  root fingerprint {fingerprint(root)}: tell it to everybody by telephone")
    print(f"  {authority}/ decides who is in; keep {authority / 'root-key.pem'} offline")
    for each in approved:
        print(f"  approved {each['party']}, key {each['fingerprint']}")
    if approved:
        print("Compare each key with its owner by telephone, then send back what is in")
        print(f"  {folder / APPROVED}/")
    print("next:")
    print(f"  colonnade coordinator --config {folder / CONFIG}")
    print(f"  colonnade align submit --credentials {folder / OPERATOR} --watch")
    return EXIT_OK


def _request(path: Path, federation: str) -> tuple[Identity, bytes]:
    """Read a party's request; refuse others before anything is made."""
    with file_faults(path):
        pem = read_bounded(path)
    identity = request_from_pem(pem).identity
    if identity.role != "party" or identity.federation != federation:
        raise BadIdentity(f"{path}: {identity.uri} is no party of {federation}")
    return identity, pem
