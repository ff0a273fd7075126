"""The end of a ledger's chain, kept beside the table that the ledger pays for.

Privacy: a copy of a ledger's folder, its head mirror included, or one restored from a backup, knows
nothing of what the other spent, and a local fit tells no coordinator. But both use the same table.
So each use of a table leaves the signed head of its ledger there, and begins by looking at what
is there: a ledger that does not know it as its own past stops for good, as it does when a
coordinator shows it such a head.

What this does not notice: a copy that ran on until it was killed, copies that run at the same time
until the next use begins, and copies that have a copy of the table each.
"""

import os
from contextlib import suppress
from pathlib import Path

from colonnade.core.errors import LedgerFailed
from colonnade.ledger.heads import evidence_in, evidence_line
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import sync_path

HEAD_NAME = "ledger.head"
_HERE = ""  # in place of a federation: nobody but this organization is told
_MAX_BYTES = 4096


def check_witness(folder: Path, ledger: Ledger) -> None:
    """Stop the ledger for good if the table was used with an end of it that it does not know.

    A file that cannot be read or is of another ledger says nothing: ``ledger.id`` names the owner.
    """
    try:
        with (folder / HEAD_NAME).open("rb") as file:
            text = file.read(_MAX_BYTES).decode("ascii", "replace")
    except OSError:
        return
    for evidence in evidence_in(text.splitlines()):
        if evidence.signed_by(bytes.fromhex(ledger.opened.public_key)):
            ledger.check_evidence(evidence)


def leave_witness(folder: Path, ledger: Ledger) -> None:
    """Leave the ledger's end beside the table; where nothing can be written, nothing is told."""
    draft = folder / f".{HEAD_NAME}.{os.getpid()}"
    with suppress(OSError, LedgerFailed):
        line = evidence_line(ledger.signed_head(_HERE))
        draft.unlink(missing_ok=True)
        private = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(private, "w", encoding="ascii") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(folder / HEAD_NAME)
        sync_path(folder)
