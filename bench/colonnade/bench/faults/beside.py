"""Files that a party keeps beside its ledger: alignments, predictions and keys of sealed exchanges.

They are real files in a folder of the simulation. The shipped code writes each under another name,
forces it to the disk and puts it in place, so a process may die at every such step, and what a
power cut leaves is what a kill at one of them leaves. Only what was removed may come back after
one: overwritten with zeros, as the shipped code leaves it.
"""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from colonnade.bench.faults.chance import Chance
from colonnade.core import durable
from colonnade.party.alignment import store as alignments
from colonnade.party.prediction import store as predictions
from colonnade.party.prediction.store import PredictionFolder

_SECRET = (".state", ".secrets", ".sums", ".key")
_RESULT = (".alignment", ".csv")


class Beside:
    """The files of all parties of a simulation; ``touched`` is told whose are written."""

    def __init__(self, folder: Path, touched: Callable[[str], None]) -> None:
        self.folder, self._touched = folder, touched
        self._removed: dict[Path, int] = {}  # sizes of files whose removal is not durable yet

    def home(self, name: str) -> Path:
        """Return where a party's files are."""
        return self.folder / name / "beside"

    def put(self, name: str, files: dict[str, bytes]) -> None:
        """Have files there from before the simulation."""
        for place, body in files.items():
            path = self.home(name) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)

    def files(self, name: str) -> dict[str, bytes]:
        """Return all files of a party."""
        home = self.home(name)
        found = sorted(path for path in home.rglob("*") if path.is_file())
        return {str(path.relative_to(home)): path.read_bytes() for path in found}

    def results(self, name: str) -> dict[str, bytes]:
        """Return what a party was given: rows of alignments, and scores."""
        return {at: body for at, body in self.files(name).items() if at.endswith(_RESULT)}

    def secrets(self, name: str) -> list[str]:
        """Return the secrets that are still there."""
        found = self.files(name).items()
        return [at for at, body in found if at.endswith(_SECRET) and any(body)]

    def cut_power(self, name: str, chance: Chance) -> None:
        """Have some of what was removed come back, as zeros."""
        for path in [path for path in self._removed if path.is_relative_to(self.home(name))]:
            size = self._removed.pop(path)
            if chance.happens(0.5) and path.parent.is_dir() and not path.exists():
                path.write_bytes(bytes(size))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have the shipped code write here."""
        shipped = os.link
        shred = durable.shred

        def sync(descriptor: int) -> None:
            self._touch(Path(f"/proc/self/fd/{descriptor}").readlink())

        def link(source: Any, target: Any, **options: Any) -> None:
            self._touch(Path(target))
            shipped(source, target, **options)

        def remove(path: Path) -> None:
            size = path.stat().st_size if path.is_file() else -1
            shred(path)
            if size >= 0 and not path.name.startswith("."):
                self._removed[path] = size

        with ExitStack() as stack:
            for module in (alignments, predictions):
                stack.enter_context(patch.object(module, "shred", remove))
            stack.enter_context(patch.object(os, "fsync", sync))
            stack.enter_context(patch.object(os, "link", link))
            beside = functools.partial(_beside, self)
            stack.enter_context(patch.object(PredictionFolder, "beside", beside))
            yield

    def _touch(self, path: Path) -> None:
        """Perhaps end the process whose file is written; a folder's names are durable after."""
        if not path.is_relative_to(self.folder):
            return
        self._touched(path.relative_to(self.folder).parts[0])
        if path.is_dir():
            for removed in [each for each in self._removed if each.parent == path]:
                del self._removed[removed]


def _beside(files: Beside, data: Path) -> PredictionFolder:
    return PredictionFolder(files.home(data.parent.name) / predictions.FOLDER)
