"""What the benchmark commands share: options, a scratch folder, public tables, word of progress."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from colonnade.core.errors import BadInput


def add_bench_options(parser: argparse.ArgumentParser, parts: Iterable[str]) -> None:
    """Add the options of a benchmark in several parts."""
    parser.add_argument("--quick", action="store_true", help="less of each, under 50 s")
    names = tuple(parts)
    parser.add_argument("--only", metavar="PART", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument("--out", type=Path, help="folder for figures (PNG) and the numbers (JSON)")
    parser.add_argument(
        "--data", type=Path, help="folder of the public tables; default COLONNADE_DATA"
    )
    add_folder_option(parser)


def add_folder_option(parser: argparse.ArgumentParser) -> None:
    """Add where scratch files go, which `scratch` takes."""
    parser.add_argument(
        "--folder", type=Path, help="where to put scratch files: measure the ledger's disk"
    )


def memory_folder() -> Path | None:
    """Return a folder in memory, if there is one: for what is no test of a disk."""
    folder = Path("/dev/shm")  # noqa: S108 (a folder with a random name is made in it)
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Make a folder below ``parent``, or where the system puts temporary files."""
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
