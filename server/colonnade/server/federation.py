"""The calls that parties make: decode, call the engine, encode."""

import asyncio
import time
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any, TypeAlias

import grpc

from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.server.callers import Caller, Callers
from colonnade.server.engine import Coordinator
from colonnade.server.switchboard import Item, Switchboard
from colonnade.server.worker import Worker
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import federation_pb2_grpc
from colonnade.wire.session import PROTOCOL

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_HELLO_S = 10.0
_RECHECK_S = 1.0


class FederationServicer(federation_pb2_grpc.FederationServiceServicer):
    """Serves parties."""

    def __init__(
        self, engine: Coordinator, worker: Worker, board: Switchboard, callers: Callers
    ) -> None:
        self._engine, self._worker, self._board, self._callers = engine, worker, board, callers
        self._farewells: set[asyncio.Task[None]] = set()

    async def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        """Say that the caller is known, and what time it is."""
        caller = self._callers.party(context)
        return pb.CheckResponse(
            protocol=PROTOCOL,
            program=version("colonnade"),
            time=time.time(),
            enrolled=caller.identity.name in self._engine.parties,
        )

    async def Enrol(self, request: pb.EnrolRequest, context: Context) -> pb.EnrolResponse:
        """Register a ledger's key."""
        caller = self._callers.party(context)
        await self._worker.do(lambda: self._engine.enrol(caller.identity.name, request))
        return pb.EnrolResponse(protocol=PROTOCOL)

    async def Attach(
        self, request_iterator: AsyncIterator[pb.AttachRequest], context: Context
    ) -> AsyncIterator[pb.AttachResponse]:
        """Hold a session."""
        caller = self._callers.party(context)
        party = caller.identity.name
        hello = await _first(request_iterator)
        epoch = await self._worker.do(lambda: self._engine.attach(party, hello))
        queue = self._board.queue(party, epoch)
        helpers = [
            asyncio.create_task(self._read(request_iterator, caller, queue)),
            asyncio.create_task(self._recheck(caller, queue)),
        ]
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, ColonnadeError):
                    raise item
                yield item
        finally:
            for helper in helpers:
                helper.cancel()
            self._board.close(party, epoch)
            # Apart: this call may be cancelled, and the engine must hear of it all the same.
            farewell = asyncio.create_task(self._farewell(party, epoch))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    async def _read(
        self,
        requests: AsyncIterator[pb.AttachRequest],
        caller: Caller,
        queue: "asyncio.Queue[Item]",
    ) -> None:
        party = caller.identity.name
        try:
            async for message in requests:
                self._callers.recheck(caller)
                await self._worker.do(lambda message=message: self._engine.receive(party, message))  # type: ignore[misc]
        except ColonnadeError as error:
            queue.put_nowait(error)
        else:
            queue.put_nowait(None)

    async def _recheck(self, caller: Caller, queue: "asyncio.Queue[Item]") -> None:
        """End the stream of a caller whose certificate ends or is denied, even if it is silent."""
        try:
            while True:
                await asyncio.sleep(_RECHECK_S)
                self._callers.recheck(caller)
        except ColonnadeError as error:
            queue.put_nowait(error)

    async def _farewell(self, party: str, epoch: int) -> None:
        try:
            await self._worker.do(lambda: self._engine.detach(party, epoch))
        except ColonnadeError:
            return  # the coordinator is stopping


async def _first(requests: AsyncIterator[pb.AttachRequest]) -> pb.Hello:
    try:
        async with asyncio.timeout(_HELLO_S):
            message = await anext(requests, None)
    except TimeoutError:
        message = None
    if message is None or message.WhichOneof("message") != "hello":
        raise BadInput("a session begins with a hello")
    return message.hello
