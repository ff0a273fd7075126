"""Make, open and recover ledgers."""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput, LedgerDamaged
from colonnade.privacy.entries import Adopted, CapSet, Entry, Opened, line_of
from colonnade.privacy.ledger import Ledger, signed_cap
from colonnade.privacy.receipts import Receipt, key_to_pem, ledger_key_from_file, public_bytes
from colonnade.privacy.state import LedgerState
from colonnade.privacy.storage import (
    HeadMirror,
    LedgerFiles,
    MemoryStorage,
    Row,
    SqliteStorage,
    hold_lock,
)

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Charter:
    """What a new ledger starts with."""

    party: str
    caps: Mapping[str, int]  # by account, in units; the empty account is the default
    reason: str = "first cap"
    approver_key: bytes = b""
    simulation: bool = False
    continues: str = ""
    adopted: Mapping[str, int] = field(default_factory=dict)


def create_ledger(
    files: LedgerFiles,
    charter: Charter,
    *,
    signer: Ed25519PrivateKey | None = None,
    clock: Clock = time.time,
) -> None:
    """Make a ledger in a folder that does not exist yet: all of it, or nothing."""
    if files.folder.exists() or files.mirror.exists():
        raise BadInput(f"{files.folder} or its mirror exists already; a ledger is never replaced")
    signer = signer or Ed25519PrivateKey.generate()
    rows, state = _first_rows(charter, signer, clock)
    files.folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{files.folder.name}.", dir=files.folder.parent))
    try:
        made = LedgerFiles(draft, files.mirror_at)
        SqliteStorage.create(made, rows, state.head)
        _write_private(made.key, key_to_pem(signer))
        _sync_folder(draft)
        draft.rename(files.folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    _sync_folder(files.folder.parent)


def open_ledger(files: LedgerFiles, *, clock: Clock = time.time) -> Ledger:
    """Open a ledger, or refuse with the reason."""
    storage = SqliteStorage(files)
    try:
        return Ledger(storage, ledger_key_from_file(files.key), clock)
    except (apsw.Error, ValueError):  # ValueError: text that is none
        storage.close()
        raise LedgerDamaged(
            f"the ledger database {files.database} is damaged; "
            "see 'colonnade ledger recover --help'"
        ) from None
    except BaseException:
        storage.close()
        raise


def memory_ledger(charter: Charter, *, clock: Clock = time.time) -> Ledger:
    """Make a ledger that lives as long as this process."""
    signer = Ed25519PrivateKey.generate()
    rows, state = _first_rows(charter, signer, clock)
    storage = MemoryStorage()
    storage.append(rows, state.head, releases=True)
    return Ledger(storage, signer, clock)


def recover_ledger(
    old: LedgerFiles,
    new: LedgerFiles,
    *,
    receipts: Sequence[Receipt] = (),
    clock: Clock = time.time,
) -> Mapping[str, int]:
    """Found a ledger that takes over from a damaged or rolled-back one; return what it adopts.

    Each account adopts the most that its readable entries or any receipt show, plus all that the
    mirror knows to be missing, plus the dearest release seen, for one that may have been under
    way. No release is carried over: old jobs are not answered again. The key moves to the new
    folder, so that the old ledger cannot open any more.
    """
    if new.folder.exists() or new.mirror.exists():
        raise BadInput(f"{new.folder} or its mirror exists already; name a new folder")
    lock = hold_lock(old.lock)
    try:
        signer = ledger_key_from_file(old.key)
        state = _readable_part(old)
        opened = state.opened
        if opened is None or not state.caps:
            raise LedgerDamaged(
                f"no cap can be read from {old.folder}; ask the approver for a new ledger"
            )
        charter = Charter(
            party=opened.party,
            caps=state.caps,
            reason=f"recovered from ledger {opened.ledger_id}",
            approver_key=bytes.fromhex(opened.approver_key),
            simulation=opened.simulation,
            continues=opened.ledger_id,
            adopted=_to_adopt(state, _missing(old, state), receipts),
        )
        create_ledger(new, charter, signer=signer, clock=clock)
        old.key.unlink()
        _sync_folder(old.folder)
    finally:
        os.close(lock)
    return charter.adopted


def _to_adopt(state: LedgerState, missing: int, receipts: Sequence[Receipt]) -> dict[str, int]:
    dearest = max((charge.units for charge in state.charges.values()), default=0)
    names = {key.digest(): key.account for key in state.charges}
    spent = {account: state.spent.get(account, 0) for account in {*state.caps, *state.spent}}
    for receipt in receipts:
        if state.opened is None or not receipt.signed_by(bytes.fromhex(state.opened.public_key)):
            raise BadInput("a receipt was not signed by this ledger; leave it out")
        # A receipt for a release that is no longer readable counts against the default account.
        account = names.get(receipt.key_sha256, "")
        spent[account] = max(spent.get(account, 0), receipt.spent)
    return {
        account: min(state.cap(account), units + missing + dearest)
        for account, units in spent.items()
        if units + missing + dearest > 0
    }


def _missing(files: LedgerFiles, state: LedgerState) -> int:
    try:
        mirror = HeadMirror(files.mirror)
    except OSError:
        return 0
    head = mirror.head
    mirror.close()
    return max(0, head.spent - state.total) if head else 0


def _readable_part(files: LedgerFiles) -> LedgerState:
    state = LedgerState()
    try:
        database = apsw.Connection(str(files.database), flags=apsw.SQLITE_OPEN_READWRITE)
        for line, chain_hash in database.execute("SELECT line, hash FROM entry ORDER BY seq"):
            state.apply(line)
            if state.head.chain_hash != chain_hash:
                break
        database.close()
    except (apsw.Error, LedgerDamaged):
        pass  # what was folded so far is the readable part
    return state


def _first_rows(
    charter: Charter, signer: Ed25519PrivateKey, clock: Clock
) -> tuple[list[Row], LedgerState]:
    ledger_id = secrets.token_bytes(16).hex()
    state, rows = LedgerState(), list[Row]()
    entries: list[Entry] = [
        Opened(
            ledger_id=ledger_id,
            party=charter.party,
            public_key=public_bytes(signer).hex(),
            approver_key=charter.approver_key.hex(),
            simulation=charter.simulation,
            continues=charter.continues,
        )
    ]
    for account, units in charter.caps.items():
        cap = CapSet(account, units, charter.reason, "", "")
        entries.append(signed_cap(ledger_id, len(entries) + 1, cap, signer=signer))
    for account, units in charter.adopted.items():
        entries.append(Adopted(account, units, charter.reason))
    for seq, entry in enumerate(entries, start=1):
        line = line_of(entry, seq=seq, time=int(clock()))
        state.apply(line)
        rows.append(Row(seq, line, state.head.chain_hash))
    return rows, state


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
