"""The standard streams: what is printed arrives, or the command says that it did not.

Python tells of a full or closed standard output late, at its own end, with lines and an exit code
of its own; and where a stream was closed (``>&-``) the next file that is opened takes its place.
"""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

from colonnade.core.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OUT, _ERR = 1, 2


class _Output(io.FileIO):
    """Standard output, whose failures name it."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write bytes, or say that standard output does not take them."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error) from None


class OutputLost(BadInput):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        why = "it is closed" if error.errno == errno.EBADF else f"{error.strerror}"
        super().__init__(
            f"standard output cannot be written: {why}; use a file on a disk with room"
        )


def prepare_streams() -> None:
    """Occupy standard streams that are closed, and let failures of standard output name it.

    Streams that somebody put in the place of the process's own are left alone.
    """
    # Standard output is occupied for reading, so that what is written there fails as before.
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, mode)  # takes the lowest number that is free
    if sys.stderr is None:  # print() would take standard output instead
        sys.stderr = open(_ERR, "w", closefd=False)  # noqa: SIM115 - a descriptor
    if (text := sys.stdout) is sys.__stdout__:
        out = _Output(_OUT, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(out),
            encoding="utf-8" if text is None else text.encoding,
            errors="strict" if text is None else text.errors,
            line_buffering=out.isatty(),
        )


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def drop_output() -> None:
    """Send the rest of standard output nowhere, so that the end of the process is quiet."""
    _drop(_OUT)


def announce(line: str) -> None:
    """Print what a process that goes on has to say; it goes on too where nobody can read it."""
    try:
        print(line, flush=True)
    except (OSError, OutputLost):
        drop_output()


def say(line: str) -> None:
    """Print a line to standard error; where that cannot be written, the exit code has to do."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _drop(_ERR)


def _drop(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
