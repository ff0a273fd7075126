"""Frames that net may send to the vault, mutated at random, against the vault's end of the socket.

    python -m colonnade.bench.isolation.frames --frames 10000000 --seed 0

Everything that comes out must be an answer to a call that was made, a refusal or the end of the
connection: another exception, an answer without its call, or more than a frame held in memory is
counted as a violation. One line of JSON, also if a signal stops the run; exit code 1 if there was
any violation.
"""

import argparse
import asyncio
import json
import struct
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from colonnade.bench.progress import keeping_figures, stopped_between, told
from colonnade.cli.stopping import stoppable
from colonnade.core.errors import ColonnadeError
from colonnade.party.frames import MAX_FRAME_BYTES, READ_BYTES, BrokenLink, Frames, to_frame
from colonnade.party.vault.link import Link, answered, error_of
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2, vault_pb2

Deliver = Callable[[pb.AttachResponse], None]
_AT_ONCE = 6400  # frames between two looks at the clock
_BATCH = 64  # random numbers are drawn many at once


@dataclass(slots=True)
class FrameCounts:
    """What came of the frames."""

    frames: int = 0
    answers: int = 0  # that had their call
    messages: int = 0  # of a coordinator, whole
    failures: int = 0  # that net names
    broken: int = 0  # connections that ended by a frame
    violations: int = 0


def seeds() -> list[vault_pb2.NetAnswer]:
    """Return one good answer of each kind; what is sent is made of these."""
    key = release_pb2.ReleaseKey(job_id="a" * 64, round=1, kind="means")
    release = release_pb2.Release(key=key, body=b"12345678")
    said = [
        pb.AttachResponse(welcome=pb.Welcome(epoch=1, protocol=4, latest=release)),
        pb.AttachResponse(proposal=pb.Proposal(spec=b"\x0a\x04spec")),
        pb.AttachResponse(task=pb.Task(job_id="a" * 64, round=1, body=b"\x08\x01")),
        pb.AttachResponse(ending=pb.Ending(job_id="a" * 64, state="finished")),
        pb.AttachResponse(fragment=pb.Fragment(index=0, count=2, body=b"12")),
        pb.EnrolResponse(protocol=4, head=pb.LedgerHead(seq=3, chain_hash=b"1" * 32)),
    ]
    names = ("spiffe://study/party/lab", "spiffe://study/coordinator/hub")
    return [
        *(vault_pb2.NetAnswer(message=each.SerializeToString()) for each in said),
        vault_pb2.NetAnswer(dialled=vault_pb2.Dialled(identity=names[0], coordinator=names[1])),
        vault_pb2.NetAnswer(done=vault_pb2.Done()),
        vault_pb2.NetAnswer(ended=vault_pb2.Ended()),
        vault_pb2.NetAnswer(failed=vault_pb2.Failed(code="unreachable", message="away")),
    ]


class _Silent:
    """A connection on which nothing comes by itself."""

    async def read(self, _limit: int) -> bytes:
        await asyncio.Event().wait()
        return b""

    def write(self, _data: bytes) -> None:
        return

    def close(self) -> None:
        return

    async def wait_closed(self) -> None:
        return


class Attack:
    """Sends frames to one link after another."""

    def __init__(self, seed: int, deliver: Deliver | None = None) -> None:
        self._draw = np.random.default_rng(seed)
        self._bodies = [each.SerializeToString() for each in seeds()]
        self._deliver = deliver
        self.counts = FrameCounts()
        self._open()

    def _open(self) -> None:
        silent: Any = _Silent()
        self._link, self._frames = Link(silent, silent), Frames()
        self._asked = 0

    async def run(self, frames: int) -> FrameCounts:
        """Send so many frames, and no more."""
        await self.send(frames)
        await self.close()
        return self.counts

    async def send(self, frames: int) -> None:
        """Send so many frames more."""
        until = self.counts.frames + frames
        while self.counts.frames < until:
            self._send(min(_BATCH, until - self.counts.frames))
            await asyncio.sleep(0)  # ended links are let go

    async def close(self) -> None:
        """End the last link."""
        await self._link.close()

    def _send(self, count: int) -> None:
        dice = self._draw.integers(0, 1 << 30, (count, 6)).tolist()
        for kind, how, place, value, cut, who in dice:
            self.counts.frames += 1
            waiting = self._link.expect(self._asked + 1)
            self._asked += 1
            wrong = who % 50 == 0
            frame = self._frame(kind, self._asked + (value if wrong else 0), how, place, value)
            try:
                at = cut % (len(frame) + 1)
                for piece in (frame[:at], frame[at:]):
                    for answer in self._frames.take(piece, vault_pb2.NetAnswer):
                        before = self._link.n_waiting
                        self._link.take(answer)
                        if self._link.n_waiting != before - 1:  # taken, and was nobody's
                            self.counts.violations += 1
                if self._frames.held > MAX_FRAME_BYTES + READ_BYTES:
                    self.counts.violations += 1
                if waiting.done():
                    self._check(waiting.result(), self._asked)
            except BrokenLink:
                self.counts.broken += 1
                self._again()
            except ColonnadeError:
                self.counts.failures += 1
            except Exception:  # noqa: BLE001 - anything else is what is looked for
                self.counts.violations += 1
                self._again()
            # Frames after one that is longer than said are taken for its rest: few are let.
            if self._frames.held and (who % 16 or self._frames.held > 4 * READ_BYTES):
                self._again()

    def _again(self) -> None:
        self._link.abandon()
        self._open()

    def _frame(self, kind: int, number: int, how: int, place: int, value: int) -> bytes:
        """Return a frame: good, changed in its bytes, or with another length."""
        message = vault_pb2.NetAnswer.FromString(self._bodies[kind % len(self._bodies)])
        message.id = number
        frame = bytearray(to_frame(message))
        at = place % len(frame)
        match how % 8:
            case 0 | 1:
                frame[4 + at % (len(frame) - 4)] ^= 1 << value % 8
            case 2:
                frame[at] ^= 1 << value % 8  # perhaps of the length
            case 3:
                frame[0:4] = struct.pack(">I", value)  # up to a gigabyte
            case 4:
                del frame[at : at + value % 8]
            case 5:
                frame[at:at] = value.to_bytes(4, "big")[: 1 + value % 4]
        return bytes(frame)

    def _check(self, answer: vault_pb2.NetAnswer, number: int) -> None:
        self.counts.answers += 1
        if answer.id != number:
            self.counts.violations += 1
        if answer.WhichOneof("answer") == "failed":
            raise error_of(answer.failed)
        if answer.WhichOneof("answer") == "message":
            message = answered(pb.AttachResponse, answer)
            self.counts.messages += 1
            if self._deliver is not None:
                self._deliver(message)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    began = time.monotonic()

    async def run() -> None:
        attack, tell = Attack(arguments.seed), told("frames", arguments.frames)
        parts.append(attack.counts)
        while attack.counts.frames < arguments.frames:
            await attack.send(min(_AT_ONCE, arguments.frames - attack.counts.frames))
            tell(attack.counts.frames)
            between()
        await attack.close()

    parts: list[FrameCounts] = []
    with stoppable(), keeping_figures() as ending, stopped_between() as between:
        asyncio.run(run())
    counts = parts[0] if parts else FrameCounts()
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps({**asdict(counts), "seconds": seconds, **ending.fields}))
    return ending.exit_code(1 if counts.violations else 0)


if __name__ == "__main__":
    raise SystemExit(main())
