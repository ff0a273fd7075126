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
        "Shows the key of this party's ledger, its fingerprint, and those of all peers that the "
        "policy has pinned: for sealed jobs, secure sums and predictions. Two organizations that "
        "read the same fingerprints to each other know that nobody between them plays either."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's file (TOML)")


def run(arguments: argparse.Namespace) -> int:
    """Show own and pinned keys."""
    config = load_config(arguments.config)
    own = public_bytes(ledger_key_from_file(config.ledger.key))
    policy = load_policy(config.policy)
    sealed = [each.sealed.pins for each in policy.allowances if each.sealed is not None]
    cohorts = [each.cohort.pins for each in policy.allowances if each.cohort is not None]
    granted = [*sealed, *cohorts, *(each.pins for each in policy.predictions)]
    # Two grants may pin a name by different keys: both are to be compared.
    pins = list(dict.fromkeys(pin for each in granted for pin in each.items()))
    if arguments.json:
        peers = {name: _shown(key) for each in sealed for name, key in each.items()}
        pinned = [{"party": name, **_shown(key)} for name, key in pins]
        print(json.dumps({"own": _shown(own), "peers": peers, "pinned": pinned}))
        return 0
    print(f"this party: {key_to_text(own)}")
    print(f"  {fingerprint(own)}")
    for name, key in pins:
        print(f"{name}: {key_to_text(key)}")
        print(f"  {fingerprint(key)}")
    if not pins:
        print("no peer is pinned; see `colonnade party pin`")
    return 0


def _shown(key: bytes) -> dict[str, str]:
    return {"key": key_to_text(key), "fingerprint": fingerprint(key)}
