"""What a sequence of ledger entries means: a pure fold, with every rule of the ledger in it.

The same rules run when a ledger opens, when it grows and when an auditor reads an export.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from colonnade.core.errors import (
    BudgetExceeded,
    JobClosed,
    LedgerDamaged,
    ReleasePurged,
    RequestConflict,
)
from colonnade.privacy.accounting import MAX_UNITS, Budget, rho_from_units
from colonnade.privacy.caps import cap_statement
from colonnade.privacy.entries import (
    GENESIS,
    Admitted,
    Adopted,
    CapSet,
    Charged,
    Closed,
    Entry,
    Opened,
    Purged,
    ReleaseKey,
    Stored,
    chain,
    entry_from_line,
)
from colonnade.privacy.mechanisms import Mechanism, mechanism_from_record
from colonnade.privacy.receipts import verify

REFUSALS = (BudgetExceeded, JobClosed, ReleasePurged, RequestConflict)
Refusal: TypeAlias = BudgetExceeded | JobClosed | ReleasePurged | RequestConflict


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: ``spent`` is the sum over all accounts, ``cap`` the default cap."""

    seq: int
    chain_hash: bytes
    spent: int
    cap: int


@dataclass(slots=True)
class LedgerState:
    """The account as of the last entry."""

    opened: Opened | None = None
    hashes: list[bytes] = field(default_factory=lambda: [GENESIS])
    caps: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    floor: int = 0  # spent by every account without an entry, after a recovery
    total: int = 0
    # What each open job may still spend, by job and account, and the sum of that by account.
    left: dict[str, dict[str, int]] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    admitted: dict[tuple[str, str], int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    charges: dict[ReleaseKey, Charged] = field(default_factory=dict)
    paid: dict[ReleaseKey, Mechanism] = field(default_factory=dict)  # rebuilt from the charges
    stored: dict[ReleaseKey, tuple[int, Stored]] = field(default_factory=dict)
    purged: set[ReleaseKey] = field(default_factory=set)

    @property
    def next_seq(self) -> int:
        """The place of the next entry."""
        return len(self.hashes)

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return Head(len(self.hashes) - 1, self.hashes[-1], self.total, self.cap())

    def on_chain(self, seq: int, chain_hash: bytes) -> bool:
        """Tell whether the chain has ``chain_hash`` at place ``seq``."""
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

    def check_charge(self, key: ReleaseKey, *, mechanism: Mechanism, request_sha256: str) -> bool:
        """Return whether ``key`` still has to be charged; refuse what must not be answered."""
        if (earlier := self.charges.get(key)) is None:
            self._check_open(key.job)
            self._check_affordable(key, mechanism.cost)
            return True
        if (earlier.request_sha256, earlier.mechanism) != (request_sha256, mechanism.record()):
            raise RequestConflict(
                f"release {key.kind} of round {key.round} was asked before with another request; "
                "a key is answered once"
            )
        if key in self.purged:
            raise ReleasePurged(
                f"release {key.kind} of round {key.round} was purged and is never drawn again"
            )
        if key not in self.stored:
            self._check_open(key.job)
        return False

    def _check_open(self, job: str) -> None:
        if job in self.closed:
            raise JobClosed("the job was closed at this ledger; submit a new job")

    def _check_affordable(self, key: ReleaseKey, units: int) -> None:
        left = self.left.get(key.job, {}).get(key.account)
        if left is None:
            self.unreserved(key.account).charge(units)
        elif units > left:
            raise BudgetExceeded(
                f"the release costs rho {rho_from_units(units):.6g} but "
                f"{rho_from_units(left):.6g} is left of what the job was admitted with"
            )

    def unreserved(self, account: str) -> Budget:
        """Return the budget with what open jobs have set aside counted as spent."""
        budget = self.budget(account)
        return Budget(budget.cap, budget.spent + self.reserved.get(account, 0))

    def check_admission(self, job: str, account: str, units: int) -> bool:
        """Return whether ``job`` still has to be admitted; refuse what cannot be afforded."""
        self._check_open(job)
        if (earlier := self.admitted.get((job, account))) is not None:
            if earlier != units:
                raise RequestConflict("the job was admitted before with another limit")
            return False
        self.unreserved(account).charge(units)
        return True

    def check_cap(self, entry: CapSet) -> None:
        """Refuse a cap that the keys did not sign or that lies below what is spent or set aside."""
        opened = self._opened()
        message = cap_statement(opened.ledger_id, self.next_seq, entry)
        if not verify(bytes.fromhex(opened.public_key), bytes.fromhex(entry.signature), message):
            raise ValueError("a cap is not signed by the ledger's key")
        raised = entry.units > self.cap(entry.account)
        if raised and opened.approver_key and self.next_seq > opened.founding_caps + 1:
            approved = bytes.fromhex(entry.approver_signature)
            if not verify(bytes.fromhex(opened.approver_key), approved, message):
                raise ValueError("a raise of the cap is not signed by the approver's key")
        for account in {*self.spent, *self.reserved, entry.account}:
            if account == entry.account or (entry.account == "" and account not in self.caps):
                used = self.spent_by(account) + self.reserved.get(account, 0)
                if not used <= entry.units <= MAX_UNITS:
                    raise ValueError("a cap cannot lie below what is spent or set aside")

    def apply(self, line: str) -> Entry:
        """Take one more line; `LedgerDamaged` if it cannot follow what is there."""
        try:
            seq, _, entry = entry_from_line(line)
            if seq != self.next_seq:
                raise ValueError("an entry is missing or out of place")
            self.extend(entry, line)
        except (ValueError, TypeError, ArithmeticError, RecursionError, *REFUSALS) as error:
            raise LedgerDamaged(f"ledger entry {len(self.hashes)}: {error}") from None
        return entry

    def extend(self, entry: Entry, line: str) -> None:
        """Take a new entry and its line; a rule it breaks leaves everything as it was."""
        self._apply(entry, self.next_seq)
        self.hashes.append(chain(self.hashes[-1], line))

    def _apply(self, entry: Entry, seq: int) -> None:
        if (seq == 1) != isinstance(entry, Opened):
            raise ValueError("the first entry, and only it, opens the ledger")
        match entry:
            case Opened():
                self.opened = entry
            case CapSet():
                self.check_cap(entry)
                self.caps[entry.account] = entry.units
            case Admitted():
                if not self.check_admission(entry.job, entry.account, entry.units):
                    raise ValueError("a job is admitted twice")
                self.admitted[entry.job, entry.account] = entry.units
                self.left.setdefault(entry.job, {})[entry.account] = entry.units
                self._reserve(entry.account, entry.units)
            case Charged():
                self._apply_charge(entry)
            case Stored():
                self._apply_stored(entry, seq)
            case Purged():
                if entry.key not in self.stored or entry.key in self.purged:
                    raise ValueError("a release is purged that is not there")
                self.purged.add(entry.key)
            case Closed():
                self.closed.add(entry.job)
                for account, units in self.left.pop(entry.job, {}).items():
                    self._reserve(account, -units)
            case Adopted():
                self._adopt(entry)

    def _apply_charge(self, entry: Charged) -> None:
        # The price is recomputed: an entry cannot understate it.
        mechanism, key = mechanism_from_record(entry.mechanism), entry.key
        if mechanism.cost != entry.units:
            raise ValueError("a charge differs from the price of its mechanism")
        if not self.check_charge(key, mechanism=mechanism, request_sha256=entry.request_sha256):
            raise ValueError("a release is charged twice")
        self.charges[key] = entry
        self.paid[key] = mechanism
        self._spend(key.account, entry.units)
        left = self.left.get(key.job, {})
        if key.account in left:
            left[key.account] -= entry.units
            self._reserve(key.account, -entry.units)

    def _apply_stored(self, entry: Stored, seq: int) -> None:
        key = entry.key
        if key not in self.charges or key in self.stored:
            raise ValueError("a release is stored that was not charged, or twice")
        if entry.spent != self.spent_by(entry.account):
            raise ValueError("a stored release misstates what was spent")
        self.stored[key] = (seq, entry)

    def _adopt(self, entry: Adopted) -> None:
        if entry.account == "*":
            if self.spent or entry.units <= 0 or entry.units > self.cap():
                raise ValueError("what all accounts adopt comes first and is under the cap")
            self.floor = entry.units
        else:
            if entry.account in self.spent:
                raise ValueError("an account adopts once, before it spends")
            Budget(self.cap(entry.account)).charge(entry.units)
            self.spent[entry.account] = entry.units
            self.total += entry.units

    def _spend(self, account: str, units: int) -> None:
        self.spent[account] = self.spent_by(account) + units
        self.total += units

    def _reserve(self, account: str, units: int) -> None:
        self.reserved[account] = self.reserved.get(account, 0) + units

    def _opened(self) -> Opened:
        if self.opened is None:
            raise ValueError("the ledger has no first entry")
        return self.opened
