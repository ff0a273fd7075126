"""``colonnade pki list``: what an authority has issued, until when, and what it revoked."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from colonnade.pki.register import WARN_DAYS, issued


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--authority", type=Path, required=True, help="the authority's folder")


def run(arguments: argparse.Namespace) -> int:
    """List the certificates."""
    now, found = datetime.now(UTC), issued(arguments.authority)
    if arguments.json:
        rows = [
            {
                "identity": each.identity,
                "fingerprint": each.fingerprint,
                "not_after": each.not_after.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "days_left": each.days_left(now),
                "revoked": each.revoked,
            }
            for each in found
        ]
        print(json.dumps({"issued": rows}))
        return 0
    for each in found:
        days = each.days_left(now)
        state = f"{days} days" if days >= 0 else "ended"
        if each.revoked:
            state = "revoked"
        elif 0 <= days <= WARN_DAYS:
            state += ": renew it"
        print(f"{each.identity:<50} {each.not_after:%Y-%m-%d}  {state}")
        print(f"  {each.fingerprint}")
    if not found:
        print("nothing was issued yet")
    return 0
