"""Fail every single write and sync of a run in turn: killed, refused by the disk, disk full."""

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.images import record_run
from colonnade.bench.crash.kills import Observer
from colonnade.bench.crash.party import (
    BODY,
    FAILED,
    FIRED,
    At,
    ChildPlan,
    Frame,
    die,
    fresh_ledger,
)
from colonnade.bench.crash.process import read_frames, run_party, start_party
from colonnade.bench.crash.vfs import Operation, Sync, Write, hooked_storage
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.sqlite import SqliteStorage

_ROUNDS = 4
_SYSCALLS = "pwrite64,write,fdatasync,fsync,ftruncate,unlink"


def _kill(_: Operation) -> None:
    die()


def _refuse(operation: Operation) -> None:
    if operation.file == "head.mirror":
        raise OSError(errno.EIO, "injected")
    raise apsw.IOError("injected")


def _full(operation: Operation) -> None:
    if operation.file == "head.mirror":
        raise OSError(errno.ENOSPC, "injected")
    raise apsw.FullError("injected")


# What happens, to which kind of operation, and whether the party must notice and stop by itself.
FAULTS: dict[str, tuple[Callable[[Operation], None], tuple[type, ...], bool]] = {
    "killed": (_kill, (Write, Sync), False),
    "sync failed": (_refuse, (Sync,), True),
    "disk full": (_full, (Write,), True),
}


def run_operation_faults(
    folder: Path,
    *,
    together: int = 1,
    ways: Sequence[str] = tuple(FAULTS),
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Counters, dict[str, int]]:
    """Fail each operation of a run once in each of ``ways``; return counters and points covered."""
    _, record = record_run(folder, _ROUNDS, together=together)
    observer, points = Observer(folder / "copy"), dict[str, int]()
    for name in ways:
        act, kinds, must_stop = FAULTS[name]
        count = sum(isinstance(item, kinds) for item in record)
        for number in range(1, count + 1):
            files = fresh_ledger(folder / "ledger")
            observer.new_ledger()
            fault = Fault(number, kinds, act)
            plan = ChildPlan(
                range(_ROUNDS),
                open_storage=fault.open_storage,
                on_fault=fault.report_by,
                together=together,
            )
            frames, status = run_party(files, plan)
            observer.watch(frames)
            observer.inspect(files)
            if must_stop:
                observer.counters.under_counted += went_on_after_fault(frames)
            observer.finish(files, _ROUNDS)
            fired = os.WIFSIGNALED(status) or any(frame.what == FIRED for frame in frames)
            points[name] = points.get(name, 0) + fired
            progress(sum(points.values()))
    return observer.counters, points


@dataclass(slots=True)
class Fault:
    """Does ``act`` at the n-th operation of some kinds, and reports that it did."""

    number: int
    kinds: tuple[type, ...]
    act: Callable[[Operation], None]
    layers: list[object] = field(default_factory=list)  # a layer must outlive its connection
    report: Callable[[], None] = lambda: None

    def report_by(self, report: Callable[[], None]) -> None:
        """Take the way to report."""
        self.report = report

    def open_storage(self, files: LedgerFiles, _: At) -> SqliteStorage:
        """Open the shipped storage with the fault in it."""
        storage, layer = hooked_storage(files, self._hook)
        self.layers.append(layer)
        return storage

    def _hook(self, operation: Operation) -> None:
        if isinstance(operation, self.kinds):
            self.number -= 1
            if self.number == 0:
                self.report()
                self.act(operation)


def went_on_after_fault(frames: list[Frame]) -> int:
    """Count bodies sent between a fault and the next start, and a fault that nobody noticed."""
    late, fired, failed = 0, False, False
    for frame in frames:
        fired = fired or frame.what == FIRED
        failed = failed or frame.what == FAILED
        late += fired and frame.what == BODY
    return late + (fired and not failed)


