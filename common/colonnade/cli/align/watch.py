"""``colonnade align watch``: follow an alignment until it ends."""

import argparse

from colonnade.cli.job.connection import add_client_options, follow, open_client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)


def run(arguments: argparse.Namespace) -> int:
    """Follow the alignment."""
    with open_client(arguments) as client:
        return follow(client, arguments.job, as_json=arguments.json)
