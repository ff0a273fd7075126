"""``colonnade job parties``: list parties and what they offer."""

import argparse
import json
from datetime import UTC, datetime

from colonnade.cli.job.connection import add_client_options, open_client
from colonnade.privacy.accounting import format_units, rho_from_units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the parties."""
    with open_client(arguments) as client:
        offers = client.parties()
    if arguments.json:
        rows = [
            {
                "party": offer.party,
                "attached": offer.attached,
                "dataset": offer.dataset,
                "n_rows": offer.population,
                "features": {name: [b.low, b.high] for name, b in offer.features.items()},
                "label": None if offer.label is None else offer.label[0],
                "left_rho": rho_from_units(offer.left_units),
                "told_at": offer.told_at,
            }
            for offer in offers
        ]
        print(json.dumps({"parties": rows}))
        return 0
    for offer in offers:
        state = "attached" if offer.attached else "away"
        label = f"label {offer.label[0]}" if offer.label else "no label"
        told = datetime.fromtimestamp(offer.told_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        print(
            f"{offer.party:<16} {state:<9} {offer.population} {offer.unit.value}s, {label}, "
            f"{format_units(offer.left_units, left=True)} left (told {told})"
        )
        for name, bounds in offer.features.items():
            print(f"  {name:<30} {bounds.low:.6g} .. {bounds.high:.6g}")
    return 0
