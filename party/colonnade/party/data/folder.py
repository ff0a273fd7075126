"""The folder of a party's table: one writer or many readers, and raw rows on their way into it.

The lock is on the folder itself (``flock``), so it needs no file, moves with a folder that is
renamed, and is gone with the process that held it, however that ended.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from colonnade.core.errors import BadInput, DatasetBusy
from colonnade.data.table import COARSE_NAME, FINE_NAME

_RAW = ".ingest"


def lock_folder(folder: Path, *, writing: bool) -> int:
    """Take the lock of a folder, for writing alone or for reading with others.

    Returns the descriptor that holds the lock until it is closed.
    """
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise BadInput(
            f"{folder}: is no folder with an ingested table; name the folder that 'colonnade party "
            "ingest' wrote"
        ) from None
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        if writing:
            told = "is in use by a party, a fit or an ingest; stop it, or name another folder"
        else:
            told = "is being written by an ingest; wait for it"
        raise DatasetBusy(f"{folder}: {told}") from None
    except OSError as error:
        os.close(lock)
        raise BadInput(f"{folder}: cannot be locked: {error.strerror}; use a local disk") from None
    return lock


@contextmanager
def workspace(out: Path) -> Iterator[Path]:
    """Hold a private folder inside ``out`` for raw rows, and remove it at the end.

    Nobody else reads or writes ``out`` meanwhile, so what is found inside is left from an ingest
    that was killed.
    """
    is_new = not out.exists()
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = lock_folder(out, writing=True)
    try:
        _remove_leftovers(out)
        folder = out / _RAW
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
    finally:
        os.close(lock)
        if is_new:
            with suppress(OSError):  # not empty: the ingest succeeded
                out.rmdir()


def _remove_leftovers(out: Path) -> None:
    raw = out / _RAW
    if raw.is_symlink() or raw.is_file():
        raw.unlink()
    elif raw.exists():
        shutil.rmtree(raw)
    for name in (COARSE_NAME, FINE_NAME):
        for path in out.glob(f".{name}.*.tmp"):
            path.unlink()
