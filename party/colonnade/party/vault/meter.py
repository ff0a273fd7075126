"""Every byte that leaves, noted at the party: when, for which job and round, of which kind.

Nothing leaves unnoted: where the log has no room, `LowDisk` says so and nothing is noted in part.

The log is for people: one JSON object a line. It is read at the start, so that a message sent again
after a restart counts as a retry.
"""

import errno
import functools
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from colonnade.core.errors import BadInput, LowDisk
from colonnade.core.permissions import private
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.frames import wire_bytes

CONTROL = "control"
_LONGEST_NAME = 64  # of a job; a coordinator can name what is none, in megabytes


class UplinkLine(NamedTuple):
    """One kind in one message."""

    time: int
    job: str
    round: int
    kind: str
    payload_bytes: int
    wire_bytes: int
    retry: bool
    client: int = -1  # of a host; its number in the host's own order


class Meter:
    """Counts what is sent and appends it to the log."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        before = read_log(path)
        self._sent = set(map(_key, before))
        # All that left, ever.
        self.payload_bytes = sum(line.payload_bytes for line in before)
        self.wire_bytes = sum(line.wire_bytes for line in before)
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            self._append("\n")  # a crash cut the last line off

    def note(self, message: pb.AttachRequest) -> list[UplinkLine]:
        """Note a message that is about to leave."""
        total, now = wire_bytes(message.ByteSize()), int(self._clock())
        match message.WhichOneof("message"):
            case "submission":
                lines = self._releases(message.submission, total, now)
            case "decision":
                lines = [
                    UplinkLine(now, message.decision.job_id, 0, CONTROL, 0, total, retry=False)
                ]
            case "refusal":
                job, round_ = message.refusal.job_id[:_LONGEST_NAME], message.refusal.round
                lines = [UplinkLine(now, job, round_, CONTROL, 0, total, retry=False)]
            case _:
                lines = [UplinkLine(now, "", 0, CONTROL, 0, total, retry=False)]
        self._append("".join(f"{_text(line)}\n" for line in lines))
        self._sent.update(_key(line) for line in lines if line.kind != CONTROL)
        self.payload_bytes += sum(line.payload_bytes for line in lines)
        self.wire_bytes += sum(line.wire_bytes for line in lines)
        return lines

    def _append(self, text: str) -> None:
        """Write to the log all of ``text`` or nothing."""
        size = None
        try:
            # Who answers when is for this organization alone.
            with open(self._path, "ab", buffering=0, opener=private) as file:
                size = file.tell() if file.seekable() else None
                if file.write(line := text.encode()) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if size is not None:
                with suppress(OSError):  # what is no file has no size
                    os.truncate(self._path, size)
            told = f"{self._path}: what leaves cannot be noted: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise LowDisk(told) from None
            raise BadInput(told) from None

    def _releases(self, submission: pb.Submission, total: int, now: int) -> list[UplinkLine]:
        job, round_ = submission.job_id, submission.round
        lines = []
        for release in submission.releases:
            kind, size = release.key.kind, release.ByteSize()
            retry = (job, round_, kind, -1) in self._sent
            lines.append(UplinkLine(now, job, round_, kind, len(release.body), size, retry))
        lines += self._of_clients(submission, now)
        rest = total - sum(line.wire_bytes for line in lines)
        retry = any(line.retry for line in lines)
        return [*lines, UplinkLine(now, job, round_, CONTROL, 0, rest, retry)]

    def _of_clients(self, submission: pb.Submission, now: int) -> list[UplinkLine]:
        """Return a line for each client's answer, under the round of its question."""
        job, answers, lines = submission.job_id, submission.clients, []
        for client, round_, body in zip(
            answers.clients, answers.rounds, answers.bodies, strict=True
        ):
            key = (job, round_, answers.kind, client)
            retry = key in self._sent
            size = len(body)
            lines.append(UplinkLine(now, job, round_, answers.kind, size, size, retry, client))
        return lines


def _key(line: UplinkLine) -> tuple[str, int, str, int]:
    """Return what a message that is sent again has in common with the first."""
    return line.job, line.round, line.kind, line.client


def _text(line: UplinkLine) -> str:
    return f'{_begin(line[:6])}, "retry": {str(line.retry).lower()}, "client": {line.client}}}'


@functools.lru_cache(maxsize=8)  # the lines of a host's clients begin alike
def _begin(values: tuple[object, ...]) -> str:
    """Return a line up to what differs from client to client."""
    return json.dumps(dict(zip(UplinkLine._fields, values, strict=False)))[:-1]


def read_log(path: Path) -> list[UplinkLine]:
    """Return the lines of a log, without any that a crash cut off."""
    lines = []
    for row in path.read_text("utf-8", "replace").splitlines() if path.exists() else []:
        with suppress(ValueError, TypeError):
            lines.append(UplinkLine(**json.loads(row)))
    return lines
