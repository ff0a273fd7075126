"""Net as a process: it waits for its vault, answers it, and shows the party's monitoring."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.party.config import PartyConfig
from colonnade.party.isolation.measures import isolate_net
from colonnade.party.net.relay import Relay
from colonnade.party.net.shown import Shown
from colonnade.wire.monitoring import monitored

logger = logging.getLogger(__name__)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 5.0


def isolate(config: PartyConfig) -> None:
    """Keep of the party's files only the certificate's folder, and the socket's if there is one."""
    align = config.align
    named = [config.mirror] if align is None else [config.mirror, align.source, align.schema]
    private = [config.data, config.ledger_folder, config.policy, config.uplink_log.parent]
    private += [config.decisions, *(each for each in named if each is not None)]
    kept = [each for each in (config.credentials,) if each is not None]
    if config.socket is not None:
        kept.append(config.socket.parent)
    gained = isolate_net(kept, private)
    if config.isolation == "required":
        gained.require("files")


async def serve_link(
    config: PartyConfig, link: socket.socket, broken: BadInput | None = None
) -> None:
    """Answer the vault at the other end of ``link`` until it ends; tell it what is ``broken``."""

    async def serve(shown: Shown) -> None:
        shown.broken = broken or shown.broken
        await Relay(config, shown).serve(link)

    await _serving(config, serve)


async def serve_socket(config: PartyConfig, connected: Callable[[], None]) -> None:
    """Answer the vault that listens where the configuration says, again after it was away."""
    if config.socket is None:
        raise BadInput("the configuration names no socket; see `socket` in the template")
    path = config.socket

    async def serve(shown: Shown) -> None:
        wait = _FIRST_WAIT_S
        while True:
            if (link := _connect(path)) is None:
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)
                continue
            wait = _FIRST_WAIT_S
            connected()
            await Relay(config, shown).serve(link)
            shown.ready(False)
            logger.warning("vault_away socket=%s", path)

    await _serving(config, serve)


def _connect(path: Path) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(path))
    except OSError:
        link.close()
        return None
    return link


async def _serving(config: PartyConfig, work: Callable[[Shown], Awaitable[None]]) -> None:
    """Show the monitoring while ``work`` runs, until SIGTERM or SIGINT."""
    loop, shown = asyncio.get_running_loop(), Shown()
    async with contextlib.AsyncExitStack() as stack:
        try:
            served = monitored(config.monitoring, shown.read)
            monitor = await stack.enter_async_context(served)
            shown.ready = monitor.ready
        except BadInput as error:
            shown.broken = error
        working = asyncio.ensure_future(work(shown))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, working.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await working
