"""``colonnade party policy``: check the policy and say what it allows."""

import argparse
import json

from colonnade.cli.logs import add_config_options
from colonnade.party.config import load_config
from colonnade.party.policy import TEMPLATE, load_policy
from colonnade.privacy.accounting import rho_from_units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_config_options(parser, "the party's")


def run(arguments: argparse.Namespace) -> int:
    """Show what the policy allows, or print a commented one."""
    if arguments.template:
        print(TEMPLATE, end="")
        return 0
    policy = load_policy(load_config(arguments.config).policy)
    if arguments.json:
        rows = [
            {
                "coordinator": each.coordinator.uri,
                "kinds": each.kinds,
                "features": each.features,
                "label": each.label,
                "max_rho": rho_from_units(each.max_units),
                "max_rounds": each.max_rounds,
                "until": None if each.until is None else str(each.until),
            }
            for each in policy.allowances
        ]
        print(json.dumps({"allow": rows}))
        return 0
    if not policy.allowances:
        print("the policy allows nothing: every job is refused")
    for each in policy.allowances:
        until = f", until {each.until}" if each.until else ""
        print(f"{each.coordinator.uri} may ask for {', '.join(each.kinds)}{until}")
        print(f"  features    {', '.join(each.features)}; label: {'yes' if each.label else 'no'}")
        rho = rho_from_units(each.max_units)
        print(f"  for one job rho up to {rho:.6g}, up to {each.max_rounds} rounds")
    return 0
