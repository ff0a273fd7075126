"""``colonnade coordinator``: run a federation's coordinator."""

import argparse

from colonnade.cli.logs import add_process_options, run_process
from colonnade.cli.streams import announce
from colonnade.server.config import TEMPLATE, load_config
from colonnade.server.runtime import serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Run a coordinator from its configuration file until it is told to stop."
    add_process_options(parser, "the coordinator's")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""

    def listening(address: str) -> None:
        announce(f"listening on {address}")

    return run_process(arguments, TEMPLATE, load_config, lambda config: serve(config, listening))
