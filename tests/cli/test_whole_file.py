"""What a command writes appears whole, and never takes the place of a device, a pipe or a link."""

import os
import stat
from pathlib import Path

import pytest

from colonnade.cli.whole_file import whole_file


def test_a_file_is_replaced_only_when_it_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("before")

    def stop_half_way() -> None:
        with whole_file(out) as file:
            file.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_half_way()
    assert out.read_text() == "before"
    with whole_file(out) as file:
        file.write("after")
    assert out.read_text() == "after"
    assert list(tmp_path.iterdir()) == [out]


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write("after")
    assert link.is_symlink()
    assert target.read_text() == "after"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    # A device is the same case: as root, a rename would put a plain file in place of /dev/null.
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)

    # Not blocking, so that a pipe which nobody writes to fails the test and does not hold it up.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as file:
            file.write("predictions")
        read.append(os.read(reader, 100).decode())
    finally:
        os.close(reader)
    assert read == ["predictions"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
