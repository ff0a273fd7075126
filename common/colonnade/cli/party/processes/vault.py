"""``colonnade party vault``: the half of a party that has data and ledger, and no network."""

import argparse
import gc
from collections.abc import Coroutine
from typing import Any

from colonnade.cli.logs import add_process_options, run_process
from colonnade.cli.streams import announce
from colonnade.core.errors import BadInput
from colonnade.party.config import TEMPLATE, PartyConfig, load_config
from colonnade.party.isolation.measures import isolate_vault
from colonnade.party.listening import listen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Serve net, which connects to the socket that the configuration names. For two containers "
        "or services; 'party run' starts both halves."
    )
    add_process_options(parser, "the party's")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""

    def serve(config: PartyConfig) -> Coroutine[Any, Any, None]:
        if config.socket is None:
            raise BadInput("the configuration names no socket; see `socket` in --template")
        listening = listen(config.socket, int(config.socket_mode, 8))
        isolated(config)
        from colonnade.party.vault.process import AwaitedNet
        from colonnade.party.vault.process import serve as serve_vault

        return serve_vault(config, AwaitedNet(listening), say_attached)

    return run_process(arguments, TEMPLATE, load_config, serve)


def isolated(config: PartyConfig) -> None:
    """Give up what the machine lets this process give up, or refuse to go on."""
    # Workers on other machines are reached over a network: their engine costs this isolation.
    gained = isolate_vault(network="" if config.engine == "local" else f"engine_{config.engine}")
    if config.isolation == "required":
        gained.require("namespace", "filter")
    gc.freeze()


def say_attached() -> None:
    """Say that a session is open."""
    announce("attached")