def run_syscall_kills(
    folder: Path, *, progress: Callable[[int], None] = lambda _: None
) -> tuple[Counters, int] | None:
    """Kill a party at its n-th writing system call, for every n; None where strace cannot."""
    total = _count_syscalls(folder, _SYSCALLS)
    if not total:
        return None
    observer = Observer(folder / "copy")
    for number in range(1, total + 1):
        files = fresh_ledger(folder / "ledger")
        observer.new_ledger()
        frames, _ = _traced(files, _SYSCALLS, f"--inject={_SYSCALLS}:signal=KILL:when={number}")
        observer.watch(frames)
        observer.inspect(files)
        observer.finish(files, _ROUNDS)
        progress(number)
    return observer.counters, total


def run_syscall_errors(
    folder: Path, *, progress: Callable[[int], None] = lambda _: None
) -> tuple[Counters, dict[str, int]] | None:
    """Let every sync fail with EIO and every write with ENOSPC, in the kernel's name.

    Unlike an error raised in the file layer, these pass through all of SQLite, which swallows
    some. A party that met one must stop. Two may pass unnoticed: SQLite's own sync of the folder
    (the ledger syncs it itself when it opens) and the note of the process id in the lock file.
    """
    observer, points = Observer(folder / "copy"), dict[str, int]()
    log = folder / "injected.log"
    for call, error in (("fdatasync", "EIO"), ("fsync", "EIO"), ("pwrite64", "ENOSPC")):
        total = _count_syscalls(folder, call)
        if not total:
            return None
        for number in range(1, total + 1):
            files = fresh_ledger(folder / "ledger")
            observer.new_ledger()
            inject = f"--inject={call}:error={error}:when={number}"
            frames, _ = _traced(files, call, inject, log=str(log))
            observer.watch(frames)
            observer.inspect(files)
            hit = injected(log.read_text())
            harmless = any(f"{files.folder}>" in line or "ledger.lock>" in line for line in hit)
            noticed = any(frame.what == FAILED for frame in frames)
            observer.counters.under_counted += bool(hit) and not harmless and not noticed
            observer.counters.under_counted += _sent_after_failure(frames)
            observer.finish(files, _ROUNDS)
            points[call] = points.get(call, 0) + len(hit)
            progress(sum(points.values()))
    return observer.counters, points


def injected(log: str) -> list[str]:
    """Return the calls that strace let fail, each whole.

    It writes a call in two lines if another thread's event comes between; the first has the file.
    """
    begun, found = dict[str, str](), list[str]()
    for line in log.splitlines():
        thread = line.split(" ", 1)[0]
        if "<unfinished ...>" in line:
            begun[thread] = line
        elif "INJECTED" in line:
            found.append(begun.pop(thread, "") + line)
    return found


def _sent_after_failure(frames: list[Frame]) -> int:
    failed, late = False, 0
    for frame in frames:
        failed = failed or frame.what == FAILED
        late += failed and frame.what == BODY
    return late


def _count_syscalls(folder: Path, calls: str) -> int:
    if shutil.which("strace") is None:
        return 0
    log = folder / "strace.log"
    folder.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    files = fresh_ledger(folder / "ledger")
    _, traced = _traced(files, calls, "--signal=none", log=str(log))
    return sum("(" in line for line in log.read_text().splitlines()) if traced else 0


def _traced(
    files: LedgerFiles, calls: str, option: str, *, log: str = "/dev/null"
) -> tuple[list[Frame], bool]:
    """Run a party with strace attached before it touches the ledger."""
    hold, release = os.pipe()
    pid, wire = start_party(files, ChildPlan(range(_ROUNDS)), hold=hold)
    os.close(hold)
    command = ["strace", "-q", "-y", "-f", f"--trace={calls}", option, "-o", log, "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    attached = _wait_attached(pid, tracer)
    if not attached:
        os.kill(pid, signal.SIGKILL)
    os.write(release, b"x")
    os.close(release)
    frames = list(read_frames(wire))
    os.waitpid(pid, 0)
    tracer.wait()
    return frames, attached


def _wait_attached(pid: int, tracer: "subprocess.Popen[bytes]") -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until and tracer.poll() is None:
        if "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text():
            return True
        time.sleep(0.001)
    return False
