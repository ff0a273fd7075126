"""Damaged files: flip, cut, zero, swap and delete, and see that no ledger opens with more."""

import contextlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.party import answer, fresh_ledger, key_of, request_of
from colonnade.core.errors import ColonnadeError
from colonnade.ledger.create import open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.receipts import ledger_key_from_file
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.sqlite import SqliteStorage

_NAMES = ("ledger.db", "ledger.db-wal", "ledger.db-wal", "head.mirror", "ledger.key")
_KINDS = (
    *("flip", "flip", "flip", "zero", "cut", "grow"),
    *("delete", "empty", "older", "shuffle", "twin"),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """The files of a ledger as a killed process left them, others, and what they hold.

    ``older`` are from half-way; ``twin`` is a copy that went another way from there and is as long.
    """

    now: Path
    older: Path
    twin: Path
    spent: int
    bodies: dict[int, bytes]


def make_scene(folder: Path, rounds: int, *, pending: bool) -> Scene:
    """Answer ``rounds`` rounds and copy the live files, half-way and at the end.

    With ``pending`` the last round is charged and not stored.
    """
    files = fresh_ledger(folder / "live")
    ledger = Ledger(SqliteStorage(files), ledger_key_from_file(files.key), time.time)
    bodies: dict[int, bytes] = {}
    older, now = folder / f"older-{rounds}-{pending}", folder / f"now-{rounds}-{pending}"
    for round_ in range(rounds):
        if round_ == rounds // 2:
            _copy(files.folder, older)

        def send(body: bytes, round_: int = round_) -> None:
            bodies[round_] = body

        answer(ledger, key_of(round_), request_of(round_), lambda _: None, send)
    if pending:

        def stop(step: object) -> None:
            if getattr(step, "value", "") == "charged":
                raise InterruptedError

        with contextlib.suppress(InterruptedError):
            answer(ledger, key_of(rounds), request_of(rounds), stop, lambda _: None)
    _copy(files.folder, now)
    spent = ledger.head.spent
    ledger.close()
    twin = LedgerFiles(folder / f"twin-{rounds}-{pending}")
    _copy(older, twin.folder)
    other = Ledger(SqliteStorage(twin), ledger_key_from_file(twin.key), time.time)
    for round_ in range(rounds // 2, rounds):
        answer(other, key_of(round_), request_of(round_), lambda _: None, lambda _: None)
    other.close()
    return Scene(now, older, twin.folder, spent, bodies)


def run_corruptions(
    folder: Path,
    corruptions: int,
    *,
    seed: int | tuple[int, ...] = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Counters, int]:
    """Damage ``corruptions`` copies in one place each; return the counters and the refusals.

    Scenes: all entries in the log; most of them copied into the database; a release under way.
    """
    choose = np.random.default_rng(seed)
    scenes = [
        make_scene(folder, 12, pending=False),
        make_scene(folder, 70, pending=False),
        make_scene(folder, 12, pending=True),
    ]
    counters, refused = Counters(), 0
    damaged = LedgerFiles(folder / "damaged")
    for done in range(corruptions):
        scene = scenes[done % len(scenes)]
        _copy(scene.now, damaged.folder)
        _damage(damaged.folder, scene, choose)
        refused += not _check(damaged, scene, counters)
        progress(done + 1)
    return counters, refused


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _damage(folder: Path, scene: Scene, choose: np.random.Generator) -> None:
    path = folder / _NAMES[int(choose.integers(len(_NAMES)))]
    kind = _KINDS[int(choose.integers(len(_KINDS)))]
    path.chmod(0o600)
    size = path.stat().st_size
    content = bytearray(path.read_bytes())
    place = int(choose.integers(size))
    if kind == "delete":
        path.unlink()
        return
    if kind == "twin":
        for name in ("ledger.db", "ledger.db-wal"):
            shutil.copyfile(scene.twin / name, folder / name)
        return
    if kind == "flip":
        # Half of the flips where something is written: long runs of zeros are unused.
        used = np.flatnonzero(np.frombuffer(content, np.uint8))
        if choose.integers(2) and used.size:
            place = int(used[int(choose.integers(used.size))])
        content[place] ^= 1 << int(choose.integers(8))
    elif kind == "zero":
        stop = min(size, place + int(choose.integers(1, 8192)))
        content[place:stop] = bytes(stop - place)
    elif kind == "cut":
        del content[place:]
    elif kind == "grow":
        content += choose.bytes(int(choose.integers(1, 8192)))
    elif kind == "empty":
        content.clear()
    elif kind == "older":
        content = bytearray((scene.older / path.name).read_bytes())
    else:  # two pages change places
        a, b = (int(choose.integers(max(1, size // 4096))) * 4096 for _ in range(2))
        page = content[a : a + 4096]
        content[a : a + 4096], content[b : b + 4096] = content[b : b + 4096], page
    path.write_bytes(content)


def _check(damaged: LedgerFiles, scene: Scene, counters: Counters) -> bool:
    """Count what an opened ledger lost; return whether it opened."""
    try:
        ledger = open_ledger(damaged)
    except ColonnadeError:
        return False
    try:
        counters.opened_with_more_budget += ledger.head.spent < scene.spent
        for round_, body in scene.bodies.items():
            released = ledger.stored(key_of(round_))
            counters.re_drawn += released is None or released.body != body
    except ColonnadeError:
        return False  # it stopped at the first use
    finally:
        with contextlib.suppress(ColonnadeError):
            ledger.close()
    return True
