"""``colonnade party approve``: agree to a job that waits."""

import argparse

from colonnade.cli.party.decisions.decide import add_decision_options, decide
from colonnade.ledger.decisions import APPROVE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_decision_options(parser, reason=False)


def run(arguments: argparse.Namespace) -> int:
    """Decide."""
    return decide(arguments, APPROVE)
