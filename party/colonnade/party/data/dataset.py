"""A party's table as it was opened: both copies, whose rows they are, and the lock that keeps them.

Privacy: prices, accounts and the ledger's binding are about one table. So it is opened and checked
once, everything that reads rows is handed these very tables, and a folder that holds others by now
is refused: rows of another table would be paid for by the people of this one.
"""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from colonnade.core.errors import BadInput, DatasetChanged
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, open_pair
from colonnade.party.data.clients import CLIENTS_NAME, TableClients, read_clients
from colonnade.party.data.columns import version_of
from colonnade.party.data.folder import lock_folder

_FILES = (COARSE_NAME, FINE_NAME, CLIENTS_NAME)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """An ingested table that this process holds: nobody ingests into its folder meanwhile.

    Parameters
    ----------
    clients
        Who owns the rows, if they are divided among clients.
    marks
        What tells the files that were opened from others in their place.
    """

    folder: Path
    coarse: Table
    fine: Table
    clients: TableClients | None
    marks: tuple[object, ...]
    lock: int

    @property
    def version(self) -> str:
        """The public name of the ingest."""
        return version_of(self.coarse)

    @property
    def digest(self) -> bytes:
        """What a ledger is bound to. A fact about the rows: it stays with the party."""
        return rows_digest(self.coarse, self.clients)

    @property
    def client_ids(self) -> str:
        """The rule by which clients were told apart; empty for an undivided table."""
        return self.coarse.header.client_ids

    def check(self) -> None:
        """Refuse to go on if the folder does not hold the files that were opened."""
        if _marks(self.folder) != self.marks:
            raise DatasetChanged(
                "the party's table was replaced while it ran; its operator has to stop the party, "
                "bind the new table and start again"
            )

    def close(self) -> None:
        """Let others write."""
        os.close(self.lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def open_dataset(folder: Path) -> Dataset:
    """Open the table in ``folder`` and read all of it once; refuse one that is damaged."""
    lock = lock_folder(folder, writing=False)
    try:
        marks = _marks(folder)
        coarse, fine = open_pair(folder)
        clients = read_clients(folder, coarse.header)
        with ThreadPoolExecutor(2) as pool:  # hashing releases the interpreter lock
            list(pool.map(Table.verify, (coarse, fine)))
        version_of(coarse)
        made = Dataset(folder, coarse, fine, clients, marks, lock)
        made.check()
    except BaseException:
        os.close(lock)
        raise
    return made


def rows_digest(coarse: Table, clients: TableClients | None) -> bytes:
    """Return a digest of all columns of a table, of both copies, and of whose rows they are."""
    header = coarse.header
    facts = [
        header.content_digest,
        header.fine_digest,
        header.client_ids,
        None if clients is None else [[*clients.names], clients.counts],
    ]
    return hashlib.sha256(json.dumps(facts).encode()).digest()


def _marks(folder: Path) -> tuple[object, ...]:
    """Return what changes when a file is replaced, removed or written."""
    marks: list[object] = []
    for name in _FILES:
        try:
            found = (folder / name).stat()
        except FileNotFoundError:
            marks.append(None)
        except OSError as error:
            raise BadInput(f"{folder}: cannot be read: {error.strerror}") from None
        else:
            marks.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(marks)
