"""Signed decisions on their way to the ledger: files that the running party takes up.

A ledger has one writer, the party's process; an approver works in another. So a decision is signed
where the approver's key is, left in a folder, and appended by the party, which checks it by the
rules of the ledger. Whoever can write to the folder can decide nothing without a key.
"""

import json
import logging
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.ledger.entries import canonical
from colonnade.ledger.job_entries import Decided
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import sync_path

logger = logging.getLogger(__name__)
_SUFFIX, _MAX_BYTES, _MAX_FILES = ".decision", 16 << 10, 1000


@dataclass(frozen=True, slots=True)
class DecisionFolder:
    """The folder in which decisions wait."""

    path: Path

    def put(self, entry: Decided) -> Path:
        """Leave a decision, whole and on disk."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"{entry.job[:16]}-{entry.approver[:8]}-{secrets.token_hex(4)}"
            draft, final = self.path / f"{name}.tmp", self.path / f"{name}{_SUFFIX}"
            with draft.open("x", encoding="ascii") as file:
                file.write(canonical(asdict(entry)))
                file.flush()
                os.fsync(file.fileno())
            draft.rename(final)
            sync_path(self.path)
        except OSError as error:
            raise BadInput(
                f"the decision cannot be left in {self.path}: {error.strerror}; check the folder"
            ) from None
        return final

    def take(self, ledger: Ledger) -> list[str]:
        """Append the decisions that wait and return the jobs they are about."""
        jobs = dict[str, None]()
        for path in self._waiting():
            try:
                entry = _read(path)
                with ledger.lock:
                    new = ledger.decisions.decide(entry)
            except BadInput as error:
                logger.warning("decision_ignored file=%s %s", path.name, error)
                path.rename(path.with_suffix(".ignored"))
                continue
            if new:
                logger.info("decided job=%s verdict=%s", entry.job[:12], entry.verdict)
                jobs[entry.job] = None
            path.unlink()  # it is in the ledger, on disk
        return list(jobs)

    def _waiting(self) -> Iterator[Path]:
        """Yield the files in order of an approver's decisions, so that none overtakes another."""
        try:
            found = [each for each in os.scandir(self.path) if each.name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return
        ordered = sorted(found, key=lambda each: (each.stat().st_mtime_ns, each.name))
        yield from (Path(each.path) for each in ordered[:_MAX_FILES])


def _read(path: Path) -> Decided:
    """Read a decision; `BadInput` if the file holds none."""
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("no file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        found = json.loads(content)
        entry = Decided(**found)
        texts = (entry.job, entry.verdict, entry.reason, entry.approver, entry.signature)
        if len(content) > _MAX_BYTES or not all(type(text) is str for text in texts):
            raise ValueError("no decision")
        bytes.fromhex(entry.approver), bytes.fromhex(entry.signature)
        if type(entry.number) is not int:
            raise ValueError("no number")
    except (OSError, ValueError, TypeError, RecursionError):
        raise BadInput("the file holds no decision") from None
    return entry
