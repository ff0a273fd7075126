"""Starts nets for a vault that gave up its network, and so cannot start them itself.

For each byte on its socket it starts a net in place of the one before, and sends the vault's end of
their connection. It ends with the vault. It has no data, and reads no file itself.

Privacy: it passes on what nets say on standard error, and no net holds the stream on which the
vault says what answers took: whoever has one end of a pipe can open the other (`/proc/self/fd`).
"""

import contextlib
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Callable

from colonnade.party.isolation.kernel import die_with_parent

logger = logging.getLogger(__name__)
_LONGEST_LINE = 1 << 16


class _Words:
    """What nets say, passed on in whole lines unless they are very long."""

    def __init__(self) -> None:
        self.reads, self._writes = os.pipe()
        os.set_blocking(self.reads, False)
        self._held = bytearray()

    def be_said(self) -> None:
        """Make this the output of the present process, a net, which keeps no other."""
        os.close(self.reads)
        for standard in (1, 2):
            os.dup2(self._writes, standard)
        os.close(self._writes)

    def pass_on(self, *, rest: bool = False) -> None:
        """Write what was said since, with a line that has not ended only if it is the ``rest``."""
        with contextlib.suppress(BlockingIOError):
            self._held += os.read(self.reads, _LONGEST_LINE)
        end = self._held.rfind(b"\n") + 1
        if rest or len(self._held) > _LONGEST_LINE:
            end = len(self._held)
        with contextlib.suppress(OSError):  # nobody reads it any more
            sent = 0
            while sent < end:
                sent += os.write(2, self._held[sent:end])
        del self._held[:end]


def launch(control: socket.socket, net: Callable[[socket.socket], int]) -> None:
    """Run ``net`` in a process of its own whenever the vault asks, until the vault ends."""
    die_with_parent()
    child, words = 0, _Words()
    with contextlib.suppress(OSError):  # the vault went away
        while _asked(control, words):
            _end(child)
            ours, vaults = socket.socketpair()
            child = os.fork()  # before anything is imported that has threads
            if child == 0:
                control.close()
                vaults.close()
                words.be_said()
                _be(net, ours)
            ours.close()
            socket.send_fds(control, [b"n"], [vaults.fileno()])
            vaults.close()
    _end(child)
    words.pass_on(rest=True)


def _asked(control: socket.socket, words: _Words) -> bool:
    """Pass on what is said until the vault asks for a net; return whether it is still there."""
    asking = control.fileno()
    while asking not in select.select([asking, words.reads], [], [])[0]:
        words.pass_on()
    return bool(control.recv(1))


def _be(net: Callable[[socket.socket], int], link: socket.socket) -> None:
    """Be a net, and never return."""
    die_with_parent()
    code = 1
    try:
        code = net(link)
    except Exception:
        logger.exception("net_failed")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end(child: int) -> None:
    if child:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
