"""What a peer without manners does to a coordinator's port."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc

from colonnade.pki.authority import Credentials
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1.federation_pb2_grpc import FederationServiceStub
from colonnade.wire.limits import MAX_MESSAGE_BYTES

_CUT_OFF_S = 20.0  # a handshake has 5 s


class Target:
    """A coordinator's port, and a certificate that it lets in."""

    def __init__(self, host: str, port: int, credentials: Credentials, folder: Path) -> None:
        self.host, self.port, self._credentials, self._folder = host, port, credentials, folder

    def silent(self, count: int) -> int:
        """Connect and say nothing, without and with TLS; return how many stay connected."""
        plain = [socket.create_connection((self.host, self.port)) for _ in range(count)]
        context = self._tls()
        shaken = [self._shake(context) for _ in range(max(1, count // 10))]
        opened: Sequence[socket.socket] = [*plain, *(each for each in shaken if each is not None)]
        try:
            return _still_open(opened, _CUT_OFF_S)
        finally:
            for each in opened:
                each.close()

    def storm(self, count: int) -> int:
        """Open connections and hang up at once; return how many were opened."""
        context, made = self._tls(), 0
        for _ in range(count):
            if (connection := self._shake(context)) is not None:
                connection.close()
                made += 1
        return made

    def oversized(self, count: int) -> int:
        """Send messages beyond the limit; return how many were refused."""

        async def send() -> int:
            async with self._channel() as channel:
                stub = FederationServiceStub(channel)
                refused = 0
                for _ in range(count):
                    request = pb.EnrolRequest(signature=bytes(MAX_MESSAGE_BYTES + 1))
                    try:
                        await stub.Enrol(request, timeout=30.0)
                    except grpc.aio.AioRpcError as error:
                        refused += error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                return refused

        return asyncio.run(send())

    def resets(self, count: int) -> int:
        """Open streams and reset each at once, eight at a time; return how many were."""

        async def reset() -> int:
            async with self._channel() as channel:
                stub = FederationServiceStub(channel)
                done = 0
                while done < count:
                    calls = [stub.Attach() for _ in range(8)]
                    await asyncio.sleep(0)
                    for call in calls:
                        call.cancel()
                        done += 1
                    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
                        await asyncio.wait_for(calls[-1].code(), 5.0)
                return done

        return asyncio.run(reset())

    def _channel(self) -> grpc.aio.Channel:
        given = self._credentials
        trusted = grpc.ssl_channel_credentials(given.root_pem, given.key_pem, given.chain_pem)
        options = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0)]
        return grpc.aio.secure_channel(f"{self.host}:{self.port}", trusted, options=options)

    def _tls(self) -> ssl.SSLContext:
        given = self._credentials
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=given.root_pem.decode())
        chain, key = self._folder / "chain.pem", self._folder / "key.pem"
        chain.write_bytes(given.chain_pem)
        key.touch(mode=0o600)
        key.write_bytes(given.key_pem)
        context.load_cert_chain(chain, key)
        context.set_alpn_protocols(["h2"])
        return context

    def _shake(self, context: ssl.SSLContext) -> ssl.SSLSocket | None:
        connection = socket.create_connection((self.host, self.port), timeout=10.0)
        try:
            return context.wrap_socket(connection)
        except OSError:
            connection.close()
            return None


def _still_open(connections: Sequence[socket.socket], seconds: float) -> int:
    """Return how many the other end has not closed when the time is up."""
    until = time.monotonic() + seconds
    left = list(connections)
    for each in left:
        each.setblocking(False)
    while left and time.monotonic() < until:
        left = [each for each in left if not _closed(each)]
        time.sleep(0.05)
    return len(left)


def _closed(connection: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
        try:
            while connection.recv(4096):
                pass
        except (BlockingIOError, ssl.SSLWantReadError):
            raise
        except OSError:
            return True
        return True
    return False


Attack = Callable[[], int]
