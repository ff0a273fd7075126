"""``colonnade party renew``: renew the party's certificate over its connection."""

import argparse
import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.party.config import load_config
from colonnade.party.net.renewal import renew
from colonnade.pki.authority import load_credentials
from colonnade.pki.register import WARN_DAYS, days_left


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Ask the coordinator for a new certificate of the same name and key, and install it; a "
        f"running party takes it up, and does the same by itself from {WARN_DAYS} days before the "
        "end on. The coordinator's configuration has to allow it."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")


def run(arguments: argparse.Namespace) -> int:
    """Renew the certificate if it soon ends."""
    config = load_config(arguments.config)
    if config.credentials is None:
        raise BadInput("the configuration names no credentials; there is nothing to renew")
    now, found = datetime.now(UTC), load_credentials(config.credentials)
    due = days_left(found.not_after, now) <= WARN_DAYS
    if due:
        found = asyncio.run(renew(config.credentials, config.addresses[0]))
    left = days_left(found.not_after, now)
    if arguments.json:
        print(json.dumps({"renewed": due, "days_left": left}))
    else:
        print(f"{'renewed' if due else 'not due yet'}: valid for {left} days")
    return 0
