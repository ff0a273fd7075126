"""Ledgers for tests."""

import hashlib
from pathlib import Path

import apsw
import numpy as np
import pytest

from colonnade.core.arrays import IntArray
from colonnade.core.errors import LedgerDamaged
from colonnade.ledger.create import LedgerConfig, create_ledger, memory_ledger, open_ledger
from colonnade.ledger.entries import Entry, ReleaseKey
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.lines import line_of
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage import sqlite as storage_module
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian

CAP = units_down(1.0)
MECHANISM = DiscreteGaussian(sigma2=50, l2_sensitivity2=4)  # rho 0.04: 25 of them fill the cap
VALUE: IntArray = np.arange(5, dtype=np.int64)


def key(round_: int = 0, *, job: str = "job", kind: str = "share", account: str = "") -> ReleaseKey:
    return ReleaseKey(job, round_, kind, account)


def digest(request: bytes) -> str:
    return hashlib.sha256(request).hexdigest()


def new_ledger(kind: str, folder: Path, **config: object) -> Ledger:
    """Make a ledger in memory or on disk; the clock stands still."""
    config = {"party": "hospital", "caps": {"": CAP}, **config}
    if kind == "memory":
        return memory_ledger(LedgerConfig(**config), clock=lambda: 1.7e9)  # type: ignore[arg-type]
    files = LedgerFiles(folder / "ledger")
    create_ledger(files, LedgerConfig(**config), clock=lambda: 1.7e9)  # type: ignore[arg-type]
    return open_ledger(files, clock=lambda: 1.7e9)


def unsync_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: commits are acknowledged before they are on the disk."""
    real = storage_module._connect

    def normal(path: Path, *, vfs: str | None) -> apsw.Connection:
        database = real(path, vfs=vfs)
        database.execute("PRAGMA synchronous = NORMAL")
        return database

    monkeypatch.setattr(storage_module, "_connect", normal)


def spending(ledger: Ledger) -> tuple[object, ...]:
    """Return what a refusal must leave alone: a refused job is noted, and costs nothing."""
    state = ledger.state
    reserved = {name: units for name, units in state.reserved.items() if units}
    return state.total, reserved, {**state.left}, len(state.charges), len(state.stored)


def reopened(ledger: Ledger, folder: Path) -> Ledger:
    """Close a ledger of `new_ledger` on disk, and open it again."""
    ledger.close()
    return open_ledger(LedgerFiles(folder / "ledger"), clock=lambda: 1.7e9)


def tampered(ledger: Ledger, *entries: Entry) -> bool:
    """Return whether a ledger with these entries after its own is refused."""
    lines = [*ledger.lines()]
    lines += [line_of(each, seq=len(lines) + 1 + at, time=1) for at, each in enumerate(entries)]
    state = LedgerState()
    try:
        for line in lines:
            apply_line(state, line)
    except LedgerDamaged:
        return True
    return False
