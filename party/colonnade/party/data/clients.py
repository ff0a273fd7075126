"""Which rows of a host's table belong to which client, and what its clients are called.

A table whose schema names a client column is divided: all rows of one client stand together. A
client has a ledger account of its own and is the unit that its budget protects.

Privacy: clients' own names stay in the table's folder. An account's name is a keyed hash of the
client's name, under a secret that only the holder of the ledger's key can make, so it is the same
after every ingest, and tells a stranger nothing. How many clients there are is public; how many
rows each has is not, and no release depends on it but through the clipped displacement.
"""

import functools
import hmac
import itertools
import json
import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput, BadMessage, PolicyRefused
from colonnade.core.names import HexNames, PackedNames
from colonnade.data.table_header import TableHeader
from colonnade.ledger.ledger import Ledger
from colonnade.methods.base import Unit
from colonnade.methods.job import Job
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE

CLIENTS_NAME = "clients.json"
_SECRET = b"colonnade names of client accounts v1"


@dataclass(frozen=True, slots=True)
class TableClients:
    """The clients of a divided table, in the order of their rows."""

    names: PackedNames  # in the one form of their rule
    counts: tuple[int, ...]  # rows of each

    @classmethod
    def of(cls, names: Iterable[str], counts: Iterable[int]) -> "TableClients":
        """Return clients with their names packed, for there may be very many."""
        return cls(PackedNames(names), tuple(counts))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def unit(self) -> Unit:
        """The unit of privacy: each client is protected with all of its rows."""
        return Unit.CLIENT

    @property
    def population(self) -> int:
        """How many clients there are; how many rows they have is not said."""
        return len(self)

    def check(self, job: Job, party: str) -> None:
        """Refuse a job about records, or with another number of clients here."""
        if job.unit is not Unit.CLIENT:
            raise PolicyRefused("the table is divided among clients: only jobs over clients use it")
        check_clients(job, party, len(self))

    def set_aside(self, ledger: Ledger, job: str, *, units: int, after: str = "") -> None:  # noqa: ARG002
        """Set a job's greatest price aside, of every client that can afford it."""
        set_aside(ledger, job, self.accounts(ledger), units=units)

    def rows(self) -> Sequence[slice]:
        """Return where each client's rows are."""
        return _Rows(np.cumsum([0, *self.counts]))

    def accounts(self, ledger: Ledger) -> Sequence[str]:
        """Return the names of the clients' ledger accounts."""
        secret = ledger.sign(_SECRET)  # deterministic; nobody else can make it
        return _accounts(secret, self.names)


@functools.lru_cache(maxsize=1)  # of the party's one table, which may have very many clients
def _accounts(secret: bytes, names: PackedNames) -> HexNames:
    return HexNames(hmac.digest(secret, name.encode(), "sha256")[:16] for name in names)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows(Sequence[slice]):
    """Where each client's rows are: eight bytes a client."""

    ends: IntArray  # (n + 1,)

    def __len__(self) -> int:
        return self.ends.size - 1

    @overload
    def __getitem__(self, place: int) -> slice: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[slice]: ...

    def __getitem__(self, place: int | slice) -> slice | Sequence[slice]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError("there is no such client")
        return slice(int(self.ends[place]), int(self.ends[place + 1]))


def write_clients(folder: Path, version: str, clients: TableClients) -> None:
    """Write who owns the rows of a table that is about to be put in place.

    Between this and that the file belongs to another table than the one that is there, and neither
    is used.
    """
    path = folder / CLIENTS_NAME
    draft = folder / f".{CLIENTS_NAME}.tmp"
    facts = {"dataset": version, "names": [*clients.names], "counts": clients.counts}
    draft.unlink(missing_ok=True)
    private = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(private, "w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def forget_clients(folder: Path) -> None:
    """Remove who owned the rows of a table in whose place a whole one has been put."""
    (folder / CLIENTS_NAME).unlink(missing_ok=True)


def read_clients(folder: Path, header: TableHeader) -> TableClients | None:
    """Return the clients of a table, or None if it is not divided.

    Both the table and the file say whether it is: a divided table never looks whole.
    """
    path = folder / CLIENTS_NAME
    if not header.client_ids and not path.exists():
        return None
    try:
        facts = json.loads(path.read_text("utf-8"))
        found = TableClients.of(map(str, facts["names"]), map(int, facts["counts"]))
        fits = facts["dataset"] == header.dataset_version and bool(header.client_ids)
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{path} is missing or damaged; ingest the source again") from None
    fits &= len(found.names) == len(found.counts) and _differ(found.names)
    if not fits or sum(found.counts) != header.n_rows or min(found.counts, default=0) < 1:
        raise BadInput(f"{path} belongs to another table; ingest the source again")
    return found


def _differ(names: PackedNames) -> bool:
    """Return whether no two names are alike; in the order in which they are written, cheaply."""
    ordered = all(map(operator.lt, names, itertools.islice(names, 1, None)))
    return ordered or len(set(names)) == len(names)


def refuse_clients(ledger: Ledger, *, divided: bool) -> None:
    """Refuse what protects single rows on a table whose clients have many."""
    check_accounts(ledger, divided=False)
    if divided:
        raise BadInput(
            "the table is divided among clients, whose budgets protect all rows of a client; only "
            "jobs over clients may use it"
        )


def check_accounts(ledger: Ledger, *, divided: bool) -> None:
    """Refuse a table that is divided if the ledger has paid for a whole one, or the reverse.

    Privacy: the two are charged to different accounts, so the same rows would be paid for twice as
    if they were never used.
    """
    spent = {account for account, units in ledger.state.spent.items() if units}
    if divided and "" in spent:
        raise BadInput("the ledger has paid for a whole table, and this one is divided by clients")
    if not divided and spent - {
        "",
        MEMBERSHIP,
        PREDICTION,
        HOSTILE,
    }:  # alignments are paid for before there is a table
        raise BadInput("the ledger has paid for clients of a divided table, and this one is whole")


def check_clients(job: Job, party: str, have: int) -> None:
    """Refuse a job that counts on another number of clients than the party has."""
    if (expected := job.member(party).clients) != have:
        raise BadMessage(f"the job has {expected} clients of party {party}, which has {have}")


def set_aside(ledger: Ledger, job: str, accounts: Sequence[str], *, units: int) -> None:
    """Set a job's greatest price aside, of every client that can afford it.

    Of one that cannot, what is free is set aside: it takes part as long as that lasts, and then
    declines. Nothing that becomes free later counts, so no job costs a client more than its
    greatest price. If nobody has anything, the job is refused.
    """
    admitted = ledger.state.admitted
    new = PackedNames(account for account in accounts if (job, account) not in admitted)
    refused = ledger.admit_many(job, new, units=units)
    by_rest: dict[int, list[str]] = {}
    for account in refused:
        by_rest.setdefault(ledger.free(account), []).append(account)
    for rest, poor in by_rest.items():
        if rest:
            ledger.admit_many(job, poor, units=rest)
    if refused and not any((job, account) in ledger.state.admitted for account in accounts):
        raise next(iter(refused.values()))
