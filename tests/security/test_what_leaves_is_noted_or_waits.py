"""What leaves a party is noted first, whatever a coordinator names and however full the disk is.

A full disk under the log once ended the party with the exit code of bad input, which keeps a
service down, and the name of a job that is none, up to megabytes of it, was kept for ever.
"""

import asyncio
import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from colonnade.core.errors import BadInput, LowDisk
from colonnade.party.vault import session
from colonnade.party.vault.meter import Meter, read_log
from colonnade.party.vault.pacing import Pace
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2

NAME = "a" * 64


def submission(kind: str = "means") -> pb.AttachRequest:
    key = release_pb2.ReleaseKey(job_id=NAME, round=1, kind=kind)
    release = release_pb2.Release(key=key, body=b"1234")
    return pb.AttachRequest(submission=pb.Submission(job_id=NAME, round=1, releases=[release]))


@contextlib.contextmanager
def full_after(n_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: a write there ends short, then fails."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("room", [1, 100, 200])
def test_without_room_nothing_is_noted_in_part_and_later_all_of_it(
    tmp_path: Path, room: int
) -> None:
    path = tmp_path / "uplink.jsonl"
    meter = Meter(path)
    meter.note(submission())
    before = path.read_bytes()
    with full_after(len(before) + room), pytest.raises(LowDisk):
        meter.note(submission("gram"))
    assert path.read_bytes() == before
    assert meter.payload_bytes == 4
    assert not any(line.retry for line in meter.note(submission("gram")))  # it never left
    assert [line.kind for line in read_log(path)] == ["means", "control", "gram", "control"]


class Coordinator:
    """A stream that takes all that is sent."""

    def __init__(self) -> None:
        self.taken: list[pb.AttachRequest] = []

    async def write(self, message: pb.AttachRequest) -> None:
        self.taken.append(message)


class FullOnce:
    """A log that has no room the first time."""

    def __init__(self) -> None:
        self.tries = 0

    def note(self, _: pb.AttachRequest) -> None:
        self.tries += 1
        if self.tries == 1:
            raise LowDisk("no room")


def test_a_party_waits_for_room_and_then_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LOW_DISK_S", 0.0)
    call, log, nothing = Coordinator(), FullOnce(), None
    each = session._Session(call, nothing, log, Pace(0.0), None)  # type: ignore[arg-type]
    asyncio.run(each._send(submission()))
    assert (log.tries, call.taken) == (2, [submission()])


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "uplink.jsonl"
    with pytest.raises(BadInput, match=r"uplink\.jsonl"):
        Meter(path).note(submission())


def test_a_name_that_no_job_has_is_kept_in_part_only(tmp_path: Path) -> None:
    path = tmp_path / "uplink.jsonl"
    meter, pace = Meter(path), Pace(1e-9)
    for number in range(3):
        job = f"{number}" * 1_000_000
        meter.note(pb.AttachRequest(refusal=pb.Refusal(job_id=job, round=1)))
        pace.wait_s(1.0, job)
    assert path.stat().st_size < 1000
    assert all(len(job) <= 64 for job in pace._told)


def test_a_log_with_bytes_that_are_no_text_stops_no_start(tmp_path: Path) -> None:
    path = tmp_path / "uplink.jsonl"
    Meter(path).note(submission())
    with path.open("ab") as file:
        file.write(b"\xff\xfe\x00 what a power cut left")
    Meter(path).note(submission("gram"))
    assert [line.kind for line in read_log(path)] == ["means", "control", "gram", "control"]
