"""``colonnade pki init``: make the authority of a federation."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from colonnade.cli.pki.output import show
from colonnade.pki.authority import ROOT_KEY, create_authority, fingerprint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = "Make an offline root and the two intermediates that approve requests."
    parser.add_argument("--folder", type=Path, required=True, help="folder to make")
    parser.add_argument("--federation", required=True, help="the federation's name")


def run(arguments: argparse.Namespace) -> int:
    """Make the authority."""
    root = create_authority(arguments.folder, arguments.federation, now=datetime.now(UTC))
    facts = {"federation": arguments.federation, "root_fingerprint": fingerprint(root)}
    show(arguments, f"made the authority of {arguments.federation} in {arguments.folder}", facts)
    if not arguments.json:
        print(f"next: move {arguments.folder / ROOT_KEY} to a place without a network")
    return 0
