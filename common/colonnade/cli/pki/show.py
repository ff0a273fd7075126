"""``colonnade pki show``: show what a certificate, bundle or request says."""

import argparse
import json
from pathlib import Path

from colonnade.cli.pki.output import describe, show
from colonnade.core.errors import BadIdentity, BadInput
from colonnade.pki.certificates import certificates_from_pem
from colonnade.pki.files import file_faults, read_bounded
from colonnade.pki.identity import Named, parsed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("file", metavar="FILE", type=Path)


def run(arguments: argparse.Namespace) -> int:
    """Show the file."""
    with file_faults(arguments.file):
        content = read_bounded(arguments.file)
    holders: list[Named]
    try:
        if b"-----BEGIN" in content and b"CERTIFICATE REQUEST-----" not in content:
            holders = [*certificates_from_pem(content, arguments.file)]
        else:
            holders = [parsed(content)]
    except BadIdentity:
        raise BadInput(f"{arguments.file} holds no certificate or request") from None
    shown = [describe(holder) for holder in holders]
    if arguments.json:
        print(json.dumps({"shown": shown}))
        return 0
    for each in shown:
        show(arguments, each.pop("kind"), each)
    return 0
