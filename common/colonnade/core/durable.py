"""Files that are there whole or not at all, for the owner alone, and that go without a trace."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from colonnade.core.permissions import private


def put_whole(place: Path, body: bytes) -> None:
    """Write a file, durably; the one that it replaces is overwritten with zeros.

    That reaches as far as a file system lets anybody overwrite.
    """

    def write(draft: Path) -> None:
        draft.write_bytes(body)

    put_made(place, write)


def put_made(place: Path, write: Callable[[Path], object]) -> None:
    """Have a file written under another name, and put it in place as `put_whole` does."""
    folder, name = place.parent, place.name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, old = folder / f".{name}.tmp", folder / f".{name}.old"
    open(draft, "wb", opener=private).close()  # its permissions stay while it is written
    write(draft)
    with open(draft, "r+b", opener=private) as file:  # the file that has the name by now
        os.fsync(file.fileno())
    shred(old)  # of a process that was killed
    with suppress(FileNotFoundError):
        os.link(place, old)  # a second name, by which it is overwritten
    draft.replace(place)
    sync_folder(folder)
    shred(old)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def shred(path: Path) -> None:
    """Overwrite a file with zeros and remove it; one that is not there is gone already."""
    with suppress(FileNotFoundError):
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
