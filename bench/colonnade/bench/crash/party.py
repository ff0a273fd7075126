"""The process that is made to fail: a ledger, a gate and a wire, in a forked child.

The child answers a list of keys in order, one by one or several together, and writes every body to
a pipe, which stands for the network: whatever the parent reads there has left the party.
"""

import os
import shutil
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import ColonnadeError, RequestConflict
from colonnade.ledger.create import LedgerConfig, create_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, Step, request_digest
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.receipts import ledger_key_from_file
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.sqlite import SqliteStorage
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import OsNoise

MECHANISM = DiscreteGaussian(sigma2=2**40, l2_sensitivity2=2**30)
CAP = units_down(1.0)
VALUE: IntArray = np.arange(24, dtype=np.int64)

# Frames on the wire: what happened, which round, how long, then the bytes.
FRAME = struct.Struct(">cIQ")
BODY, OPENED, MUTATED_OK, REFUSED, FAILED, FIRED = b"B", b"O", b"M", b"R", b"F", b"!"
ENDED = b"E"  # of several parties in a process: this one was not killed

Send: TypeAlias = Callable[[bytes], None]
At: TypeAlias = Callable[[object], None]
OpenStorage: TypeAlias = Callable[[LedgerFiles, At], SqliteStorage]
Answer: TypeAlias = Callable[[Ledger, ReleaseKey, bytes, At, Send], None]


def key_of(round_: int) -> ReleaseKey:
    """Name the release of a round."""
    return ReleaseKey("crash", round_, "share")


def request_of(round_: int) -> bytes:
    """Return the request of a round."""
    return b"request %d" % round_


def answer(ledger: Ledger, key: ReleaseKey, request: bytes, at: At, send: Send) -> None:
    """Release through the gate, then send: the order under test."""
    released = Gate(ledger, OsNoise(), at=at).release(key, request, MECHANISM, VALUE.copy)
    send(released.body)


def answer_together(
    ledger: Ledger, rounds: Sequence[int], at: At, send: Callable[[int, bytes], None]
) -> None:
    """Release several rounds at once through the gate, then send them."""
    requests = [
        ReleaseRequest(key_of(round_), MECHANISM, request_digest(request_of(round_)))
        for round_ in rounds
    ]
    gate = Gate(ledger, OsNoise(), at=at)
    for reply in gate.release_many(requests, lambda keys: [VALUE.copy() for _ in keys]):
        if isinstance(reply, Released):
            send(reply.key.round, reply.body)


def groups(rounds: Sequence[int], together: int) -> list[Sequence[int]]:
    """Cut the rounds into pieces that are answered together."""
    return [rounds[at : at + together] for at in range(0, len(rounds), together)]


class SteppedMirror(HeadMirror):
    """A mirror with places to die: after the commit before its write, and after its sync."""

    def __init__(self, path: Path, at: At) -> None:
        super().__init__(path)
        self._at = at

    def write(self, head: Head, *, force: bool) -> None:
        """Write with a place to die before and after."""
        self._at("committed")
        super().write(head, force=force)
        self._at("mirrored")


def stepped_storage(files: LedgerFiles, at: At) -> SqliteStorage:
    """Open the shipped storage with the stepped mirror."""
    return SqliteStorage(files, mirror=lambda path: SteppedMirror(path, at))


@dataclass(frozen=True, slots=True)
class Frame:
    """Something that reached the other side of the wire; ``whole`` unless it was cut off."""

    what: bytes
    round: int
    payload: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """What a child does and where it dies."""

    rounds: Sequence[int]
    answer: Answer = answer  # unless several are answered together
    die_at: tuple[int, object] | None = None  # the n-th time that this step is passed
    mutate: int | None = None  # first ask for this round with another request
    open_storage: OpenStorage = stepped_storage
    on_fault: Callable[[Callable[[], None]], None] = lambda _: None  # told how to report a fault
    together: int = 1


def fresh_ledger(folder: Path) -> LedgerFiles:
    """Make an empty ledger for one series of crashes."""
    shutil.rmtree(folder, ignore_errors=True)
    files = LedgerFiles(folder)
    create_ledger(files, LedgerConfig("crash", {"": CAP}))
    return files


def die(_: object = None) -> None:
    """End this process as a power switch would."""
    os.kill(os.getpid(), signal.SIGKILL)


def serve(files: LedgerFiles, plan: ChildPlan, wire: int, end: Callable[[], None]) -> int:
    """Answer what the plan says; `end` is where it dies."""
    left = plan.die_at[0] if plan.die_at else -1

    def at(step: object) -> None:
        nonlocal left
        if plan.die_at and step == plan.die_at[1]:
            left -= 1
            if left == 0:
                end()

    def tell(what: bytes, round_: int, payload: bytes) -> None:
        os.write(wire, FRAME.pack(what, round_, len(payload)) + payload)

    plan.on_fault(lambda: tell(FIRED, 0, b""))
    status = 0
    try:
        ledger = Ledger(plan.open_storage(files, at), ledger_key_from_file(files.key), time.time)
    except ColonnadeError as error:
        tell(FAILED, 0, error.code.encode())
        return 2
    tell(OPENED, 0, struct.pack(">Q", ledger.budget().remaining))
    if plan.mutate is not None:
        _mutate(ledger, plan, tell)

    def send(round_: int, body: bytes) -> None:
        at("before send")
        os.write(wire, FRAME.pack(BODY, round_, len(body)) + body[: len(body) // 2])
        at("amid send")
        os.write(wire, body[len(body) // 2 :])
        at("after send")

    for rounds in groups(plan.rounds, plan.together):
        try:
            if plan.together > 1:
                answer_together(ledger, rounds, at, send)
            else:
                (round_,) = rounds
                key, request = key_of(round_), request_of(round_)
                plan.answer(ledger, key, request, at, partial(send, round_))
        except ColonnadeError as error:
            # A party would stop here; this one goes on asking, to see that nothing more comes.
            tell(FAILED, rounds[0], error.code.encode())
            status = 2
    try:
        ledger.close()
    except ColonnadeError as error:
        tell(FAILED, 0, error.code.encode())
        status = 2
    return status


def _mutate(ledger: Ledger, plan: ChildPlan, tell: Callable[[bytes, int, bytes], None]) -> None:
    round_ = plan.mutate or 0
    try:
        plan.answer(ledger, key_of(round_), b"another request", lambda _: None, lambda _: None)
    except RequestConflict:
        tell(REFUSED, round_, b"")
    else:
        tell(MUTATED_OK, round_, b"")


STEPS: tuple[object, ...] = (
    *Step,
    "committed",
    "mirrored",
    "before send",
    "amid send",
    "after send",
)
