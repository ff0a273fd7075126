"""``colonnade pki renew``: ask for a certificate anew; where the authority is at hand, get it."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.pki.output import describe, show
from colonnade.pki.authority import (
    CERTIFICATE,
    REQUEST,
    ROOT,
    approve_request,
    install_certificate,
    renewal_request,
)
from colonnade.pki.certificates import certificates_from_pem
from colonnade.pki.files import file_faults, read_bounded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Write a request with the key, name and hosts of the certificate that is there. With "
        "--authority, on the machine that has it, the certificate is issued and installed too."
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder of key and certificate")
    parser.add_argument("--authority", type=Path, help="the authority's folder, if it is here")
    parser.add_argument("--days", type=int, default=30, help="life of the certificate (default 30)")


def run(arguments: argparse.Namespace) -> int:
    """Renew the certificate, or ask for it."""
    folder, authority = arguments.folder, arguments.authority
    request = renewal_request(folder)
    if authority is None:
        facts = {"request": str(folder / REQUEST)}
        show(arguments, "send this file to the authority, then install what comes back", facts)
        return 0
    chain = approve_request(authority, request, now=datetime.now(UTC), days=arguments.days)
    with file_faults(authority):
        install_certificate(folder, chain, read_bounded(authority / ROOT))
    facts = describe(certificates_from_pem(chain, folder / CERTIFICATE)[0])
    del facts["kind"]
    show(arguments, "renewed, with the same key", facts)
    return 0
