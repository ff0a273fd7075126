"""The vault's end of the socket: it calls net, and believes nothing of what net answers.

Privacy: as far as the vault knows, net *is* the coordinator: who controls it can say whatever a
coordinator can, and nothing else. Net answers numbered calls; what was not asked for ends the
connection. No answer of net sets a price, an approval, a receipt or a time: those are the ledger's,
the policy's and the session's, all on this side.
"""

import asyncio
import contextlib
import logging
import socket
import time
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from colonnade.core import errors
from colonnade.core.errors import BadIdentity, BadMessage, ColonnadeError, Unreachable
from colonnade.party.frames import READ_BYTES, BrokenLink, Frames, M, to_frame
from colonnade.pki.identity import COORDINATOR, PARTY, Identity
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import vault_pb2
from colonnade.wire.session import public_text

logger = logging.getLogger(__name__)
VERSION = 1
# Dialling may renew a certificate first; a net that takes longer is taken for stuck.
_CALL_S = 90.0
_HANG_UP_S = 10.0  # what stops a party gives it half a minute
# What net may name: not what ends a party for good, for only its own ledger can say that.
_KINDS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ColonnadeError) and kind not in errors.FATAL
}
_NO_MESSAGE = "the coordinator sent what is no message"


class Links(Protocol):
    """Where connections with net come from: one after another, as net is started."""

    async def next(self) -> socket.socket:
        """Wait for the next connection."""


class Link:
    """One connection with net."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[vault_pb2.NetAnswer]] = {}
        self._left: set[int] = set()  # calls whose caller went away before the answer came
        self._last_id = 0
        self._over: BrokenLink | None = None
        self.read_at = 0.0  # when the last message of a coordinator came
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def over(cls, connection: socket.socket) -> "Link":
        """Return a link over a connected socket, which it closes."""
        connection.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=connection, limit=READ_BYTES))

    @property
    def n_waiting(self) -> int:
        """How many calls have not been answered."""
        return len(self._waiting)

    @property
    def open(self) -> bool:
        """Whether net is still there."""
        return self._over is None

    async def close(self) -> None:
        """End the connection; net ends what it had open."""
        self.abandon()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._task
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def call(self, *, timeout: float | None = _CALL_S, **what: Any) -> vault_pb2.NetAnswer:
        """Have net do something and return its answer; raise what it failed with."""
        if self._over is not None:
            raise _gone(self._over)
        self._last_id += 1
        number = self._last_id
        waiting = self.expect(number)
        try:
            self._writer.write(to_frame(vault_pb2.NetCall(id=number, **what)))
            async with asyncio.timeout(timeout):
                await self._writer.drain()
                answer = await waiting
        except BrokenLink as error:
            raise _gone(error) from None
        except TimeoutError:
            self._end(BrokenLink("net does not answer"))
            raise Unreachable("net does not answer") from None
        except OSError:
            raise Unreachable("net has ended") from None
        except asyncio.CancelledError:
            if number in self._waiting:  # an answer may still come
                self._left.add(number)
            raise
        finally:
            self._waiting.pop(number, None)
        if answer.WhichOneof("answer") == "failed":
            raise error_of(answer.failed)
        return answer

    def expect(self, number: int) -> "asyncio.Future[vault_pb2.NetAnswer]":
        """Return what will hold the answer to a call."""
        waiting: asyncio.Future[vault_pb2.NetAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        return waiting

    def abandon(self) -> None:
        """End the connection without waiting for it."""
        self._end(BrokenLink("the connection was closed"))
        self._task.cancel()

    def take(self, answer: vault_pb2.NetAnswer) -> None:
        """Give an answer to its caller; raise `BrokenLink` if nobody asked."""
        if answer.id in self._left:
            self._left.discard(answer.id)
            return
        waiting = self._waiting.pop(answer.id, None)
        if waiting is None or waiting.done():
            raise BrokenLink("net answered what was not asked")
        waiting.set_result(answer)

    async def _run(self) -> None:
        frames = Frames()
        try:
            while data := await self._reader.read(READ_BYTES):
                for answer in frames.take(data, vault_pb2.NetAnswer):
                    self.take(answer)
            raise BrokenLink("net ended amid a frame" if frames.held else "net has ended")
        except BrokenLink as error:
            self._end(error)
        except OSError:
            self._end(BrokenLink("net has ended"))

    def _end(self, why: BrokenLink) -> None:
        if self._over is not None:
            return
        self._over = why
        self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(why)
                waiting.exception()  # looked at: a caller may be gone


class DialledCoordinator:
    """A dialled coordinator, as a session uses it."""

    def __init__(self, link: Link, identity: Identity, coordinator: Identity) -> None:
        self._link, self.identity, self.coordinator = link, identity, coordinator

    async def enrol(self, request: pb.EnrolRequest) -> pb.EnrolResponse:
        """Enrol the ledger's key."""
        answer = await self._link.call(enrol=request.SerializeToString())
        return answered(pb.EnrolResponse, answer)

    async def attach(self) -> "LinkStream":
        """Open the session's stream."""
        await self._link.call(attach=vault_pb2.Attach())
        return LinkStream(self._link)


class LinkStream:
    """The stream of one session."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def read(self) -> pb.AttachResponse | None:
        """Return the next message, or None after the last."""
        answer = await self._link.call(timeout=None, read=vault_pb2.Read())
        self._link.read_at = time.monotonic()
        if answer.WhichOneof("answer") == "ended":
            return None
        return answered(pb.AttachResponse, answer)

    async def write(self, message: pb.AttachRequest) -> None:
        """Send a message."""
        await self._link.call(timeout=None, write=message.SerializeToString())

    async def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(ColonnadeError):  # a party that stops waits for no stuck net
            await self._link.call(timeout=_HANG_UP_S, hang_up=vault_pb2.HangUp())


async def dial(link: Link) -> DialledCoordinator:
    """Have net dial; return who answers, as net tells."""
    answer = await link.call(dial=vault_pb2.Dial(version=VERSION))
    told = answer.dialled
    identity, coordinator = Identity.from_uri(told.identity), Identity.from_uri(told.coordinator)
    if (identity.role, coordinator.role) != (PARTY, COORDINATOR):
        raise BadIdentity("net names no party and no coordinator")
    if identity.federation != coordinator.federation:
        raise BadIdentity(f"{coordinator.uri} is of another federation than {identity.uri}")
    return DialledCoordinator(link, identity, coordinator)


def error_of(failed: vault_pb2.Failed) -> ColonnadeError:
    """Return the error that net names; the text is a peer's, for logs."""
    text = public_text(failed.message) or "net says no more; see its log"
    return _KINDS.get(failed.code, Unreachable)(text)


def _gone(why: BrokenLink) -> Unreachable:
    return Unreachable(str(why))


def answered(kind: type[M], answer: vault_pb2.NetAnswer) -> M:
    """Return the message of a coordinator that an answer holds."""
    if answer.WhichOneof("answer") != "message":
        raise BadMessage(_NO_MESSAGE)
    try:
        return kind.FromString(answer.message)
    except DecodeError:
        raise Unreachable(_NO_MESSAGE) from None
