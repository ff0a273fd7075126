"""The floor of a round: bare messages of given sizes over grpc.aio with mutual TLS, bare syncs.

A program of two roles, with the certificates and channel options of a federation. The server reads
one line a measurement from its standard input, exchanges rounds of messages with the clients that
have dialled, and prints the seconds; it ends with its input, and the clients end with it.

A round is one message to each client and one from each. Before it answers, a client makes as many
writes durable as a release does; the server makes one durable when all have answered.
"""

import argparse
import asyncio
import json
import os
import struct
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import grpc

from colonnade.pki.authority import load_credentials
from colonnade.wire.channels import open_channel
from colonnade.wire.limits import server_options

# A release commits its charge, then its body, then mirrors the ledger's head: see `ledger.ledger`.
SYNCS_PER_RELEASE = 3

_SERVICE, _METHOD = "colonnade.bench.Echo", "Exchange"
_BLOCK, _BLOCKS = 4096, 64
_SIZE = struct.Struct("<I")  # first in a task: how many bytes to answer with

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


@dataclass(frozen=True, slots=True)
class Order:
    """One measurement."""

    parties: int
    rounds: int
    task_bytes: int
    submission_bytes: int


class Syncs:
    """Durable writes at the least price: over blocks that the file has already."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._file, bytes(_BLOCK * _BLOCKS), 0)
        os.fsync(self._file)
        self._turn = 0

    def commit(self, size: int = _BLOCK) -> None:
        """Write ``size`` bytes, whole blocks of them, and force them to disk."""
        blocks = min(-(-size // _BLOCK), _BLOCKS)
        if self._turn + blocks > _BLOCKS:
            self._turn = 0
        os.pwrite(self._file, bytes(_BLOCK * blocks), _BLOCK * self._turn)
        os.fdatasync(self._file)
        self._turn += blocks

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


@dataclass(slots=True)
class Server:
    """Holds the clients' streams and exchanges messages with them."""

    syncs: Syncs
    _streams: list[Context] = field(default_factory=list)
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    def handler(self) -> grpc.GenericRpcHandler:
        """Return what to add to a server: messages pass as bytes."""
        exchange: Any = grpc.stream_stream_rpc_method_handler(self._exchange)
        return grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: exchange})

    async def _exchange(self, _: object, context: Context) -> None:
        await context.read()  # a client says that it is there
        self._streams.append(context)
        await self._done.wait()

    async def measure(self, order: Order) -> float:
        """Run the rounds of ``order`` and return their seconds."""
        while len(self._streams) < order.parties:
            await asyncio.sleep(0.01)
        streams = self._streams[: order.parties]
        head = _SIZE.pack(order.submission_bytes)
        task = head.ljust(order.task_bytes, b"\0")
        kept_bytes = order.parties * (order.task_bytes + order.submission_bytes)

        async def exchange(stream: Context) -> None:
            await stream.write(task)
            await stream.read()

        began = time.perf_counter()
        for _ in range(order.rounds):
            await asyncio.gather(*(exchange(stream) for stream in streams))
            self.syncs.commit(kept_bytes)
        return time.perf_counter() - began

    def end(self) -> None:
        """Let the clients go."""
        self._done.set()


async def serve(address: str, credentials: Path, scratch: Path) -> None:
    """Listen on ``address`` and measure what is ordered, until the input ends."""
    known, syncs = load_credentials(credentials), Syncs(scratch)
    server = grpc.aio.server(options=server_options(), compression=grpc.Compression.NoCompression)
    echo = Server(syncs)
    server.add_generic_rpc_handlers((echo.handler(),))
    tls = grpc.ssl_server_credentials(
        [(known.key_pem, known.chain_pem)],
        root_certificates=known.root_pem,
        require_client_auth=True,
    )
    server.add_secure_port(address, tls)
    await server.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        seconds = await echo.measure(Order(**json.loads(line)))
        sys.stdout.write(json.dumps({"seconds": seconds}) + "\n")
        sys.stdout.flush()
    echo.end()
    await server.stop(1.0)
    syncs.close()


async def dial(address: str, credentials: Path, scratch: Path) -> None:
    """Answer each message after as many durable writes as a release makes."""
    syncs = Syncs(scratch)
    async with open_channel(address, load_credentials(credentials)) as channel:
        call: Any = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")(wait_for_ready=True)
        await call.write(b"\0")
        while (task := await call.read()) is not grpc.aio.EOF:
            for _ in range(SYNCS_PER_RELEASE):
                syncs.commit()
            await call.write(bytes(_SIZE.unpack_from(task)[0]))
    syncs.close()


def order_line(order: Order) -> str:
    """Return the server's input for a measurement."""
    return json.dumps(asdict(order)) + "\n"


def main() -> None:
    """Run one role."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("serve", "dial"))
    parser.add_argument("address", help="host:port")
    parser.add_argument("credentials", type=Path, help="folder with key, certificate and root")
    parser.add_argument("scratch", type=Path, help="file for durable writes")
    given = parser.parse_args()
    role = serve if given.role == "serve" else dial
    asyncio.run(role(given.address, given.credentials, given.scratch))


if __name__ == "__main__":
    main()
