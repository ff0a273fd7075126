"""The calls that parties make: decode, call the engine, encode."""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

import grpc

from colonnade.core.errors import AwaitingApproval, BadInput, ColonnadeError
from colonnade.server.api.attendance import Attendance
from colonnade.server.api.auth import Authenticator, Caller
from colonnade.server.api.renewal import Renewals
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.sessions import Item, OpenSessions
from colonnade.server.engine.worker import Worker
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import federation_pb2_grpc
from colonnade.wire.fragments import Assembly, fragments
from colonnade.wire.session import PROTOCOL

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_HELLO_S = 10.0
_RECHECK_S = 1.0


class FederationServicer(federation_pb2_grpc.FederationServiceServicer):
    """Serves parties."""

    def __init__(
        self,
        engine: Coordinator,
        worker: Worker,
        board: OpenSessions,
        authenticator: Authenticator,
        attendance: Attendance,
        renewals: Renewals,
    ) -> None:
        self._renewals = renewals
        self._engine, self._worker, self._board = engine, worker, board
        self._authenticator, self._attendance = authenticator, attendance
        self._farewells: set[asyncio.Task[None]] = set()

    async def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        """State that the caller is known, and what time it is."""
        caller = self._authenticator.party(context)
        enrolled = await self._worker.read(lambda: caller.identity.name in self._engine.parties)
        return pb.CheckResponse(
            protocol=PROTOCOL,
            program=version("colonnade"),
            time=time.time(),
            enrolled=enrolled,
        )

    async def Enrol(self, request: pb.EnrolRequest, context: Context) -> pb.EnrolResponse:
        """Register a ledger's key."""
        caller = self._authenticator.party(context)
        return await self._worker.do(lambda: self._engine.enrol(caller.identity.name, request))

    async def Renew(self, request: pb.RenewRequest, context: Context) -> pb.RenewResponse:
        """Renew the caller's certificate."""
        certificate = self._authenticator.party(context).certificate
        chain = await asyncio.to_thread(self._renewals.approve, certificate, request.request)
        return pb.RenewResponse(chain=chain)

    async def Attach(
        self, request_iterator: AsyncIterator[pb.AttachRequest], context: Context
    ) -> AsyncIterator[pb.AttachResponse]:
        """Hold a session."""
        caller = self._authenticator.party(context)
        party = caller.identity.name
        hello = await _first(request_iterator)
        # This call may be cancelled at any await; the engine must learn of its end all the same.
        attaching = asyncio.ensure_future(
            self._worker.do(lambda: self._engine.attach(party, hello))
        )
        helpers: list[asyncio.Task[None]] = []
        try:
            queue = self._board.queue(party, await asyncio.shield(attaching))
            self._attendance.attached(caller, hello)
            for helper in (self._read(request_iterator, caller), self._recheck(caller)):
                helpers.append(asyncio.create_task(helper))
                helpers[-1].add_done_callback(partial(_end, queue))
            while (item := await queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                for piece in fragments(item):
                    yield piece
        finally:
            for running in helpers:
                running.cancel()
            farewell = asyncio.create_task(self._farewell(party, attaching))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    async def _read(self, requests: AsyncIterator[pb.AttachRequest], caller: Caller) -> None:
        party, assembly = caller.identity.name, Assembly(pb.AttachRequest)
        async for piece in requests:
            self._authenticator.recheck(caller)
            self._attendance.note_seen(party)
            if (message := assembly.take(piece)) is not None:
                decision = message.decision
                if decision.code not in ("", AwaitingApproval.code):  # who waits has not failed
                    self._attendance.failed(decision.code, party)
                await self._worker.do(partial(self._engine.receive, party, message))

    async def _recheck(self, caller: Caller) -> None:
        """End the stream of a caller whose certificate ends or is denied, even if it is silent."""
        while True:
            await asyncio.sleep(_RECHECK_S)
            self._authenticator.recheck(caller)

    async def _farewell(self, party: str, attaching: "asyncio.Future[int]") -> None:
        try:
            epoch = await attaching
        except ColonnadeError:
            return  # it never attached
        try:
            await self._worker.do(lambda: self._engine.detach(party, epoch))
        except ColonnadeError:
            return  # the coordinator is stopping
        finally:
            self._attendance.note_seen(party)
            self._board.close(party, epoch)  # nothing more is sent to it from here on


def _end(queue: "asyncio.Queue[Item]", task: "asyncio.Task[None]") -> None:
    """End a session's stream when one of its tasks ends, and with the same error."""
    if not task.cancelled():
        queue.put_nowait(task.exception())


async def _first(requests: AsyncIterator[pb.AttachRequest]) -> pb.Hello:
    try:
        async with asyncio.timeout(_HELLO_S):
            message = await anext(requests, None)
    except TimeoutError:
        message = None
    if message is None or message.WhichOneof("message") != "hello":
        raise BadInput("a session begins with a hello")
    return message.hello
