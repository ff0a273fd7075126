"""Where a ledger's lines are kept: SQLite with a head mirror beside it, or memory.

SQLite is opened in WAL mode with ``synchronous=FULL``: with NORMAL a power loss drops commits that
were already acknowledged. It is trusted to be durable and not to be honest: damaged files make it
drop or alter rows without a word, so the lines carry their own hash chain and the head of that
chain is also kept in a second file, the mirror. The mirror is written after every commit, and
forced to disk after every commit that precedes a release.
"""

import ctypes
import fcntl
import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import apsw

from colonnade.core.errors import BadInput, LedgerBusy, LedgerDamaged, LedgerFailed, LowDisk
from colonnade.privacy.state import Head

APPLICATION_ID = 0x434F4C4E  # "COLN"
SCHEMA_VERSION = 1
# Commits between two copies of the log into the database, in pages of 4 KiB.
_CHECKPOINT_PAGES = 256
# No body is larger, and this much disk must be free before anything is charged: two bodies, the
# write-ahead log at its usual limit, and room for it to be copied into the database.
MAX_BODY_BYTES = 4 * 2**20
RESERVE_BYTES = 4 * MAX_BODY_BYTES

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE entry (
    seq  INTEGER PRIMARY KEY,
    line TEXT NOT NULL,
    hash BLOB NOT NULL,
    once BLOB UNIQUE           -- digest of what may happen only once, such as the charge of a key
) STRICT;
CREATE TABLE body (
    seq   INTEGER PRIMARY KEY REFERENCES entry (seq),
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE binding (
    dataset_sha256 BLOB NOT NULL  -- of the party's table; stays here, is in no line and no export
) STRICT;
CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER entry_stays BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER body_is_final BEFORE UPDATE ON body BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One line with its place and hash, and the bytes that belong to it, if any."""

    seq: int
    line: str
    chain_hash: bytes
    once: bytes | None = None
    body: bytes | None = None
    purges: int | None = None  # the row whose body this one deletes


class Storage(Protocol):
    """Keeps rows; what `append` returned from is durable."""

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order."""

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""

    def append(self, rows: Sequence[Row], head: Head, *, releases: bool) -> None:
        """Keep ``rows`` and note the new ``head``; ``releases`` if bytes may now leave."""

    def witnessed(self) -> Head | None:
        """Return the head that the mirror knows."""

    def require_space(self) -> None:
        """Refuse with `LowDisk` unless a charge and its answer surely fit."""

    def dataset(self) -> bytes | None:
        """Return the digest of the table this ledger belongs to."""

    def bind_dataset(self, digest: bytes) -> None:
        """Keep the digest of the table this ledger belongs to."""

    def close(self) -> None:
        """Give the files free."""


@dataclass(slots=True)
class MemoryStorage:
    """Rows in memory, for simulations and tests."""

    kept: list[Row] = field(default_factory=list)
    bodies: dict[int, bytes] = field(default_factory=dict)
    mirror: Head | None = None
    digest: bytes | None = None

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order."""
        return iter([(row.seq, row.line, row.chain_hash) for row in self.kept])

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""
        return self.bodies.get(seq)

    def append(self, rows: Sequence[Row], head: Head, *, releases: bool) -> None:  # noqa: ARG002
        """Keep ``rows`` and note the new ``head``."""
        for row in rows:
            self.kept.append(row)
            if row.body is not None:
                self.bodies[row.seq] = row.body
            if row.purges is not None:
                del self.bodies[row.purges]
        self.mirror = head

    def witnessed(self) -> Head | None:
        """Return the head noted last."""
        return self.mirror

    def require_space(self) -> None:
        """Accept: memory has no disk."""

    def dataset(self) -> bytes | None:
        """Return the digest of the table this ledger belongs to."""
        return self.digest

    def bind_dataset(self, digest: bytes) -> None:
        """Keep the digest of the table this ledger belongs to."""
        self.digest = digest

    def close(self) -> None:
        """Do nothing."""


class HeadMirror:
    """The head of the chain in a file of two slots, written in turn.

    A write torn by a power loss damages one slot; the other still holds the head before it, which
    is what was durable. Both damaged means that the file was tampered with or lost.
    """

    _SLOT = 4096
    _FORMAT = ">8sQQ32sQ"

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._turn = 0
        self.head: Head | None = None
        for slot in (0, 1):
            turn, head = self._read(slot)
            if head is not None and turn >= self._turn:
                self._turn, self.head = turn, head

    @classmethod
    def create(cls, path: Path, head: Head) -> None:
        """Make the file with both slots filled."""
        mirror = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(mirror, cls._slot(1, head) + cls._slot(2, head), 0)
            os.fsync(mirror)
        finally:
            os.close(mirror)

    @classmethod
    def _slot(cls, turn: int, head: Head) -> bytes:
        fields = struct.pack(cls._FORMAT, b"COLNHEAD", turn, head.seq, head.chain_hash, head.spent)
        return (fields + hashlib.sha256(fields).digest()).ljust(cls._SLOT, b"\0")

    def _read(self, slot: int) -> tuple[int, Head | None]:
        block = os.pread(self._file, self._SLOT, slot * self._SLOT)
        size = struct.calcsize(self._FORMAT)
        fields, check = block[:size], block[size : size + 32]
        if len(block) != self._SLOT or hashlib.sha256(fields).digest() != check:
            return 0, None
        magic, turn, seq, chain_hash, spent = struct.unpack(self._FORMAT, fields)
        if magic != b"COLNHEAD":
            return 0, None
        return turn, Head(seq, chain_hash, spent)

    def write(self, head: Head, *, force: bool) -> None:
        """Write ``head`` over the older slot; force it to disk before a release."""
        self._turn += 1
        self._put(self._slot(self._turn, head), ((self._turn - 1) % 2) * self._SLOT)
        if force:
            self._sync()
        self.head = head

    def _put(self, block: bytes, offset: int) -> None:
        os.pwrite(self._file, block, offset)

    def _sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """The files of a ledger in its folder; the mirror may live on another disk."""

    folder: Path
    mirror_at: Path | None = None

    @property
    def database(self) -> Path:
        """The SQLite database."""
        return self.folder / "ledger.db"

    @property
    def mirror(self) -> Path:
        """The head mirror."""
        return self.mirror_at or self.folder / "head.mirror"

    @property
    def key(self) -> Path:
        """The ledger's Ed25519 private key."""
        return self.folder / "ledger.key"

    @property
    def lock(self) -> Path:
        """The file that is locked while the ledger is open."""
        return self.folder / "ledger.lock"


def hold_lock(path: Path) -> int:
    """Take the exclusive lock of a ledger folder and return its descriptor."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise LedgerBusy(
            f"the ledger in {path.parent} is in use by process {holder}; stop it first"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


class SqliteStorage:
    """Rows in SQLite, the head in the mirror, one process at a time.

    ``vfs`` names a registered SQLite file layer and ``mirror`` opens the mirror; the crash tests
    pass ones that record or die.
    """

    def __init__(
        self,
        files: LedgerFiles,
        *,
        vfs: str | None = None,
        mirror: Callable[[Path], HeadMirror] = HeadMirror,
    ) -> None:
        self._files = files
        if not files.database.is_file():
            raise BadInput(f"there is no ledger in {files.folder}; make one with 'party init'")
        self._lock = hold_lock(files.lock)
        try:
            self._database = _connect(files.database, vfs=vfs)
            try:
                self._mirror = mirror(files.mirror)
            except OSError:
                self._database.close()
                raise
        except (apsw.Error, OSError):
            os.close(self._lock)
            raise LedgerDamaged(
                f"the ledger in {files.folder} cannot be opened: a file is missing, damaged or "
                "read-only; see 'colonnade ledger recover --help'"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise

    @staticmethod
    def create(files: LedgerFiles, rows: Sequence[Row], head: Head) -> None:
        """Make the database and the mirror with the first rows in them."""
        os.close(os.open(files.database, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        database = apsw.Connection(str(files.database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            with database:
                database.execute(_SCHEMA)
            _grow_log(database)
            with database:  # this starts the log over, leaving its size
                _insert(database, rows)
        finally:
            database.close()
        HeadMirror.create(files.mirror, head)

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

    def append(self, rows: Sequence[Row], head: Head, *, releases: bool) -> None:
        """Commit ``rows``, then note ``head`` in the mirror, forced to disk before a release."""
        try:
            with self._database:
                _insert(self._database, rows)
            self._mirror.write(head, force=releases)
        except (apsw.Error, OSError) as error:
            raise self._failure(error) from None

    def witnessed(self) -> Head | None:
        """Return the head that the mirror knows."""
        return self._mirror.head

    def require_space(self) -> None:
        """Refuse unless a charge and its answer surely fit."""
        disk = os.statvfs(self._files.folder)
        free = disk.f_bavail * disk.f_frsize
        if free < RESERVE_BYTES:
            raise LowDisk(
                f"{free} bytes are free for the ledger in {self._files.folder} and "
                f"{RESERVE_BYTES} are needed; free some space (nothing was charged)"
            )

    def dataset(self) -> bytes | None:
        """Return the digest of the table this ledger belongs to."""
        for (digest,) in self._database.execute("SELECT dataset_sha256 FROM binding"):
            return bytes(digest)
        return None

    def bind_dataset(self, digest: bytes) -> None:
        """Keep the digest of the table this ledger belongs to."""
        try:
            with self._database:
                self._database.execute("DELETE FROM binding")
                self._database.execute("INSERT INTO binding VALUES (?)", (digest,))
        except apsw.Error as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Copy the log into the database and give the files free."""
        try:
            self._database.close()
        except apsw.Error as error:
            raise self._failure(error) from None
        finally:
            self._mirror.close()
            os.close(self._lock)

    def _failure(self, error: Exception) -> LedgerFailed:
        return LedgerFailed(
            f"the ledger in {self._files.folder} could not be written "
            f"({type(error).__name__}); check the disk, then start again"
        )


def _grow_log(database: apsw.Connection) -> None:
    """Make the log as large as it gets, once, and have it kept.

    Commits then overwrite blocks that the file already has. Growing the file with each commit
    makes every sync a metadata write too, ten times slower on ext4.
    """
    _keep_log(database)
    with database:
        filler = (_CHECKPOINT_PAGES + 16) * 4096
        database.execute("INSERT INTO body VALUES (-1, zeroblob(?))", (filler,))
    with database:
        database.execute("DELETE FROM body WHERE seq = -1")
    database.execute("PRAGMA wal_checkpoint(RESTART)")


def _keep_log(database: apsw.Connection) -> None:
    keep = ctypes.c_int(1)
    database.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))


