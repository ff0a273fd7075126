"""The files of a ledger: names, lock, and forcing them to disk."""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from colonnade.core.errors import BadInput, LedgerBusy

_RECOVERED = "recovered into"  # why a ledger was stopped that has a successor


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
    def log(self) -> Path:
        """SQLite's write-ahead log."""
        return self.folder / "ledger.db-wal"

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

    @property
    def people(self) -> Path:
        """The file that says where the account of the people is, if the ledger has joined one."""
        return self.folder / "people.json"

    @property
    def stopped(self) -> Path:
        """The file whose presence says that this ledger must not be opened any more."""
        return self.folder / "ledger.stopped"


def hold_lock(path: Path) -> int:
    """Take the exclusive lock of a ledger folder and return its descriptor."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(
            f"the ledger in {path.parent} cannot be used: {error.strerror}; "
            "check the folder, its owner and that its disk can be written"
        ) from None
    try:
        if not try_lock(lock, str(path)):
            holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            raise LedgerBusy(
                f"the ledger in {path.parent} is in use by process {holder}; stop it first"
            )
    except BaseException:
        os.close(lock)
        raise
    with contextlib.suppress(OSError):  # only for the message above
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def try_lock(descriptor: int, path: str) -> bool:
    """Take the exclusive lock of an open file; return whether nobody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise BadInput(
            f"{path} cannot be locked: {error.strerror}; keep it on a disk that has file locks"
        ) from None
    return True


def sync_path(path: Path) -> None:
    """Force a file or a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stop_ledger(files: LedgerFiles, reason: str) -> None:
    """Leave a file, on disk, that keeps a ledger from being opened again."""
    with files.stopped.open("a", encoding="utf-8") as marker:
        marker.write(reason + "\n")
        marker.flush()
        os.fsync(marker.fileno())
    sync_path(files.folder)


def why_stopped(files: LedgerFiles) -> str:
    """Return what to say of a ledger that was stopped for good: where it went, or what to do."""
    with contextlib.suppress(OSError, ValueError):  # a copy knows only that it was stopped
        last = files.stopped.read_text("utf-8").splitlines()[-1:]
        # The key goes when the successor is there; before, a recovery was cut off.
        if last and last[0].startswith(_RECOVERED) and not files.key.exists():
            return f"the ledger in {files.folder} was {last[0]}; use that one"
    return f"the ledger in {files.folder} was stopped for good; see 'colonnade ledger recover'"


def why_not_opened(files: LedgerFiles, *, missing: bool) -> str:
    """Return what to say of a ledger whose files cannot be opened; one that is missing is named."""
    advice = "see 'colonnade ledger recover'"
    if missing:  # the database was looked for before
        where = "name the head mirror if it is kept elsewhere"
        return f"{files.mirror} is missing; {where}, else {advice}"
    what = "a file is missing, damaged or read-only"
    return f"the ledger in {files.folder} cannot be opened: {what}; {advice}"


def check_key(files: LedgerFiles) -> None:
    """Refuse a folder that is no ledger's, or one that has a successor; leave no file there."""
    if files.folder.is_dir() and not files.key.exists():
        absent = f"there is no ledger key in {files.folder}; name the folder of a ledger"
        raise BadInput(why_stopped(files) if files.stopped.exists() else absent)


def identity(path: str) -> tuple[int, int]:
    """Return what identifies a file among others of the same name."""
    found = os.stat(path)  # noqa: PTH116 - at every release, and much quicker than a Path
    return found.st_dev, found.st_ino


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read, and force it to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
