"""``colonnade party run``: dial the coordinator and answer the jobs that the policy allows."""

import argparse

from colonnade.cli.logs import add_process_options, run_process
from colonnade.cli.streams import announce
from colonnade.party.config import TEMPLATE, load_config
from colonnade.party.runtime import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_process_options(parser, "the party's")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop."""

    def attached() -> None:
        announce("attached")

    return run_process(arguments, TEMPLATE, load_config, lambda config: serve(config, attached))
