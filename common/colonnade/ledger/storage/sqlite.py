"""A ledger on disk: lines in SQLite, the head in a mirror, one process at a time.

SQLite is opened in WAL mode with ``synchronous=FULL``: with NORMAL a power loss drops commits that
were already acknowledged. It is trusted to be durable and not to be honest: damaged files make it
drop or alter rows without a word, so the lines carry their own hash chain and the head of that
chain is also kept in the mirror. The mirror is written after every commit, and forced to disk
after every commit that precedes a release. The log is copied into the database by an explicit
checkpoint: SQLite's automatic one swallows a failed sync.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

from colonnade.core.errors import BadInput, LedgerDamaged, LedgerFailed, LedgerRolledBack, LowDisk
from colonnade.ledger.state import Head, StoredRelease
from colonnade.ledger.storage import wal
from colonnade.ledger.storage.base import MAX_BODY_BYTES, StoredRow
from colonnade.ledger.storage.files import (
    LedgerFiles,
    hold_lock,
    identity,
    stop_ledger,
    sync_path,
    why_not_opened,
    why_stopped,
)
from colonnade.ledger.storage.mirror import HeadMirror, MirrorMark, MirrorTaken

APPLICATION_ID = 0x434F4C4E  # "COLN"
SCHEMA_VERSION = 5
# This much disk must be free before anything is charged: two bodies, the log, and its copy.
RESERVE_BYTES = 4 * MAX_BODY_BYTES

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE entry (
    seq  INTEGER PRIMARY KEY,
    line TEXT NOT NULL,
    hash BLOB NOT NULL,
    idempotency_key BLOB UNIQUE  -- digest of what may happen once, such as the charge of a key
) STRICT;
CREATE TABLE body (
    seq   INTEGER PRIMARY KEY REFERENCES entry (seq),
    bytes BLOB NOT NULL        -- of releases stored together, a specification, a policy
) STRICT;
CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER entry_stays BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER body_is_final BEFORE UPDATE ON body BEGIN SELECT RAISE(ABORT, 'append only'); END;
"""


