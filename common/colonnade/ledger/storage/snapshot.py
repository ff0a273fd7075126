"""Read a ledger without opening it: no lock, no write, no checkpoint, while a party may append.

The database and its log are copied into memory and SQLite recovers the copy. Between checkpoints
the log only grows, and a checkpoint writes only pages that the log holds, so a database copied
first and a log copied after it are one consistent state unless the log was started over
meanwhile. SQLite then writes a new header before anything else: the copy is taken again until the
header is the same before and after. A frame that is half written fails its checksum and is left
out, as after a power cut.

What is shown ends at the newest entry that the head mirror confirms: the mirror is written only
after a commit was forced to disk, so every entry up to there is durable. What the mirror knew
before the copy was taken must be in it, on the chain.
"""

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from colonnade.core.errors import BadInput, LedgerBusy, LedgerDamaged, LedgerRolledBack
from colonnade.ledger.caps import PERSON, ScopedBudget
from colonnade.ledger.people.place import account_files
from colonnade.ledger.people.rules import ALL_PROJECTS
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import Head, LedgerState
from colonnade.ledger.storage.files import LedgerFiles, why_stopped
from colonnade.ledger.storage.loading import load_state
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.sqlite import check_database

_HEADER_BYTES = 32  # of SQLite's log
_PATIENCE_S = 10.0
_PAUSE_S = 0.001


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A verified ledger as of the entry that its mirror confirmed."""

    state: LedgerState
    lines: tuple[str, ...]
    newer: int  # entries in the log that the mirror has not confirmed yet
    specs: Mapping[str, bytes]  # the specifications that are kept, by job
    policies: Mapping[int, bytes]  # the texts of the policies, by version
    person: ScopedBudget | None = None  # of the account of the people, as it is now


def read_snapshot(files: LedgerFiles) -> Snapshot:
    """Return what a ledger durably says, checked like at opening; its files stay as they are."""
    if not files.database.is_file():
        raise BadInput(f"there is no ledger in {files.folder}; make one with 'party init'")
    if files.stopped.exists():
        raise LedgerRolledBack(why_stopped(files))
    try:
        copied = _copy(files)
    except FileNotFoundError as error:
        raise LedgerDamaged(
            f"{error.filename} is missing; name the head mirror if it is kept elsewhere, else see "
            "'colonnade ledger recover'"
        ) from None
    except OSError as error:
        raise BadInput(
            f"{error.filename}: {(error.strerror or 'cannot be read').lower()}; check who may "
            "read the ledger's files"
        ) from None
    try:
        return _with_person(_fold(copied, files), files)
    except (apsw.Error, ValueError):  # ValueError: text that is none
        raise LedgerDamaged(
            f"the ledger database {files.database} is damaged; see 'colonnade ledger recover'"
        ) from None


def _with_person(found: Snapshot, files: LedgerFiles) -> Snapshot:
    """Add what the account of the people says, if the ledger has joined one."""
    if found.state.people.joined is None:
        return found
    account = read_snapshot(account_files(files)).state
    budget, reserved = account.budget(), account.reserved.get("", 0)
    person = ScopedBudget(PERSON, ALL_PROJECTS, budget.cap, budget.spent, reserved)
    return replace(found, person=person)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A ledger's files in memory, by name, and the head that the mirror knew before."""

    files: Mapping[str, bytes]
    witnessed: Head


def _fold(copy: _Copy, files: LedgerFiles) -> Snapshot:
    rows = _Rows(copy, files)
    try:
        state, lines = load_state(rows), tuple(line for _, line, _ in rows.rows())
        docket = state.docket
        specs = {job: rows.body(each.seq) or b"" for job, each in docket.proposals.items()}
        noted = docket.policies.items()
        policies = {version: rows.body(seq) or b"" for version, (_, seq) in noted}
    finally:
        rows.close()
    # By now a commit that was under way when the copy was taken has its place in the mirror.
    newest = HeadMirror.read(files.mirror) or copy.witnessed
    confirmed = min(len(lines), newest.seq)
    if confirmed < len(lines):
        state = LedgerState()
        for line in lines[:confirmed]:
            apply_line(state, line)
        specs = {job: specs[job] for job in state.docket.proposals}
        policies = {version: policies[version] for version in state.docket.policies}
    specs = {job: spec for job, spec in specs.items() if spec}
    return Snapshot(state, lines[:confirmed], len(lines) - confirmed, specs, policies)


def _copy(files: LedgerFiles) -> _Copy:
    """Copy the files as they were at one moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        head, header = HeadMirror.read(files.mirror), _read(files.log, _HEADER_BYTES)
        database, log = files.database.read_bytes(), _read(files.log)
        if head and header == log[:_HEADER_BYTES] == _read(files.log, _HEADER_BYTES):
            return _Copy({"db": database, "db-wal": log}, head)
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)  # it is written to all the time; a moment later it may not be
    if head is None:
        raise LedgerDamaged("both copies in the head mirror are damaged; restore or recover")
    raise LedgerBusy(
        f"the ledger in {files.folder} is written to without a pause; ask again in a while"
    )


def _read(path: Path, size: int = -1) -> bytes:
    """Return the beginning of a file; nothing if there is none."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        return b""


class _Rows:
    """A ledger's rows in a copy of its files."""

    def __init__(self, copy: _Copy, files: LedgerFiles) -> None:
        self._witnessed = copy.witnessed
        self._layer = _Memory(f"colonnade-{secrets.token_hex(8)}", copy.files)
        flags = apsw.SQLITE_OPEN_READONLY
        self._database = apsw.Connection("db", flags=flags, vfs=self._layer.name)
        self._database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            # Exclusive, so that SQLite keeps the index of the log in memory and not in a file.
            settings = [("locking_mode = EXCLUSIVE", "exclusive")]
            check_database(self._database, files.database, settings)
        except BaseException:
            self.close()
            raise

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order of the table itself, not of an index."""
        yield from self._database.execute(
            "SELECT seq, line, hash FROM entry NOT INDEXED ORDER BY seq"
        )

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""
        for (body,) in self._database.execute("SELECT bytes FROM body WHERE seq = ?", (seq,)):
            return bytes(body)
        return None

    def witnessed(self) -> Head:
        """Return the head that the mirror knew."""
        return self._witnessed

    def close(self) -> None:
        """Forget the copy."""
        self._database.close()
        self._layer.unregister()


class _Memory(apsw.VFS):
    """A file layer for SQLite whose files are bytes; nothing can be written."""

    def __init__(self, name: str, content: Mapping[str, bytes]) -> None:
        self.name, self._content = name, content
        super().__init__(name, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802, ARG002
        return pathname in self._content

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> "_Bytes":
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        flags[1] = flags[0]
        return _Bytes(self._content[str(path)])


class _Bytes(apsw.VFSFile):
    """A file that cannot be written and that nobody else has."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return self._content[offset : offset + amount]

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._content)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802, ARG002
        raise apsw.ReadOnlyError

    def xTruncate(self, newsize: int) -> None:  # noqa: N802, ARG002
        raise apsw.ReadOnlyError

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Do nothing: nothing is written."""

    def xLock(self, level: int) -> None:  # noqa: N802
        """Do nothing: nobody else has it."""

    def xUnlock(self, level: int) -> None:  # noqa: N802
        """Do nothing: nobody else has it."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802, ARG002
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        """Do nothing."""
