"""What a party notes of what leaves it, and how large a message is on the wire."""

from pathlib import Path

import pytest

from colonnade.party.vault.meter import CONTROL, Meter, read_log
from colonnade.server.engine.metering import release_rows, retry_row
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import release_pb2
from colonnade.wire.frames import wire_bytes


def submission(job: str = "j", round_: int = 1, **bodies: bytes) -> pb.AttachRequest:
    releases = [
        release_pb2.Release(
            key=release_pb2.ReleaseKey(job_id=job, round=round_, kind=kind), body=body
        )
        for kind, body in bodies.items()
    ]
    return pb.AttachRequest(
        epoch=3, submission=pb.Submission(job_id=job, round=round_, releases=releases)
    )


def test_kinds_add_up_to_the_message_and_agree_with_the_coordinator(tmp_path: Path) -> None:
    message = submission(select=b"1234", share=bytes(1000))
    lines = Meter(tmp_path / "log").note(message)
    wire = wire_bytes(message.ByteSize())
    assert sum(line.wire_bytes for line in lines) == wire
    rows = release_rows(message.submission, "hospital", wire)
    assert [(line.kind, line.payload_bytes, line.wire_bytes) for line in lines] == [
        (row.kind, row.payload_bytes, row.wire_bytes) for row in rows
    ]
    assert [row.kind for row in rows] == ["select", "share", CONTROL]
    assert [row.payload_bytes for row in rows] == [4, 1000, 0]


def test_what_was_sent_before_is_a_retry_even_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "log"
    meter = Meter(path)
    assert [line.retry for line in meter.note(submission(select=b"1"))] == [False, False]
    assert [line.retry for line in meter.note(submission(select=b"1"))] == [True, True]
    again = Meter(path)
    assert [line.retry for line in again.note(submission(select=b"1"))] == [True, True]
    assert not any(line.retry for line in again.note(submission(round_=2, select=b"1")))
    assert len(read_log(path)) == 8


def test_a_line_that_a_crash_cut_off_is_left_out_and_the_next_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Meter(path).note(submission(select=b"1"))
    path.write_bytes(path.read_bytes()[:-9])
    assert len(read_log(path)) == 1
    Meter(path).note(submission(round_=2, select=b"1"))
    assert [line.round for line in read_log(path)] == [1, 2, 2]


def test_messages_without_releases_are_control(tmp_path: Path) -> None:
    meter = Meter(tmp_path / "log", clock=lambda: 99.9)
    for message in (
        pb.AttachRequest(hello=pb.Hello()),
        pb.AttachRequest(epoch=1, decision=pb.Decision(job_id="j")),
        pb.AttachRequest(epoch=1, refusal=pb.Refusal(job_id="j", round=4)),
    ):
        (line,) = meter.note(message)
        assert (line.time, line.kind, line.payload_bytes) == (99, CONTROL, 0)
        assert line.wire_bytes == wire_bytes(message.ByteSize())


def test_a_retry_is_counted_apart() -> None:
    message = submission(select=b"1234")
    row = retry_row(message.submission, "hospital", 77)
    assert (row.payload_bytes, row.wire_bytes, row.messages, row.retry_bytes) == (0, 0, 0, 77)


@pytest.mark.parametrize(
    ("size", "frames"), [(0, 1), (16384 - 5, 1), (16384 - 4, 2), (10 * 16384 - 5, 10)]
)
def test_a_message_is_cut_into_frames(size: int, frames: int) -> None:
    assert wire_bytes(size) == size + 5 + frames * (9 + 22) + 26
