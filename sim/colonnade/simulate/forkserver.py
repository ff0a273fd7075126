"""A process that has imported what members of a federation need, and forks them.

Importing takes a member most of its start, and compiling or loading kernels the rest; here both
happen once, for all members of a simulation, and while its tables are being made. What a fork runs
is the command line, as in a process of its own. It shares no file, no connection and no randomness
with its siblings: none is open before it is forked, and noise comes from the operating system.

    python -m colonnade.simulate.forkserver 5      (a socket's number)

A request is a line of JSON, with the log's descriptor beside it; answers are lines too: the fork's
process id, and later how it ended. Standard input is a pipe
whose other end the starter alone has: forks end with it, even if it is killed.
"""

import contextlib
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from colonnade.cli.main import main
from colonnade.cli.parser import find
from colonnade.core.errors import EXIT_INTERNAL, EXIT_SIGNAL, Unreachable

COMMANDS = (("coordinator",), ("party", "run"))
KERNELS = ("frank-wolfe", "moments")
_MAX_LINE = 1 << 16
# The first start on a machine compiles; a server that has ended is noticed at once.
_START_S, _STOP_S, _LOOK_S = 600.0, 10.0, 0.02
# Of a terminal or a runner, to all processes at once: who asked for the forks ends them.
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        self.gone = False
        self._rest, self._pids = b"", list[int]()
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "colonnade.simulate.forkserver"]
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=leash,
                pass_fds=[theirs.fileno()],
                umask=0o077,  # what the forks write is nobody else's to read
            )
        os.close(leash)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, arguments: Sequence[str], log: int) -> Forked:
        """Fork a process that runs a command and writes to ``log``."""
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
                self._pids.append(line["pid"])
        return bool(said)

    def close(self) -> None:
        """End the server; its forks go on until they are stopped."""
        self._socket.close()
        self._process.wait()
        os.close(self._leash)


def _leashed() -> None:
    """End with the process that has the other end of standard input."""
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """Stop this process, gently first, when standard input ends."""
    while os.read(sys.stdin.fileno(), 4096):  # not the buffered reader: its lock outlives a thread
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_S)
    os._exit(1)


def serve(connection: socket.socket) -> None:
    """Fork on request until the other end closes."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _NOT_FOR_US}
    _preload()
    awake, wake = socket.socketpair()
    for end in (awake, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    looks = selectors.DefaultSelector()
    looks.register(connection, selectors.EVENT_READ)
    looks.register(awake, selectors.EVENT_READ)
    while True:
        for key, _ in looks.select():
            if key.fileobj is awake:
                with contextlib.suppress(BlockingIOError):
                    awake.recv(_MAX_LINE)
                _reap(connection)
                continue
            line, files, *_ = socket.recv_fds(connection, _MAX_LINE, 1)
            if not line:
                return
            _fork(connection, json.loads(line), files[0], before)


def _preload() -> None:
    for words in COMMANDS:
        with contextlib.suppress(ImportError):  # the fork meets it again, and says it
            importlib.import_module(find(words).command.module)
    with contextlib.suppress(ImportError):
        importlib.import_module("colonnade.party.vault.warming").warm(KERNELS)


def _fork(
    connection: socket.socket,
    arguments: Sequence[str],
    log: int,
    handlers: Mapping[signal.Signals, Any],
) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal that reaches the fork before its handlers are back waits instead of being ignored.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_US)
    if (pid := os.fork()) == 0:
        _become(connection, arguments, log, handlers, unblocked)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    os.close(log)
    _tell(connection, {"pid": pid})


def _become(
    connection: socket.socket,
    arguments: Sequence[str],
    log: int,
    handlers: Mapping[signal.Signals, Any],
    unblocked: set[int | signal.Signals],
) -> None:
    """Run a command in the fork, and end with its exit code."""
    code = EXIT_INTERNAL
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.close()
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        _leashed()
        sys.argv = ["colonnade", *arguments]
        code = main(arguments)
    except KeyboardInterrupt:  # before the command itself has a word for it
        code = EXIT_SIGNAL + signal.SIGINT
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _reap(connection: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _tell(connection, {"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _tell(connection: socket.socket, line: Mapping[str, int]) -> None:
    with contextlib.suppress(OSError):  # nobody asks any more
        connection.sendall(json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
