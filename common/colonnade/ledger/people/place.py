"""Where the account of a ledger's people is: a file beside the ledger names its folder."""

import json
import os
from pathlib import Path

from colonnade.core.errors import LedgerDamaged
from colonnade.ledger.storage.files import LedgerFiles, sync_path


def account_files(files: LedgerFiles) -> LedgerFiles:
    """Return the files of the account that the ledger in ``files`` has joined."""
    try:
        found = json.loads(files.people.read_text("utf-8"))
        folder, mirror = Path(found["folder"]), found["mirror"]
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerDamaged(
            f"{files.people} does not say where the account of the people is; name it again with "
            "'colonnade ledger join'"
        ) from None
    return LedgerFiles(folder, None if mirror is None else Path(mirror))


def note_account(files: LedgerFiles, account: LedgerFiles) -> None:
    """Write down, durably, where the account is."""
    mirror = account.mirror_at
    found = {
        "folder": str(account.folder.resolve()),
        "mirror": None if mirror is None else str(mirror.resolve()),
    }
    draft = files.people.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(files.people)
    sync_path(files.folder)
