"""What the benchmark commands share: a scratch folder, the public tables, a word on progress."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Make a folder below ``parent``, or where the system puts temporary files."""
    from colonnade.core.errors import BadInput

    if parent is not None and not parent.is_dir():
        raise BadInput(f"{parent} is no folder; name one on the disk to measure")
    with tempfile.TemporaryDirectory(prefix="colonnade-bench-", dir=parent) as folder:
        yield Path(folder)


def public_tables() -> Path | None:
    """Return the folder of public tables, if there is one at hand."""
    named = os.environ.get("COLONNADE_DATA")
    folder = Path(named) if named else Path("..", "shared", "data")
    return folder if folder.is_dir() else None


def say(text: str) -> None:
    """Tell a person at a terminal what is measured now."""
    if sys.stderr.isatty():
        print(f"{text} ...", file=sys.stderr, flush=True)
