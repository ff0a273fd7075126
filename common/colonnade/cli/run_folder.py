"""Folders of a run: where it happens, and what is written of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colonnade.core.errors import BadInput, JobEnded, Unreachable
from colonnade.core.scratch import passing_folder


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn what the disk says into one line about ``path``."""
    try:
        yield
    except OSError as error:
        what = (error.strerror or "cannot be written").lower()
        raise BadInput(f"{error.filename or path}: {what}; name another place") from None


def check_out(out: Path, option: str = "--out") -> None:
    """Refuse a folder that cannot be written before anything is computed or charged."""
    nearest = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise BadInput(f"{out}: cannot be written; name another {option}")


@contextmanager
def workplace(*, keep: Path | None, out: Path | None) -> Iterator[Path]:
    """Make the folder that a simulation happens in: ``keep``, or one that is gone afterwards.

    Refuse, before anything is done, folders that something is in already or that cannot be written.
    """
    if keep is not None and keep.exists():
        raise BadInput(f"{keep} exists already; name a new folder")
    check_out(out or Path("runs"))
    if out is not None and out.exists() and any(out.iterdir()):
        raise BadInput(f"{out} is not empty; name a new folder")
    if keep is not None:
        check_out(keep, "--keep")
        with file_errors(keep):
            keep.mkdir(mode=0o700, parents=True)
        with _logs(f"see {keep}/logs"):
            yield keep
        return
    # The processes' logs are gone with the folder.
    with _logs("--keep FOLDER keeps the logs"), passing_folder() as folder:
        yield folder


@contextmanager
def _logs(where: str) -> Iterator[None]:
    """Add to the error of a process where there is more to read."""
    try:
        yield
    except (JobEnded, Unreachable) as error:
        raise type(error)(f"{error} ({where})") from None
