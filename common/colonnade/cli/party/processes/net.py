"""``colonnade party net``: the half of a party that dials, and has no data."""

import argparse
import socket
from collections.abc import Coroutine
from typing import Any

from colonnade.cli.logs import add_process_options, run_process
from colonnade.cli.streams import announce
from colonnade.core.errors import BadInput
from colonnade.party.config import TEMPLATE, PartyConfig, load_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Dial the coordinator for a vault that runs by itself, at the socket that the "
        "configuration names. For two containers or services; 'party run' starts both halves."
    )
    add_process_options(parser, "the party's")
    # Of `party run`: the socket on which it asks for nets.
    parser.add_argument("--control-fd", type=int, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    if arguments.control_fd is not None:
        from colonnade.party.net.launcher import launch

        launch(socket.socket(fileno=arguments.control_fd), lambda link: _serve(arguments, link))
        return 0
    return _serve(arguments, None)


def _serve(arguments: argparse.Namespace, link: socket.socket | None) -> int:
    def serve(config: PartyConfig) -> Coroutine[Any, Any, None]:
        if link is None and config.socket is None:
            raise BadInput("the configuration names no socket; see `socket` in --template")
        from colonnade.party.net import process

        broken = None
        try:
            process.isolate(config)
        except BadInput as error:
            if link is None:
                raise
            broken = error  # for the vault, which ends with it
        if link is not None:
            return process.serve_link(config, link, broken)
        return process.serve_socket(config, lambda: announce("connected"))

    return run_process(arguments, TEMPLATE, load_config, serve)
