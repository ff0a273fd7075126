"""One session with a coordinator: enrol, attach, answer until the stream ends."""

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from colonnade.core.errors import FATAL, ColonnadeError, LowDisk, StaleEpoch, Unreachable
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.pacing import Pace
from colonnade.party.vault.vault import Vault
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.codec import Answer
from colonnade.wire.fragments import Assembly, fragments
from colonnade.wire.session import ENDINGS, PROTOCOL, public_text

logger = logging.getLogger(__name__)
# A full disk is emptied by people.
_LOW_DISK_S = 30.0
# So often a party looks whether somebody decided on a job.
_LOOK_S = 0.5


class SessionStream(Protocol):
    """The messages of a session, whatever carries them."""

    async def read(self) -> pb.AttachResponse | None:
        """Return the next message, or None after the last; raise what ended the stream."""

    async def write(self, message: pb.AttachRequest) -> None:
        """Send a message."""

    async def close(self) -> None:
        """Hang up."""


class SessionPeer(Protocol):
    """What a session is held with."""

    async def enrol(self, request: pb.EnrolRequest) -> pb.EnrolResponse:
        """Enrol the ledger's key."""

    async def attach(self) -> SessionStream:
        """Open the session's stream."""


async def attend(
    coordinator: SessionPeer,
    vault: Vault,
    meter: Meter,
    *,
    pace: Pace,
    program: str,
    attached: Callable[[], None] | None = None,
) -> None:
    """Enrol, attach and answer until the stream ends; the reason it ended is raised."""
    known = await coordinator.enrol(vault.enrolment())
    # Before the hello: a coordinator refuses that of a ledger that was rolled back, and then
    # shows nothing by which the ledger could tell.
    await asyncio.to_thread(vault.check_known, known)
    # Before the stream, whose other end gives a hello a few seconds: a million clients take longer.
    hello = await asyncio.to_thread(vault.hello)
    hello.protocol, hello.program, hello.time = PROTOCOL, program, time.time()
    # A session stays as long as it can; keepalive notices a peer that is gone.
    stream = await coordinator.attach()
    session = _Session(stream, vault, meter, pace, attached)
    try:
        await session.run(hello)
    finally:
        await stream.close()


