"""``colonnade party run``: dial the coordinator and answer the jobs that the policy allows.

Two processes: this one becomes the vault, and starts a helper that starts net.
"""

import argparse
import socket
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from colonnade.cli.logs import add_process_options, run_process
from colonnade.cli.party.processes.vault import isolated, say_attached
from colonnade.party.config import TEMPLATE, PartyConfig, load_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_process_options(parser, "the party's")
    # Of a simulation: the socket of what starts nets, if it is there already.
    parser.add_argument("--control-fd", type=int, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""

    def serve(config: PartyConfig) -> Coroutine[Any, Any, None]:
        if arguments.control_fd is None:
            control = start_net(arguments.config, metrics=arguments.metrics, as_json=arguments.json)
        else:
            control = socket.socket(fileno=arguments.control_fd)
        control.send(b"n")  # the first net gets ready while the vault does
        isolated(config)  # before there are threads, which importing the rest may start
        from colonnade.party.vault.process import StartedNet
        from colonnade.party.vault.process import serve as serve_vault

        return serve_vault(config, StartedNet(control, asked=True), say_attached)

    return run_process(arguments, TEMPLATE, load_config, serve)


def start_net(config: Path, *, metrics: str | None, as_json: bool) -> socket.socket:
    """Start what starts net; it waits until it is asked, and ends with this process."""
    ours, theirs = socket.socketpair()
    number = str(theirs.fileno())
    # Not from the folder that it is started in (-P): nothing there is part of the program.
    command = [sys.executable, "-P", "-m", "colonnade.cli.main", "party", "net"]
    command += ["--config", str(config), "--control-fd", number]
    command += [] if metrics is None else ["--metrics", metrics]
    command += ["--json"] if as_json else []
    # In a session of its own: what a terminal sends reaches this process, which ends it.
    subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()
    return ours
