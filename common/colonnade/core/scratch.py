"""A temporary folder that is removed even if the process is killed.

A simulation writes tables, keys and ledgers there. A small process of its own removes it when the
pipe between them ends: when the run closes it, or when the run dies, whatever killed it.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colonnade.core import remover
from colonnade.core.errors import BadInput


@contextmanager
def passing_folder() -> Iterator[Path]:
    """Make a folder that nobody else may read and that is gone afterwards."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", remover.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # signals to the run's group do not reach it
    ) as process:  # leaving closes the pipes and waits
        assert process.stdout is not None  # noqa: S101 - for the type checker
        if not (folder := process.stdout.readline()):
            raise BadInput("no temporary folder can be made; set TMPDIR to one with free space")
        yield Path(folder.removesuffix("\n"))
