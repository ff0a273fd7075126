"""Calls to a coordinator over gRPC, with the party's certificate.

What a session says passes through as bytes: net parses none of it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import grpc

from colonnade.core.errors import Unreachable
from colonnade.pki.authority import Credentials
from colonnade.pki.identity import Identity
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1.federation_pb2_grpc import FederationServiceStub
from colonnade.wire.channels import claim, open_channel
from colonnade.wire.status import error_from_call

_CALL_S = 20.0
_END_S = 2.0
_SERVICE = "/colonnade.v1.FederationService"


class CoordinatorChannel:
    """A channel to the coordinator, and the stream of one session."""

    def __init__(self, address: str, identity: Identity, credentials: Credentials | None) -> None:
        self._address = address
        self._channel = open_channel(address, credentials)
        # Who calls, where there is no certificate to say so.
        self._metadata: Any = claim(identity) if credentials is None else None
        self._stream: Any = None
        self._busy, self._idle = 0, asyncio.Event()
        self._idle.set()

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Note that a call is under way, and raise what the coordinator raised in it."""
        self._busy += 1
        self._idle.clear()
        try:
            yield
        except grpc.RpcError as error:
            raise error_from_call(error, self._address) from None
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()

    async def enrol(self, request: bytes) -> bytes:
        """Enrol the ledger's key."""
        call: Any = self._channel.unary_unary(f"{_SERVICE}/Enrol")
        with self._call():
            answer: bytes = await call(request, timeout=_CALL_S, metadata=self._metadata)
        return answer

    def attach(self) -> None:
        """Open the session's stream; it stays as long as it can."""
        if self._stream is not None:
            self._stream.cancel()
        open_stream: Any = self._channel.stream_stream(f"{_SERVICE}/Attach")
        self._stream = open_stream(metadata=self._metadata)

    async def read(self) -> bytes | None:
        """Return the next message, or None after the last."""
        stream = self._stream
        if stream is None:
            raise Unreachable("no session is open")
        try:
            with self._call():
                message = await stream.read()
                if message is not grpc.aio.EOF:
                    return bytes(message)
                if await stream.code() is not grpc.StatusCode.OK:
                    await stream.read()  # raises what ended the stream
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise Unreachable("the session was ended") from None  # the stream was hung up
        return None

    async def write(self, message: bytes) -> None:
        """Send a message."""
        if self._stream is None:
            raise Unreachable("no session is open")
        try:
            with self._call():
                await self._stream.write(message)
        except asyncio.InvalidStateError:  # the stream ended while the answer was made
            await self.read()  # raises what ended it
            raise Unreachable("the coordinator ended the session") from None

    async def close(self) -> None:
        """Hang up, and close the channel once nothing waits on it any more."""
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._idle.wait()
        await self._channel.close(grace=None)


@asynccontextmanager
async def _stub(address: str, credentials: Credentials) -> AsyncIterator[Any]:
    channel = open_channel(address, credentials)
    try:
        yield FederationServiceStub(channel)
    except grpc.RpcError as error:
        raise error_from_call(error, address) from None
    finally:
        await channel.close(grace=None)


async def request_renewal(address: str, credentials: Credentials, request: bytes) -> bytes:
    """Ask the coordinator to renew a certificate; return leaf and intermediate."""
    async with _stub(address, credentials) as stub:
        asked = pb.RenewRequest(request=request)
        answer: pb.RenewResponse = await stub.Renew(asked, timeout=_CALL_S)
    return answer.chain


async def check_coordinator(address: str, credentials: Credentials) -> pb.CheckResponse:
    """Ask the coordinator whether it knows the caller, and for its time."""
    async with _stub(address, credentials) as stub:
        answer: pb.CheckResponse = await stub.Check(pb.CheckRequest(), timeout=_CALL_S)
    return answer