class SqliteStorage:
    """Rows in SQLite, the head in the mirror, one process at a time.

    ``vfs`` names a registered SQLite file layer, ``mirror`` opens the mirror and ``sync`` forces a
    whole file to disk; the crash tests pass ones that record or die.
    """

    def __init__(
        self,
        files: LedgerFiles,
        *,
        vfs: str | None = None,
        mirror: Callable[[Path], HeadMirror] = HeadMirror,
        sync: Callable[[Path], None] = sync_path,
    ) -> None:
        self._files, self._log_pages = files, 0
        self._lock_path, self._folder_path = str(files.lock), str(files.folder)
        if not files.database.is_file():
            raise BadInput(f"there is no ledger in {files.folder}; make one with 'party init'")
        self._lock = hold_lock(files.lock)
        try:
            self._mirror = mirror(files.mirror)
            try:
                self._mirror.hold()
                self._refuse_stopped()
                # Before SQLite opens them: closing a second descriptor would drop its locks.
                for path in (files.log, files.database, files.folder):
                    if path.exists():
                        sync(path)
                self._database = _connect(files.database, vfs=vfs)
            except BaseException:
                self._mirror.close()
                raise
            self._database.set_wal_hook(self._count_pages)
        except (apsw.Error, OSError) as error:
            os.close(self._lock)
            missing = isinstance(error, FileNotFoundError)
            raise LedgerDamaged(why_not_opened(files, missing=missing)) from None
        except BaseException:
            os.close(self._lock)
            raise

    def _refuse_stopped(self) -> None:
        """Refuse a ledger that must not be opened any more, or a copy of one."""
        if self._files.stopped.exists() or self._mirror.mark is not MirrorMark.LIVE:
            raise LedgerRolledBack(why_stopped(self._files))

    @staticmethod
    def create(files: LedgerFiles, rows: Sequence[StoredRow], head: Head) -> None:
        """Make the database and the mirror with the first rows in them."""
        os.close(os.open(files.database, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        database = apsw.Connection(str(files.database), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            database.execute(f"PRAGMA page_size = {wal.PAGE_BYTES}")
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            with database:
                database.execute(_SCHEMA)
            wal.grow_log(database)
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
        try:
            for (body,) in self._database.execute("SELECT bytes FROM body WHERE seq = ?", (seq,)):
                return bytes(body)
        except apsw.Error as error:
            raise self._failure(error) from None
        return None

    def append(self, rows: Sequence[StoredRow], head: Head, *, releases: bool) -> None:
        """Commit ``rows``, then note ``head`` in the mirror, forced to disk before a release."""
        try:
            self._check_lock()
            with self._database:
                _insert(self._database, rows)
            self._mirror.write(head, force=releases)
            if self._log_pages >= wal.CHECKPOINT_PAGES:
                self._checkpoint()
        except MirrorTaken:
            raise self._second_writer(head) from None
        except Exception as error:  # noqa: BLE001 - whatever it was, nothing may go on
            raise self._failure(error) from None

    def settle(self, head: Head) -> None:
        """Bring the mirror to ``head``, on disk; the other files were synced before opening."""
        try:
            self._mirror.write(head, force=True)
        except MirrorTaken:
            raise self._second_writer(head) from None
        except OSError as error:
            raise self._failure(error) from None

    def scrub(self) -> None:
        """Leave nothing of purged bytes in database and log."""
        try:
            wal.renew_log(self._database)
        except apsw.Error as error:
            raise self._failure(error) from None
        self._log_pages = 0

    def stop(self, reason: str) -> None:
        """Note, on disk, that this ledger and copies with its mirror must not be opened again."""
        stop_ledger(self._files, reason)
        with contextlib.suppress(OSError):  # for copies; this one has its marker
            self._mirror.end(MirrorMark.STOPPED)

    def witnessed(self) -> Head | None:
        """Return the head that the mirror knows."""
        return self._mirror.head

    def require_space(self, more: int = 0) -> None:
        """Refuse unless a charge and its answer surely fit, and ``more`` bytes."""
        disk = os.statvfs(self._folder_path)
        free = disk.f_bavail * disk.f_frsize
        if free < RESERVE_BYTES + more:
            raise LowDisk(
                f"{free} bytes are free for the ledger in {self._files.folder} and "
                f"{RESERVE_BYTES + more} are needed; free some space (nothing was charged)"
            )

    def close(self) -> None:
        """Copy the log into the database and close the files."""
        try:
            self._checkpoint()
        except apsw.Error as error:
            raise self._failure(error) from None
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files, whatever state they are in."""
        self._mirror.close()
        with contextlib.suppress(apsw.Error):
            self._database.close()
        os.close(self._lock)

    def _count_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        self._database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._log_pages = 0

    def _check_lock(self) -> None:
        """Fail if the lock file was replaced: someone else may hold the new one."""
        held = os.fstat(self._lock)
        if (held.st_dev, held.st_ino) != identity(self._lock_path):
            raise OSError(errno.ESTALE, "the lock file was replaced")

    def _second_writer(self, head: Head) -> LedgerFailed:
        """Stop this copy for good; the mirror shows the other copy what this one did."""
        reason = (
            f"the head mirror {self._files.mirror} was written or replaced by another process: "
            f"a copy of the ledger in {self._files.folder} was run beside it"
        )
        try:
            stop_ledger(self._files, reason)
            self._mirror.end(MirrorMark.STOPPED, head)
        except OSError as error:
            return self._failure(error)
        return LedgerFailed(f"{reason}; see 'colonnade ledger recover'")

    def _failure(self, error: Exception) -> LedgerFailed:
        return LedgerFailed(
            f"the ledger in {self._files.folder} could not be written "
            f"({type(error).__name__}); check the disk, then start again"
        )


def _insert(database: apsw.Connection, rows: Sequence[StoredRow]) -> None:
    entries = [(row.seq, row.line, row.chain_hash, row.idempotency_key) for row in rows]
    database.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", entries)
    bodies = [(row.seq, row.body) for row in rows if row.body is not None]
    database.executemany("INSERT INTO body VALUES (?, ?)", bodies)
    for kept in [row.purges for row in rows if row.purges is not None]:
        _blank(database, kept)


def _blank(database: apsw.Connection, kept: StoredRelease) -> None:
    """Delete a release's bytes; those that were stored with it stay where they are."""
    for (row,) in database.execute("SELECT bytes FROM body WHERE seq = ?", (kept.seq,)):
        database.execute("DELETE FROM body WHERE seq = ?", (kept.seq,))
        if (left := kept.blanked(bytes(row))) is not None:
            database.execute("INSERT INTO body VALUES (?, ?)", (kept.seq, left))


def _connect(path: Path, *, vfs: str | None) -> apsw.Connection:
    database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        settings = (
            ("locking_mode = EXCLUSIVE", "exclusive"),
            ("journal_mode = WAL", "wal"),
            ("synchronous = FULL", None),
            ("synchronous", 2),
            ("wal_autocheckpoint = 0", 0),
        )
        wal.keep_log(database)
        check_database(database, path, settings)
    except BaseException:
        database.close()
        raise
    return database


def check_database(
    database: apsw.Connection, path: Path, settings: Sequence[tuple[str, object]]
) -> None:
    """Apply ``settings``, each with what must be answered, then check that this is a ledger."""
    checks = (
        ("trusted_schema = OFF", None),
        ("cell_size_check = ON", None),
        ("application_id", APPLICATION_ID),
        ("user_version", SCHEMA_VERSION),
        ("integrity_check(1)", "ok"),  # necessary, far from sufficient: hence the chain
    )
    for pragma, wanted in (*settings, *checks):
        got = next(iter(database.execute(f"PRAGMA {pragma}")), (None,))[0]
        if pragma == "user_version" and got != wanted:
            raise LedgerDamaged(
                f"the ledger database {path} has format {got}, and this program reads {wanted}: "
                "run the release that wrote it; nothing was changed"
            )
        if wanted is not None and got != wanted:
            raise LedgerDamaged(
                f"the ledger database {path} fails its check '{pragma}'; "
                "see 'colonnade ledger recover'"
            )
