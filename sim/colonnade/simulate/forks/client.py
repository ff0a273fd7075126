"""The side of a fork server that asks for processes and learns how they ended."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Self

from colonnade.core.errors import Unreachable

# All share the machine's processors, and threads of BLAS keep one busy while they wait.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
_MAX_LINE = 1 << 16
# The first start on a machine compiles; a server that has ended is noticed at once.
_START_S, _LOOK_S = 600.0, 0.02


class Forked:
    """A process that the fork server made, with the part of `subprocess.Popen` that is used."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self._server, self.pid = server, pid

    @property
    def returncode(self) -> int | None:
        """The exit code, once it is known."""
        return self._server.codes.get(self.pid)

    def poll(self) -> int | None:
        """Return the exit code if the process has ended; without a server it is not known well."""
        self._server.poll(0.0)
        if self.returncode is None and self._server.gone and not Path(f"/proc/{self.pid}").exists():
            self._server.codes[self.pid] = -signal.SIGKILL
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code."""
        ends = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = 1.0 if ends is None else ends - time.monotonic()
            if left <= 0.0:
                raise subprocess.TimeoutExpired("colonnade", timeout or 0.0)
            self._server.poll(left)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Stop the process at once."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The other end of `serve`, in the process that wants members; it imports while others work."""

    def __init__(self) -> None:
        # The pipe ends when this process does, and the forks with it, even if it is killed.
        leash, self._leash = os.pipe()
        self.codes: dict[int, int] = {}
        self.gone, self._asked = False, False
        self._rest, self._pids = b"", list[int]()
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "colonnade.simulate.forks.server"]
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=leash,
                pass_fds=[theirs.fileno()],
                umask=0o077,  # what the forks write is nobody else's to read
                env=os.environ | _ONE_THREAD,
            )
        os.close(leash)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, arguments: Sequence[str], log: int) -> Forked:
        """Fork a process that runs a command and writes to ``log``."""
        self._asked = True
        socket.send_fds(self._socket, [json.dumps(list(arguments)).encode()], [log])
        while not self._pids:
            if not self.poll(_START_S):
                raise Unreachable("the process that starts the others did not answer")
        return Forked(self, self._pids.pop())

    def poll(self, seconds: float) -> bool:
        """Take what the server says within some time; return whether it said anything."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            said = self._socket.recv(_MAX_LINE)
        except ConnectionError:
            said = b""
        if not said:
            self.gone = True
            time.sleep(min(seconds, _LOOK_S))  # nothing more will come
        *lines, self._rest = (self._rest + said).split(b"\n")
        for line in map(json.loads, lines):
            if "code" in line:
                self.codes[line["pid"]] = line["code"]
            else:
                self.codes.pop(line["pid"], None)  # of one that had the number before
                self._pids.append(line["pid"])
        return bool(said)

    def close(self) -> None:
        """End the server; its forks go on until they are stopped."""
        self._socket.close()
        if not self._asked:  # it may be importing still
            self._process.kill()
        self._process.wait()
        os.close(self._leash)


_begun = ContextVar[ForkServer | None]("_begun", default=None)


@contextlib.contextmanager
def begun() -> Iterator[None]:
    """Start the server that `shared` yields within the block, unless a caller has begun one."""
    if _begun.get() is not None:
        yield
        return
    if "numpy" not in sys.modules:
        os.environ.update(_ONE_THREAD)
    with ForkServer() as server, lent(server):
        yield


@contextlib.contextmanager
def lent(server: ForkServer) -> Iterator[None]:
    """Have `shared` yield this server within the block; whoever made it ends it."""
    token = _begun.set(server)
    try:
        yield
    finally:
        _begun.reset(token)


@contextlib.contextmanager
def shared() -> Iterator[ForkServer]:
    """Yield the server that was begun, or else one that ends with the block."""
    if (server := _begun.get()) is not None:
        yield server
        return
    with ForkServer() as server:
        yield server
