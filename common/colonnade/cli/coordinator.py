"""``colonnade coordinator``: run a federation's coordinator."""

import argparse
from pathlib import Path

from colonnade.cli.logs import add_metrics


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "coordinator",
        help="run a coordinator",
        description="Run a coordinator from its configuration file until it is told to stop.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", type=Path, help="configuration file (TOML)")
    which.add_argument(
        "--template", action="store_true", help="print a commented configuration and exit"
    )
    add_metrics(parser)
    parser.add_argument("--json", action="store_true", help="log one JSON object a line")
    parser.set_defaults(handler=_run)


def _run(arguments: argparse.Namespace) -> int:
    from colonnade.cli.logs import run_process
    from colonnade.cli.streams import announce
    from colonnade.server.config import TEMPLATE, load_config
    from colonnade.server.runtime import serve

    def listening(address: str) -> None:
        announce(f"listening on {address}")

    return run_process(arguments, TEMPLATE, load_config, lambda config: serve(config, listening))
