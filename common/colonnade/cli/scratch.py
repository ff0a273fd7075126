"""A folder of its own for a run, removed afterwards."""

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
