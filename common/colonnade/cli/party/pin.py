"""``colonnade party pin``: trust a peer's ledger key in sealed jobs."""

import argparse
import json
from pathlib import Path

from colonnade.party.config import load_config
from colonnade.party.sealed.pins import pin
from colonnade.party.sealed.policy import fingerprint, key_from_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Writes a peer's ledger key into the policy's grant of sealed jobs. Compare its "
        "fingerprint with that organization first, by telephone or in person: whoever holds the "
        "key is the peer. `colonnade party peers` shows what to read out."
    )
    parser.add_argument("name", help="the peer, as its certificate names it")
    parser.add_argument("key", help='its ledger key, "ed25519:" and 64 hexadecimal digits')
    parser.add_argument("--config", type=Path, required=True, help="the party's file (TOML)")


def run(arguments: argparse.Namespace) -> int:
    """Pin the key."""
    policy = load_config(arguments.config).policy
    pin(policy, arguments.name, arguments.key)
    shown = fingerprint(key_from_text(arguments.key))
    if arguments.json:
        print(json.dumps({"party": arguments.name, "fingerprint": shown, "policy": str(policy)}))
        return 0
    print(f"pinned {arguments.name} in {policy}; its fingerprint is")
    print(f"  {shown}")
    return 0
