"""``colonnade coordinator console``: watch a coordinator in a browser, and ask for jobs."""

import argparse

from colonnade.cli.console import add_console_options, require_console, run_console
from colonnade.cli.job.connection import add_client_options, open_client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Serves a page on this machine with the coordinator's parties, jobs as they run, errors, "
        "and a form for a new job. It does what `colonnade job` does, with the same credentials."
    )
    add_client_options(parser)
    add_console_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    require_console()
    from colonnade.console.coordinator.app import OperatorConsole

    with open_client(arguments) as client:
        client.coordinator()  # a wrong address or certificate is told before a page is served
        return run_console(arguments, lambda door: OperatorConsole(client, door).app)
