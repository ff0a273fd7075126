"""A simulation that is stopped or killed leaves no process and no private table behind."""

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

pytestmark = pytest.mark.slow

MARK = "COLONNADE_TEST_RUN"
WAIT_S = 60.0
VERTICAL = ("--rows", "2000", "--features", "6", "--epsilon", "8", "--bounds-share", "0.4")
CLIENTS = ("admm", "--clients", "40", "--features", "3", "--rounds", "3", "--epsilon", "8")
# Words of the line that says what is done next.
SET_UP, BOUNDS, ROUNDS, SCORING = "plan: ", "tighter bounds", "round ", "scoring "


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation in a process of its own, whose children carry its mark."""

    process: "subprocess.Popen[str]"
    mark: str
    scratch: Path  # where its temporary folder is

    def wait_for(self, words: str) -> None:
        """Return when the command says a line with ``words``."""
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if words in line:
                return
        pytest.fail("".join(said))

    def alive(self) -> list[int]:
        """Return the processes that belong to the run."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # not ours, or gone by now
                if f"{MARK}={self.mark}".encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found

    def wait_until_gone(self) -> None:
        """Return when no process of the run is left."""
        while pids := self.alive():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    handle = os.pidfd_open(pid)
                    try:
                        assert select.select([handle], [], [], WAIT_S)[0], f"{pid} lives on"
                    finally:
                        os.close(handle)


# A runner in the background ignores SIGINT, and its children would inherit that. Not by a function
# before exec, which needs a fork: gRPC's threads of other tests do not survive one.
START = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from colonnade.cli.main import main
sys.exit(main())
"""


@contextlib.contextmanager
def simulation(tmp_path: Path, *options: str) -> Iterator[Run]:
    scratch, mark = tmp_path / "scratch", uuid4().hex
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", START, "simulate", *options],
        env={**os.environ, MARK: mark, "TMPDIR": str(scratch)},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        umask=0o022,
    )
    with process:
        run = Run(process, mark, scratch)
        try:
            yield run
        finally:
            for pid in run.alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def assert_only_ours(folder: Path) -> None:
    """Assert that others may read nothing but certificates, which are public."""
    modes = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a draft that was renamed
            if path.is_dir() or not path.read_bytes().startswith(b"-----BEGIN CERTIFICATE"):
                modes[path] = stat.S_IMODE(path.lstat().st_mode)
    found = {path.name for path in modes}
    assert {"table.parquet", "coarse.table", "coordinator.db", "hospital.log"} <= found
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


# Three moments that differ in what there is to end: tables are being written; a coordinator and
# three parties run, in their first of several jobs; the jobs are over and this process scores. Each
# of the signals once, and once with hosts of clients.
@pytest.mark.parametrize(
    ("moment", "number", "options"),
    [
        (SET_UP, signal.SIGTERM, VERTICAL),
        (BOUNDS, signal.SIGINT, VERTICAL),
        (SCORING, signal.SIGHUP, VERTICAL),
        (ROUNDS, signal.SIGTERM, CLIENTS),
    ],
    ids=["set-up", "rounds", "report", "clients"],
)
def test_a_signal_ends_all_processes_and_removes_the_tables(
    moment: str, number: signal.Signals, options: tuple[str, ...], tmp_path: Path
) -> None:
    with simulation(tmp_path, *options) as run:
        run.wait_for(moment)
        run.process.send_signal(number)
        run.process.stderr.read()  # type: ignore[union-attr]
        assert run.process.wait(WAIT_S) == 128 + number
        # What the command itself could end and remove is gone before it is.
        assert run.alive() == []
        assert list(run.scratch.iterdir()) == []


def test_processes_and_tables_are_gone_after_a_kill(tmp_path: Path) -> None:
    # When most there is runs: what removes it was started before any of it.
    with simulation(tmp_path, *VERTICAL) as run:
        run.wait_for(ROUNDS)
        assert len(run.alive()) >= 5  # the command, a coordinator, three parties
        assert_only_ours(run.scratch)
        run.process.kill()
        run.wait_until_gone()
        assert list(run.scratch.iterdir()) == []
