"""``colonnade party console``: what waits, what left and what it cost, in a browser."""

import argparse
from pathlib import Path

from colonnade.cli.console import add_console_options, require_console, run_console
from colonnade.ledger.receipts import approver_key_from_file
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Serves a page on this machine with the jobs that wait for a decision, the budget, what "
        "left, the ledger and the policy. It reads the party's files and disturbs nothing. With "
        "an approver's key decisions can be signed there."
    )
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")
    parser.add_argument("--key", type=Path, help="the approver's private key (PEM)")
    add_console_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    require_console()
    from colonnade.console.party.app import OfficerConsole

    config = load_config(arguments.config)
    read_snapshot(config.ledger)  # what is wrong is told before a page is served
    approver = approver_key_from_file(arguments.key) if arguments.key else None
    return run_console(arguments, lambda door: OfficerConsole(config, door, approver).app)
