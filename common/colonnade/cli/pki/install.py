"""``colonnade pki install``: put an approved certificate beside its key."""

import argparse
from pathlib import Path

from colonnade.cli.pki.output import show
from colonnade.core.errors import BadIdentity
from colonnade.pki.authority import fingerprint, install_certificate, split_bundle
from colonnade.pki.files import file_faults, read_bounded
from colonnade.pki.identity import fingerprint_from_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = "Check that key, certificate and root belong together, then install them."
    parser.add_argument("bundle", metavar="CERT.pem", type=Path, help="what the authority sent")
    parser.add_argument("--folder", type=Path, required=True, help="the member's TLS folder")
    parser.add_argument("--fingerprint", help="refuse any root other than this one")


def run(arguments: argparse.Namespace) -> int:
    """Install the certificate."""
    with file_faults(arguments.bundle):
        chain, root = split_bundle(read_bounded(arguments.bundle), arguments.bundle)
    found = fingerprint(root)
    if arguments.fingerprint is not None and fingerprint_from_text(arguments.fingerprint) != found:
        raise BadIdentity(f"the root's fingerprint is {found}, not the one given")
    identity = install_certificate(arguments.folder, chain, root)
    facts = {
        "identity": identity.uri,
        "fingerprint": fingerprint(chain),
        "root_fingerprint": found,
        "folder": str(arguments.folder),
    }
    show(arguments, "installed; compare the root's fingerprint with the authority's", facts)
    return 0
