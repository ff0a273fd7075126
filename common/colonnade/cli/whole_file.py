"""Write a file that appears under its name only when it is whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def whole_file(out: Path) -> Iterator[TextIO]:
    """Yield a text file that takes the place of ``out`` at the end, or of what ``out`` links to.

    A device or a pipe is written to as it is: a new file must not take its place.
    """
    if out.exists() and not out.is_file():
        with out.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    target = out.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise
