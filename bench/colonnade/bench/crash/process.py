"""Parties as processes: fork, serve, die; and what arrived on their wires.

Most of what a kill costs is the fork and the copying of pages. So one process may be several
parties, each with a ledger and a wire of its own, and each at a step of its own: it is killed when
all of them stand where they are to die.
"""

import contextlib
import io
import os
import selectors
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from colonnade.bench.crash.party import ENDED, FRAME, ChildPlan, Frame, die, serve
from colonnade.ledger.storage.files import LedgerFiles


def run_party(files: LedgerFiles, plan: ChildPlan) -> tuple[list[Frame], int]:
    """Fork a party, read its wire until it ends, and return the frames and its wait status."""
    pid, wire = start_party(files, plan)
    frames = list(read_frames(wire))
    _, status = os.waitpid(pid, 0)
    return frames, status


def run_parties(parties: Sequence[tuple[LedgerFiles, ChildPlan]]) -> list[tuple[list[Frame], bool]]:
    """Fork one process that is all these parties; return their frames and which were killed."""
    pipes = [os.pipe() for _ in parties]
    pid = os.fork()
    if not pid:
        try:
            for reading, _ in pipes:
                os.close(reading)
            _serve_all(parties, [writing for _, writing in pipes])
        finally:
            os._exit(1)
    for _, writing in pipes:
        os.close(writing)
    streams = _read_all([reading for reading, _ in pipes])
    _, status = os.waitpid(pid, 0)
    seen = [list(_frames_of(io.BytesIO(stream))) for stream in streams]
    killed = os.WIFSIGNALED(status)
    return [(each, killed and all(frame.what != ENDED for frame in each)) for each in seen]


def _serve_all(parties: Sequence[tuple[LedgerFiles, ChildPlan]], wires: Sequence[int]) -> None:
    """Serve one party where the one before it stands and is to die; after the last, die."""
    _heed_signals()
    sys.setrecursionlimit(len(parties) * sys.getrecursionlimit())
    left = iter(zip(parties, wires, strict=True))

    def stand() -> None:
        for (files, plan), wire in left:
            try:
                serve(files, plan, wire, stand)
            except BaseException as error:  # noqa: BLE001 - those that stand must still be killed
                sys.stderr.write(f"crash harness child: {error!r}\n")
            with contextlib.suppress(OSError):  # the harness is gone
                os.write(wire, FRAME.pack(ENDED, 0, 0))
        die()

    stand()


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # what ends the harness ends its child


def start_party(files: LedgerFiles, plan: ChildPlan, *, hold: int | None = None) -> tuple[int, int]:
    """Fork a party and return its process id and the reading end of its wire.

    With ``hold`` it waits for a byte on that descriptor before it touches the ledger.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.close(reading)
        _heed_signals()
        if hold is not None:
            os.read(hold, 1)
        status = serve(files, plan, writing, die)
    except BaseException as error:  # noqa: BLE001 - a child must never return into the parent's code
        sys.stderr.write(f"crash harness child: {error!r}\n")
    finally:
        os._exit(status)


def read_frames(wire: int) -> Iterator[Frame]:
    """Yield what arrives until the other end is gone, then close; a cut frame counts too."""
    with os.fdopen(wire, "rb") as stream:
        yield from _frames_of(stream)


def _frames_of(stream: BinaryIO) -> Iterator[Frame]:
    while len(head := stream.read(FRAME.size)) == FRAME.size:
        what, round_, size = FRAME.unpack(head)
        payload = stream.read(size)
        yield Frame(what, round_, payload, len(payload) == size)


def _read_all(wires: Sequence[int]) -> list[bytes]:
    """Read several wires until all are at their end, then close them."""
    streams = {wire: bytearray() for wire in wires}
    with selectors.DefaultSelector() as open_ones:
        for wire in wires:
            open_ones.register(wire, selectors.EVENT_READ)
        while open_ones.get_map():
            for key, _ in open_ones.select():
                piece = os.read(key.fd, 1 << 16)
                streams[key.fd] += piece
                if not piece:
                    open_ones.unregister(key.fd)
                    os.close(key.fd)
    return [bytes(stream) for stream in streams.values()]
