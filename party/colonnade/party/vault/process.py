"""The vault as a process: where net comes from, signals, and its end."""

import asyncio
import signal
import socket
from collections.abc import Callable

from colonnade.core.errors import ColonnadeError
from colonnade.ledger.create import open_ledger
from colonnade.party.config import PartyConfig
from colonnade.party.vault.link import Links
from colonnade.party.vault.party import Party


class StartedNet:
    """Nets that a helper starts, one for each byte that it is sent; it sends back their socket."""

    def __init__(self, control: socket.socket, *, asked: bool = False) -> None:
        self._control, self._asked = control, asked
        control.setblocking(False)

    async def next(self) -> socket.socket:
        """Have a net started."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        try:
            if not self._asked:
                await loop.sock_sendall(self._control, b"n")
            self._asked = False
            loop.add_reader(self._control, came.set)
            try:
                await came.wait()
                _, found, _, _ = socket.recv_fds(self._control, 1, 1)
            finally:
                loop.remove_reader(self._control)
        except OSError:
            found = []
        if not found:
            raise ColonnadeError("the process that starts net has ended; start the party again")
        return socket.socket(fileno=found[0])


class AwaitedNet:
    """Nets that come to a listening socket, one at a time."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        listening.setblocking(False)

    async def next(self) -> socket.socket:
        """Wait for the next."""
        connection, _ = await asyncio.get_running_loop().sock_accept(self._listening)
        return connection


async def serve(config: PartyConfig, links: Links, attached: Callable[[], None]) -> None:
    """Run a party's vault until SIGTERM or SIGINT; SIGHUP takes up policy and certificate anew."""
    ledger = open_ledger(config.ledger)
    try:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        party = Party(config, ledger, links=links)
        reloads = set[asyncio.Task[None]]()

        def reload() -> None:
            task = loop.create_task(party.reload())
            reloads.add(task)
            task.add_done_callback(reloads.discard)

        def said(is_attached: bool) -> None:
            if is_attached:
                attached()

        loop.add_signal_handler(signal.SIGHUP, reload)
        await party.run(stop, said)
    finally:
        with ledger.lock:  # a release that is being made ends first
            ledger.close()
