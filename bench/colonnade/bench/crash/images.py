"""Power loss: rebuild what a disk may hold after one, and open it.

All writes and syncs of a run are recorded. An image is a moment of that record: what was synced
is there; each later write is there, missing, or torn at a sector, independently, in any order.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.party import (
    MECHANISM,
    answer_together,
    fresh_ledger,
    groups,
    key_of,
)
from colonnade.bench.crash.vfs import Operation, Sync, Write, hooked_storage
from colonnade.core.errors import ColonnadeError
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Step
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.receipts import ledger_key_from_file
from colonnade.ledger.storage.files import LedgerFiles

_SECTOR = 512
# Enough for the log to be copied into the database on the way.
_ROUNDS = 70


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A mark in the record: by now this round was charged, or its body sent."""

    round: int
    body: bytes | None


Record: TypeAlias = list[Operation | Acknowledged]


def record_run(folder: Path, rounds: int, *, together: int = 1) -> tuple[dict[str, bytes], Record]:
    """Answer some rounds and return the files before, and everything that happened to them."""
    files = fresh_ledger(folder / "recorded")
    before = {path.name: path.read_bytes() for path in files.folder.iterdir()}
    record: Record = []
    _answer_all(files, range(rounds), record, together)
    return before, record


def _answer_all(files: LedgerFiles, rounds: range, record: Record, together: int) -> None:
    storage, _layer = hooked_storage(files, record.append)
    ledger = Ledger(storage, ledger_key_from_file(files.key), time.time)

    def send(round_: int, body: bytes) -> None:
        record.append(Acknowledged(round_, body))

    for group in groups(rounds, together):

        def at(step: object, group: Sequence[int] = group) -> None:
            if step is Step.CHARGED:
                record.extend(Acknowledged(round_, None) for round_ in group)

        answer_together(ledger, group, at, send)
    ledger.close()


def run_images(
    folder: Path,
    images: int,
    *,
    seed: int | tuple[int, ...] = 0,
    together: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Counters:
    """Open ``images`` legal results of a power loss and count what they lost."""
    choose = np.random.default_rng(seed)
    before, record = record_run(folder, _ROUNDS, together=together)
    counters = Counters()
    image = LedgerFiles(folder / "image")
    for done in range(images):
        moment = int(choose.integers(len(record) + 1))
        _build(image.folder, before, record[:moment], choose)
        _check(image, record[:moment], counters)
        progress(done + 1)
    return counters


def run_double_images(
    folder: Path,
    images: int,
    *,
    seed: int | tuple[int, ...] = 0,
    together: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Counters:
    """Kill a party, let another replay what it left, then cut the power.

    What the killed process had written and not synced is still there for its successor, which
    hands it out; after the power cut it may be gone, unless the successor synced it first.
    """
    choose = np.random.default_rng(seed)
    before, record = record_run(folder, 6, together=together)
    counters = Counters()
    image = LedgerFiles(folder / "image")
    for done in range(images):
        killed = record[: int(choose.integers(len(record) + 1))]
        _build(image.folder, before, killed, None)
        after: Record = []
        _answer_all(image, range(6), after, together)
        whole = [*killed, *after[: int(choose.integers(len(after) + 1))]]
        _build(image.folder, before, whole, choose)
        _check(image, whole, counters)
        progress(done + 1)
    return counters


def _build(
    target: Path,
    before: dict[str, bytes],
    record: Record,
    choose: np.random.Generator | None,
) -> None:
    """Write the files as a power cut after ``record`` may leave them; uncut without ``choose``."""
    files = {name: bytearray(content) for name, content in before.items()}
    synced = {item.file: place for place, item in enumerate(record) if isinstance(item, Sync)}
    for place, item in enumerate(record):
        if not isinstance(item, Write):
            continue
        file, data = files.setdefault(item.file, bytearray()), item.data
        if choose is not None and place > synced.get(item.file, -1):
            fate = choose.random()
            if fate < 0.4:
                continue  # lost
            if fate < 0.6:  # torn
                data = data[: int(choose.integers(len(data) // _SECTOR + 1)) * _SECTOR]
        if item.cuts:
            del file[item.offset :]
        else:
            file.extend(bytes(max(0, item.offset - len(file))))
            file[item.offset : item.offset + len(data)] = data
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name, content in files.items():
        (target / name).write_bytes(content)


def _check(image: LedgerFiles, record: Record, counters: Counters) -> None:
    marks = [item for item in record if isinstance(item, Acknowledged)]
    charged = {mark.round for mark in marks}
    sent = {mark.round: mark.body for mark in marks if mark.body is not None}
    try:
        ledger = open_ledger(image)
    except ColonnadeError:
        counters.stranded += 1  # a power loss alone must never keep a ledger from opening
        return
    try:
        kept = {key.round for key in ledger.state.charges}
        counters.under_counted += len(sent.keys() - kept)
        counters.opened_with_more_budget += ledger.head.spent < MECHANISM.cost * len(charged)
        for round_, body in sent.items():
            released = ledger.stored(key_of(round_))
            counters.re_drawn += released is None or released.body != body
    finally:
        with contextlib.suppress(ColonnadeError):
            ledger.close()