def _insert(database: apsw.Connection, rows: Sequence[Row]) -> None:
    for row in rows:
        database.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?)", (row.seq, row.line, row.chain_hash, row.once)
        )
        if row.body is not None:
            database.execute("INSERT INTO body VALUES (?, ?)", (row.seq, row.body))
        if row.purges is not None:
            database.execute("DELETE FROM body WHERE seq = ?", (row.purges,))


def _connect(path: Path, *, vfs: str | None) -> apsw.Connection:
    database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        settings = (
            ("locking_mode = EXCLUSIVE", "exclusive"),
            ("journal_mode = WAL", "wal"),
            ("synchronous = FULL", None),
            ("synchronous", 2),
            (f"wal_autocheckpoint = {_CHECKPOINT_PAGES}", _CHECKPOINT_PAGES),
            ("trusted_schema = OFF", None),
            ("cell_size_check = ON", None),
            ("application_id", APPLICATION_ID),
            ("user_version", SCHEMA_VERSION),
            ("integrity_check(1)", "ok"),  # necessary, far from sufficient: hence the chain
        )
        _keep_log(database)
        for pragma, wanted in settings:
            got = next(iter(database.execute(f"PRAGMA {pragma}")), (None,))[0]
            if wanted is not None and got != wanted:
                raise LedgerDamaged(
                    f"the ledger database {path} fails its check '{pragma}'; "
                    "see 'colonnade ledger recover --help'"
                )
    except BaseException:
        database.close()
        raise
    return database
