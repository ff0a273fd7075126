"""A TCP proxy that cuts, stalls and counts: what stands between a party and its coordinator."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class Fault:
    """What happens to one connection; both directions count their own bytes."""

    cut_up: int | None = None  # reset both sides after so many bytes from the client
    cut_down: int | None = None  # or from the server
    stall_up: int | None = None  # pass no more after so many, and keep the connection
    stall_down: int | None = None
    delay_s: float = 0.0  # before each piece, in both directions


@dataclass(slots=True)
class Link:
    """One connection through the proxy."""

    fault: Fault
    up: int = 0
    down: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def kernel_up(self) -> int:
        """Return how many bytes the kernel says it received from the client."""
        socket_ = self.writers[0].get_extra_info("socket")
        info = socket_.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        received: int = struct.unpack_from("=Q", info, 128)[0]  # tcpi_bytes_received
        return received

    def stall(self) -> None:
        """Pass nothing on from now on, and keep the connection."""
        self.fault = Fault(stall_up=self.up, stall_down=self.down)

    def cut(self) -> None:
        """Reset both sides."""
        for writer in self.writers:
            if writer.transport is not None:
                writer.transport.abort()


@dataclass(slots=True)
class Proxy:
    """Passes connections on to ``port``, each with the next of the planned faults."""

    port: int
    faults: Iterator[Fault]
    address: str = ""
    links: list[Link] = field(default_factory=list)

    def cut_all(self) -> None:
        """Reset every open connection."""
        for link in self.links:
            link.cut()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(next(self.faults, Fault()))
        self.links.append(link)
        link.writers.append(writer)
        try:
            onward = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            link.cut()
            return
        link.writers.append(onward[1])
        try:
            await asyncio.gather(
                self._pass(link, reader, onward[1], "up"),
                self._pass(link, onward[0], writer, "down"),
            )
        finally:
            link.cut()

    async def _pass(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str
    ) -> None:
        with suppress(OSError):
            while True:
                cut: int | None = getattr(link.fault, f"cut_{way}")
                stall: int | None = getattr(link.fault, f"stall_{way}")
                if cut is not None and getattr(link, way) >= cut:
                    link.cut()
                    return
                room = 65536
                for limit in (cut, stall):
                    room = room if limit is None else min(room, limit - getattr(link, way))
                if room <= 0:  # stalled: read on, so that the sender notices nothing
                    if not await reader.read(65536):
                        return
                    continue
                if not (piece := await reader.read(room)):
                    break
                if getattr(link.fault, f"stall_{way}") == getattr(link, way):
                    continue  # stalled while it waited for this piece
                if link.fault.delay_s:
                    await asyncio.sleep(link.fault.delay_s)
                setattr(link, way, getattr(link, way) + len(piece))
                writer.write(piece)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()


@asynccontextmanager
async def proxied(port: int, faults: Iterable[Fault] = ()) -> AsyncIterator[Proxy]:
    """Run a proxy in front of ``port`` of this machine."""
    proxy = Proxy(port, iter(faults))
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut_all()
        open_ones = list(tasks)
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)
