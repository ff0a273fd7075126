"""Fail every single write and sync of a run in turn: killed, refused by the disk, disk full."""

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.images import record_run
from colonnade.bench.crash.kills import Observer
from colonnade.bench.crash.party import (
    BODY,
    FAILED,
    At,
    Frame,
    Plan,
    die,
    fresh_ledger,
    read_frames,
    run_party,
    start_party,
)
from colonnade.bench.crash.vfs import Operation, Sync, Write, hooked_storage
from colonnade.privacy.storage import LedgerFiles, SqliteStorage

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
    folder: Path, *, progress: Callable[[int], None] = lambda _: None
) -> tuple[Counters, dict[str, int]]:
    """Fail each operation of a run once in each way; return counters and the points covered."""
    _, record = record_run(folder, _ROUNDS)
    observer, points = Observer(folder / "copy"), dict[str, int]()
    for name, (act, kinds, must_stop) in FAULTS.items():
        count = sum(isinstance(item, kinds) for item in record)
        for number in range(1, count + 1):
            files = fresh_ledger(folder / "ledger")
            observer.new_ledger()
            plan = Plan(range(_ROUNDS), open_storage=_failing(number, kinds, act))
            frames, _ = run_party(files, plan)
            observer.watch(frames)
            observer.inspect(files)
            if must_stop:
                observer.counters.under_counted += _sent_after_failure(frames)
            observer.finish(files, _ROUNDS)
            points[name] = points.get(name, 0) + 1
            progress(sum(points.values()))
    return observer.counters, points


def _failing(
    number: int, kinds: tuple[type, ...], act: Callable[[Operation], None]
) -> Callable[[LedgerFiles, At], SqliteStorage]:
    layers: list[object] = []  # the layer must outlive the connection

    def open_storage(files: LedgerFiles, _: At) -> SqliteStorage:
        left = number

        def hook(operation: Operation) -> None:
            nonlocal left
            if isinstance(operation, kinds):
                left -= 1
                if left == 0:
                    act(operation)

        storage, layer = hooked_storage(files, hook)
        layers.append(layer)
        return storage

    return open_storage


def _sent_after_failure(frames: list[Frame]) -> int:
    """Count bodies that left after the party saw a failure."""
    seen, late = False, 0
    for frame in frames:
        seen = seen or frame.what == FAILED
        late += seen and frame.what == BODY
    return late


def run_syscall_kills(
    folder: Path, *, progress: Callable[[int], None] = lambda _: None
) -> tuple[Counters, int] | None:
    """Kill a party at its n-th writing system call, for every n; None where strace cannot."""
    total = _count_syscalls(folder)
    if not total:
        return None
    observer = Observer(folder / "copy")
    for number in range(1, total + 1):
        files = fresh_ledger(folder / "ledger")
        observer.new_ledger()
        frames, _ = _traced(files, f"--inject={_SYSCALLS}:signal=KILL:when={number}", "/dev/null")
        observer.watch(frames)
        observer.inspect(files)
        observer.finish(files, _ROUNDS)
        progress(number)
    return observer.counters, total


def _count_syscalls(folder: Path) -> int:
    if shutil.which("strace") is None:
        return 0
    log = folder / "strace.log"
    folder.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    files = fresh_ledger(folder / "ledger")
    _, traced = _traced(files, "--signal=none", str(log))
    return sum("(" in line for line in log.read_text().splitlines()) if traced else 0


def _traced(files: LedgerFiles, option: str, log: str) -> tuple[list[Frame], bool]:
    """Run a party with strace attached before it touches the ledger."""
    hold, release = os.pipe()
    pid, wire = start_party(files, Plan(range(_ROUNDS)), hold=hold)
    os.close(hold)
    command = ["strace", "-q", "-f", f"--trace={_SYSCALLS}", option, "-o", log, "-p", str(pid)]
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
