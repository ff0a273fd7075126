"""Starts nets for a vault that gave up its network, and so cannot start them itself.

For each byte on its socket it starts a net in place of the one before, and sends the vault's end of
their connection. It ends with the vault. It has no data, and reads no file itself.
"""

import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable

from colonnade.party.isolation.kernel import die_with_parent

logger = logging.getLogger(__name__)


def launch(control: socket.socket, net: Callable[[socket.socket], int]) -> None:
    """Run ``net`` in a process of its own whenever the vault asks, until the vault ends."""
    die_with_parent()
    child = 0
    with contextlib.suppress(OSError):  # the vault went away
        while control.recv(1):
            _end(child)
            ours, vaults = socket.socketpair()
            child = os.fork()  # before anything is imported that has threads
            if child == 0:
                control.close()
                vaults.close()
                _be(net, ours)
            ours.close()
            socket.send_fds(control, [b"n"], [vaults.fileno()])
            vaults.close()
    _end(child)


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
