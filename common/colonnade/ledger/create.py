"""Make and open ledgers."""

import errno
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput, LedgerDamaged
from colonnade.ledger.caps import Place, signed_cap
from colonnade.ledger.entries import Adopted, Bound, CapSet, Closed, Entry, Opened
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.lines import entry_time, line_of
from colonnade.ledger.people.account import PeopleAccount
from colonnade.ledger.people.entries import Joined
from colonnade.ledger.people.place import account_files
from colonnade.ledger.receipts import key_to_pem, ledger_key_from_file, public_bytes
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.base import MemoryStorage, StoredRow
from colonnade.ledger.storage.files import LedgerFiles, sync_path, write_private
from colonnade.ledger.storage.sqlite import SqliteStorage
from colonnade.ledger.writing.journal import Journal

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class LedgerConfig:
    """What a new ledger starts with.

    Every account that is not named has the default cap, so account names must come from the
    party itself (its list of clients), never from a peer.
    """

    party: str
    caps: Mapping[str, int]  # by account, in units; the empty account is the default
    reason: str = "first cap"
    approver_keys: tuple[bytes, ...] = ()
    simulation: bool = False
    continues: Mapping[str, int] = field(default_factory=dict)  # and until which place
    adopted: Mapping[str, int] = field(default_factory=dict)  # "*" for accounts not named
    scoped_caps: Mapping[Place, int] = field(default_factory=dict)
    scoped_adopted: Mapping[Place, int] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    bound: Bound | None = None
    joined: Joined | None = None  # the account of its people


def create_ledger(
    files: LedgerFiles,
    config: LedgerConfig,
    *,
    signer: Ed25519PrivateKey | None = None,
    clock: Clock = time.time,
) -> None:
    """Make a ledger in a folder that does not exist yet: all of it, or nothing.

    A disk that is full or fails is an `OSError`.
    """
    if files.folder.exists() or files.mirror.exists():
        raise BadInput(f"{files.folder} or its mirror exists already; a ledger is never replaced")
    signer = signer or Ed25519PrivateKey.generate()
    rows, state = _first_rows(config, signer, clock)
    files.folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{files.folder.name}.", dir=files.folder.parent))
    try:
        made = LedgerFiles(draft, files.mirror_at)
        SqliteStorage.create(made, rows, state.head)
        write_private(made.key, key_to_pem(signer))
        sync_path(draft)
        sync_path(made.mirror.parent)
        draft.rename(files.folder)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        # One that was there before is another ledger's, which came first.
        if files.mirror_at is not None and not isinstance(error, FileExistsError):
            files.mirror_at.unlink(missing_ok=True)
        if isinstance(error, apsw.Error):  # of a disk, for the database is a new one
            number = errno.ENOSPC if isinstance(error, apsw.FullError) else errno.EIO
            raise OSError(number, os.strerror(number)) from None
        raise
    sync_path(files.folder.parent)


def open_ledger(files: LedgerFiles, *, clock: Clock = time.time, joining: bool = False) -> Ledger:
    """Open a ledger, or refuse with the reason.

    One that has joined an account of its people must know where that is, unless it is ``joining``.
    """
    storage = SqliteStorage(files)

    def people(member: Journal) -> PeopleAccount:
        return PeopleAccount(member, lambda: open_ledger(account_files(files), clock=clock))

    try:
        joined = people if files.people.exists() and not joining else None
        ledger = Ledger(storage, ledger_key_from_file(files.key), clock, people=joined)
        if ledger.state.people.joined is not None and joined is None and not joining:
            account_files(files)  # which says what is missing
        return ledger
    except (apsw.Error, ValueError):  # ValueError: text that is none
        storage.abandon()
        raise LedgerDamaged(
            f"the ledger database {files.database} is damaged; see 'colonnade ledger recover'"
        ) from None
    except BaseException:
        storage.abandon()
        raise


def memory_ledger(config: LedgerConfig, *, clock: Clock = time.time) -> Ledger:
    """Make a ledger that lives as long as this process."""
    signer = Ed25519PrivateKey.generate()
    rows, state = _first_rows(config, signer, clock)
    storage = MemoryStorage()
    storage.append(rows, state.head, releases=True)
    return Ledger(storage, signer, clock)


def _first_rows(
    config: LedgerConfig, signer: Ed25519PrivateKey, clock: Clock
) -> tuple[list[StoredRow], LedgerState]:
    ledger_id = secrets.token_bytes(16).hex()
    state, rows = LedgerState(), list[StoredRow]()
    entries: list[Entry] = [
        Opened(
            ledger_id=ledger_id,
            party=config.party,
            public_key=public_bytes(signer).hex(),
            approver_keys=[key.hex() for key in config.approver_keys],
            simulation=config.simulation,
            founding_caps=len(config.caps) + len(config.scoped_caps),
            continues=list(config.continues),
            accounted=list(config.continues.values()),
        )
    ]
    places = {("", account): units for account, units in config.caps.items()}
    for (scope, account), units in (places | dict(config.scoped_caps)).items():
        cap = CapSet(scope, account, units, config.reason, "", "")
        entries.append(signed_cap(ledger_id, len(entries) + 1, cap, sign=signer.sign))
    # What holds for all accounts comes before what single ones have spent.
    entries.extend(
        Adopted("", account, config.adopted[account], config.reason)
        for account in sorted(config.adopted, key=lambda name: name != "*")
        if config.adopted[account] > 0
    )
    entries.extend(
        Adopted(*place, units, config.reason)
        for place, units in config.scoped_adopted.items()
        if units > 0
    )
    entries.extend(Closed(job) for job in sorted(config.closed))
    entries.extend([] if config.bound is None else [config.bound])
    entries.extend([] if config.joined is None else [config.joined])
    for seq, entry in enumerate(entries, start=1):
        line = line_of(entry, seq=seq, time=entry_time(clock()))
        apply_line(state, line)
        rows.append(StoredRow(seq, line, state.head.chain_hash))
    return rows, state