class _Session:
    """The messages of one stream."""

    def __init__(
        self,
        stream: SessionStream,
        vault: Vault,
        meter: Meter,
        pace: Pace,
        attached: Callable[[], None] | None,
    ) -> None:
        self._stream, self._vault, self._meter, self._attached = stream, vault, meter, attached
        self._pace, self._asked, self._epoch = pace, 0.0, 0
        self._assembly = Assembly(pb.AttachResponse)

    async def run(self, hello: pb.Hello) -> None:
        await self._send(pb.AttachRequest(hello=hello))
        async for message in self._messages():
            self._pace.answering = True
            try:
                await self._take(message)
            finally:
                self._pace.answering = False

    async def _messages(self) -> AsyncIterator[pb.AttachResponse]:
        """Yield what the coordinator says; while it is silent, tell it what people decided."""
        reading = asyncio.ensure_future(self._stream.read())
        try:
            while True:
                done, _ = await asyncio.wait({reading}, timeout=_LOOK_S)
                if not done:
                    if await asyncio.to_thread(self._vault.take_policy):
                        raise Unreachable("the policy was taken up anew; attaching again")
                    await self._tell_decided()
                    continue
                if (piece := await reading) is None:
                    return
                if (message := self._assembly.take(piece)) is not None:
                    yield message
                reading = asyncio.ensure_future(self._stream.read())
        finally:
            reading.cancel()

    async def _tell_decided(self) -> None:
        for decision in await asyncio.to_thread(self._vault.decided):
            self._asked = time.monotonic()
            standing = await asyncio.to_thread(self._vault.standing)
            answer = pb.AttachRequest(epoch=self._epoch, decision=decision, standing=standing)
            await self._reply(answer, decision.job_id)

    async def _take(self, message: pb.AttachResponse) -> None:
        self._asked = time.monotonic()
        match message.WhichOneof("message"):
            case "welcome":
                self._epoch = message.welcome.epoch
                logger.info("attached epoch=%d", self._epoch)
                await asyncio.to_thread(self._vault.check_known, message.welcome)
                if self._attached is not None:
                    self._attached()
            case "proposal":
                decision = await asyncio.to_thread(self._vault.consider, message.proposal.spec)
                logger.info(
                    "job_considered job=%s accepted=%s code=%s",
                    decision.job_id[:12],
                    decision.accepted,
                    decision.code,
                )
                standing = await asyncio.to_thread(self._vault.standing)
                answer = pb.AttachRequest(epoch=self._epoch, decision=decision, standing=standing)
                await self._reply(answer, decision.job_id)
            case "task":
                await self._answer(message.task)
            case "ending":
                ending = message.ending
                job = public_text(ending.job_id, 12)
                state = ending.state if ending.state in ENDINGS else "unknown"
                logger.info("job_ended job=%s state=%s", job, state)
                finished = state == "finished"
                close = functools.partial(self._vault.close_job, finished=finished)
                if await asyncio.to_thread(close, ending.job_id):
                    standing = await asyncio.to_thread(self._vault.standing)
                    answer = pb.AttachRequest(epoch=self._epoch, standing=standing)
                    await self._reply(answer, ending.job_id)
                else:  # the next message is asked for: how long erasing took must not show either
                    await self._wait(ending.job_id)
            case "receipted":
                pass
            case _:
                raise StaleEpoch("the coordinator speaks a newer protocol; update this program")

    async def _answer(self, task: pb.Task) -> None:
        answer = pb.AttachRequest(epoch=self._epoch)
        try:
            replies = await self._replies(task)
        except FATAL:
            raise
        except ColonnadeError as error:
            job = public_text(task.job_id, 12)
            logger.warning(
                "task_refused job=%s round=%d code=%s %s", job, task.round, error.code, error
            )
            answer.refusal.code, answer.refusal.message = error.code, error.for_peers
            answer.refusal.job_id, answer.refusal.round = task.job_id, task.round
        except Exception:
            # A bug that one task meets must not end the party at every start.
            job = public_text(task.job_id, 12)
            logger.exception("task_failed job=%s round=%d", job, task.round)
            answer.refusal.code = ColonnadeError.code
            answer.refusal.job_id, answer.refusal.round = task.job_id, task.round
        else:
            answer.submission.job_id, answer.submission.round = task.job_id, task.round
            replies.put_into(answer.submission)
        await self._reply(answer, task.job_id)

    async def _replies(self, task: pb.Task) -> Answer:
        """Return what a task asks for, once there is room on the disk for it."""
        while True:
            try:
                return await asyncio.to_thread(
                    self._vault.answer, task.job_id, task.round, task.body
                )
            except LowDisk as error:
                job = public_text(task.job_id, 12)
                logger.warning("low_disk job=%s round=%d %s", job, task.round, error)
            self._pace.answering = False  # nothing was read; monitoring shows how full the disk is
            await asyncio.sleep(_LOW_DISK_S)
            # Only now is it asked what it takes to answer.
            self._asked, self._pace.answering = time.monotonic(), True

    async def _reply(self, message: pb.AttachRequest, job: str) -> None:
        """Send at the next point of the grid after the question."""
        await self._wait(job)
        self._pace.answering = False
        await self._send(message)

    async def _wait(self, job: str) -> None:
        await asyncio.sleep(self._pace.wait_s(time.monotonic() - self._asked, job))

    async def _send(self, message: pb.AttachRequest) -> None:
        await self._note(message)  # before it leaves: nothing leaves unnoted
        for piece in fragments(message):
            await self._stream.write(piece)

    async def _note(self, message: pb.AttachRequest) -> None:
        """Note what is about to leave, once there is room on the disk for it."""
        while True:
            try:
                self._meter.note(message)
            except LowDisk as error:
                logger.warning("low_disk %s", error)
                await asyncio.sleep(_LOW_DISK_S)
            else:
                return
