"""The state of a ledger: the fold of its entries as of the last one, and queries on it.

The rules by which an entry may follow, and what it changes, are in `ledger.rules`.
"""

import hashlib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from colonnade.core.errors import (
    AwaitingApproval,
    BudgetExceeded,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.ledger.caps import MONTH, NOBODY, OPERATOR, PURPOSE, Place, ScopedCaps
from colonnade.ledger.decisions import Docket
from colonnade.ledger.entries import Bound, Opened, ReleaseKey
from colonnade.ledger.lines import GENESIS
from colonnade.ledger.people.rules import JoinedPeople
from colonnade.ledger.rules.amounts import Admissions, Amounts, ClientNames
from colonnade.privacy.accounting import Budget
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE

Refusal: TypeAlias = (
    AwaitingApproval
    | BudgetExceeded
    | JobClosed
    | ReleaseAbandoned
    | ReleasePurged
    | RequestConflict
)
_NOTHING: Mapping[str, int] = types.MappingProxyType({})
REFUSALS = (
    AwaitingApproval,
    BudgetExceeded,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain, and what a recovery needs to know of what led there.

    ``spent`` is the sum over all accounts, ``cap`` the default cap, ``highest`` the highest cap
    that any account ever had: no account has spent more.
    """

    seq: int
    chain_hash: bytes
    spent: int
    cap: int
    highest: int


class Charge(NamedTuple):
    """What was paid for a release."""

    units: int
    mechanism: Mechanism  # rebuilt from the entry
    request_sha256: str


class StoredRelease(NamedTuple):
    """What was stored of a release: a part of the bytes kept with a row."""

    seq: int
    start: int
    body_bytes: int
    body_sha256: str
    spent: int

    def of(self, row: bytes) -> bytes | None:
        """Return the release's bytes out of its row's; None if they are not what was stored."""
        body = row[self.start : self.start + self.body_bytes]
        return body if hashlib.sha256(body).hexdigest() == self.body_sha256 else None

    def blanked(self, row: bytes) -> bytes | None:
        """Return a row's bytes with zeros for the release's; None if there are no others'."""
        if len(row) == self.body_bytes:
            return None
        return row[: self.start] + bytes(self.body_bytes) + row[self.start + self.body_bytes :]


@dataclass(slots=True)
class LedgerState:
    """The account as of the last entry."""

    opened: Opened | None = None
    hashes: list[bytes] = field(default_factory=lambda: [GENESIS])
    caps: dict[str, int] = field(default_factory=dict)
    highest: int = 0  # of all caps that ever were
    names: ClientNames = field(default_factory=ClientNames)
    spent: Amounts = field(init=False)
    floor: int = 0  # spent by every account without an entry, after a recovery
    total: int = 0
    # What each open job may still spend, by job and account, and the sum of that by account.
    left: dict[str, Amounts] = field(default_factory=dict)
    reserved: Amounts = field(init=False)
    admitted: Admissions = field(init=False)
    closed: set[str] = field(default_factory=set)
    kept: dict[str, int] = field(default_factory=dict)  # of the default account, by ended job
    charges: dict[ReleaseKey, Charge] = field(default_factory=dict)
    stored: dict[ReleaseKey, StoredRelease] = field(default_factory=dict)
    purged: set[ReleaseKey] = field(default_factory=set)
    bound: Bound | None = None  # the newest
    founders: frozenset[str] = frozenset()  # see `confirmed`
    abandoned: set[ReleaseKey] = field(default_factory=set)
    docket: Docket = field(default_factory=Docket)
    scoped: ScopedCaps = field(init=False)
    people: JoinedPeople = field(default_factory=JoinedPeople)  # over several projects

    def __post_init__(self) -> None:
        """Begin with no amounts, by accounts that all tables number alike."""
        self.spent, self.reserved = Amounts(self.names), Amounts(self.names)
        self.admitted, self.scoped = Admissions(self.names), ScopedCaps(self.names)

    @property
    def next_seq(self) -> int:
        """The place of the next entry."""
        return len(self.hashes)

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return Head(len(self.hashes) - 1, self.hashes[-1], self.total, self.cap(), self.highest)

    def on_chain(self, seq: int, chain_hash: bytes) -> bool:
        """Return whether the chain has ``chain_hash`` at place ``seq``."""
        return seq < len(self.hashes) and self.hashes[seq] == chain_hash

    def cap(self, account: str = "") -> int:
        """Return the cap of ``account``, in units."""
        return self.caps.get(account, self.caps.get("", 0))

    def budget(self, account: str = "") -> Budget:
        """Return cap and spending of ``account``."""
        return Budget(self.cap(account), self.spent_by(account))

    def spent_by(self, account: str = "") -> int:
        """Return what ``account`` has spent, in units."""
        return self.spent.get(account, self.floor)

    def accounts(self) -> set[str]:
        """Return the clients' accounts that an entry names: not the table's own four."""
        named = {*self.caps, *self.spent} | self.admitted.accounts()
        return named - {"", MEMBERSHIP, PREDICTION, HOSTILE}

    def confirmed(self) -> frozenset[str]:
        """Return the clients' accounts that the ledger began with, or had after a forced binding.

        Later ones came with bindings that nobody had to confirm, each a small step.
        """
        beginning = self.bound is None or self.bound.forced or not self.founders
        return frozenset(self.accounts()) if beginning else self.founders

    def unreserved(self, account: str) -> Budget:
        """Return the budget with what open jobs have set aside counted as spent."""
        budget = self.budget(account)
        return Budget(budget.cap, budget.spent + self.reserved.get(account, 0))

    def left_of(self, job: str) -> Mapping[str, int]:
        """Return what an open job may still spend, by account; nothing of another job."""
        return self.left.get(job, _NOTHING)

    def places(self, job: str, month: str) -> tuple[Place, ...]:
        """Return on which caps besides the accounts' a job counts that is admitted in ``month``."""
        if (known := self.scoped.places.get(job)) is not None:
            return known  # of its first admission
        proposal = self.docket.proposals.get(job)
        if proposal is None:  # the party's own
            return ((MONTH, month),)
        asked = proposal.entry
        operator = asked.requested_by or NOBODY
        return ((OPERATOR, operator), (PURPOSE, asked.purpose), (MONTH, month))

    def is_due(self, key: ReleaseKey) -> bool:
        """Return whether the release was paid for and neither stored nor abandoned."""
        return key in self.charges and key not in self.stored and key not in self.abandoned

    def first_entry(self) -> Opened:
        """Return the first entry; `ValueError` if there is none."""
        if self.opened is None:
            raise ValueError("the ledger has no first entry")
        return self.opened


def abandonment(key: ReleaseKey) -> ReleaseAbandoned:
    """Return the refusal of a release that was abandoned: what went wrong stays here."""
    return ReleaseAbandoned(
        f"release {key.kind} of round {key.round} was paid for and could not be made; it is never "
        "tried again: submit a new job, and see the log of this party"
    )
