"""``colonnade party refuse``: refuse a job for good, also one that runs."""

import argparse

from colonnade.cli.party.decisions.decide import add_decision_options, decide
from colonnade.ledger.decisions import REFUSE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_decision_options(parser, reason=True)


def run(arguments: argparse.Namespace) -> int:
    """Decide."""
    return decide(arguments, REFUSE)
