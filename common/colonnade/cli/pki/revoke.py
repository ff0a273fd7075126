"""``colonnade pki revoke``: refuse a member's key from now on."""

import argparse
import json
from pathlib import Path

from colonnade.pki.register import revoke


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Note that a member's key is not to be trusted: the authority signs for it no more, and a "
        "coordinator that reads --denylist refuses it within a second."
    )
    parser.add_argument("member", help="its name, the URI in its certificate, or a fingerprint")
    parser.add_argument("--authority", type=Path, required=True, help="the authority's folder")
    parser.add_argument("--denylist", type=Path, help="the coordinator's file, to add the key to")
    parser.add_argument("--reason", required=True, help="why, for the record")


def run(arguments: argparse.Namespace) -> int:
    """Revoke the member's keys."""
    found = revoke(
        arguments.authority,
        arguments.member,
        reason=arguments.reason,
        denylist=arguments.denylist,
    )
    if arguments.json:
        rows = [{"identity": each.identity, "fingerprint": each.fingerprint} for each in found]
        print(json.dumps({"revoked": rows}))
        return 0
    for each in found:
        print(f"revoked {each.identity}\n  {each.fingerprint}")
    if arguments.denylist is None:
        print("it is not renewed; put the fingerprint on the coordinator's denylist to refuse it")
    return 0
