"""``colonnade party peers``: the fingerprints to compare before a key is pinned."""

import argparse
import json
from pathlib import Path

from colonnade.ledger.receipts import ledger_key_from_file, public_bytes
from colonnade.party.config import load_config
from colonnade.party.policy_file import load_policy
from colonnade.party.sealed.policy import fingerprint, key_to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Shows the key of this party's ledger, its fingerprint, and those of the peers that the "
        "policy has pinned for sealed jobs. Two organizations that read the same fingerprints to "
        "each other know that nobody between them plays either."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's file (TOML)")


def run(arguments: argparse.Namespace) -> int:
    """Show own and pinned keys."""
    config = load_config(arguments.config)
    own = public_bytes(ledger_key_from_file(config.ledger.key))
    pins = {
        name: key
        for each in load_policy(config.policy).allowances
        if each.sealed is not None
        for name, key in each.sealed.pins.items()
    }
    if arguments.json:
        peers = {name: _shown(key) for name, key in pins.items()}
        print(json.dumps({"own": _shown(own), "peers": peers}))
        return 0
    print(f"this party: {key_to_text(own)}")
    print(f"  {fingerprint(own)}")
    for name, key in pins.items():
        print(f"{name}: {key_to_text(key)}")
        print(f"  {fingerprint(key)}")
    if not pins:
        print("no peer is pinned; see `colonnade party pin`")
    return 0


def _shown(key: bytes) -> dict[str, str]:
    return {"key": key_to_text(key), "fingerprint": fingerprint(key)}
