"""A process that has imported what members of a federation need, and forks them.

Importing takes a member most of its start, and compiling or loading kernels the rest; here both
happen once, for all members of a simulation, and while its tables are being made. What a fork runs
is the command line, as in a process of its own. It shares no file, no connection and no randomness
with its siblings: none is open before it is forked, and noise comes from the operating system.

    python -m colonnade.simulate.forks.server 5      (a socket's number)

A party is two processes: what starts its net is forked too, beside it and before it.

A request is a line of JSON, with the log's descriptor beside it; answers are lines too: the fork's
process id, and later how it ended. Standard input is a pipe
whose other end the starter alone has: forks end with it, even if it is killed.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from colonnade.cli.main import main
from colonnade.cli.parser import find
from colonnade.core.errors import EXIT_INTERNAL, EXIT_OK, EXIT_SIGNAL

_PARTY, _NET = ("party", "run"), ("party", "net")
COMMANDS = (("coordinator",), _PARTY, _NET)
# What the commands import once they have given up their rights.
_LATER = (
    "colonnade.party.vault.process",
    "colonnade.party.net.launcher",
    "colonnade.party.net.process",
)
KERNELS = ("frank-wolfe", "moments")
_MAX_LINE = 1 << 16
_STOP_S = 10.0
# Of a terminal or a runner, to all processes at once: who asked for the forks ends them.
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
            try:
                line, files, *_ = socket.recv_fds(connection, _MAX_LINE, 1)
            except ConnectionError:  # it ended before it had read all that was said
                return
            if not line:
                return
            _fork(connection, json.loads(line), files[0], before)


def _preload() -> None:
    gc.disable()  # nothing of this is garbage
    for name in (*(find(words).command.module for words in COMMANDS), *_LATER):
        with contextlib.suppress(ImportError):  # the fork meets it again, and says it
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("colonnade.party.vault.warming").warm(KERNELS)
    gc.freeze()
    gc.enable()


def _fork(
    connection: socket.socket,
    arguments: Sequence[str],
    log: int,
    handlers: Mapping[signal.Signals, Any],
) -> None:
    """Fork what runs a command; if it is a party, what starts its net before it."""
    child = partial(_child, connection, log=log, handlers=handlers)
    if tuple(arguments[:2]) == _PARTY:
        vaults, nets = socket.socketpair()
        with vaults, nets:
            child([*_NET, *arguments[2:], "--control-fd", str(nets.fileno())], without=vaults)
            pid = child([*arguments, "--control-fd", str(vaults.fileno())], without=nets)
    else:
        pid = child(arguments)
    os.close(log)
    _tell(connection, {"pid": pid})


def _child(
    connection: socket.socket,
    arguments: Sequence[str],
    *,
    log: int,
    handlers: Mapping[signal.Signals, Any],
    without: socket.socket | None = None,
) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal that reaches the fork before its handlers are back waits instead of being ignored.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_US)
    if (pid := os.fork()) == 0:
        connection.close()
        if without is not None:
            without.close()
        _become(arguments, log, handlers, unblocked)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    return pid


def _become(
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
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        if tuple(arguments[:2]) == _NET:  # it ends with its vault, and forks: no threads
            os.setsid()
        else:
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
    os._exit(EXIT_OK)  # what was imported need not be taken down piece by piece
