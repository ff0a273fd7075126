"""What a sequence of ledger entries means: a pure fold, with every rule of the ledger in it.

The same rules run when a ledger opens, when it grows and when an auditor reads an export.
"""

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from colonnade.core.errors import (
    AwaitingApproval,
    BudgetExceeded,
    JobClosed,
    LedgerDamaged,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)
from colonnade.ledger.caps import MONTH, MONTHS, OPERATOR, PURPOSE, Place, ScopedCaps, cap_statement
from colonnade.ledger.decisions import REFUSE, Docket, check_keys
from colonnade.ledger.entries import (
    Abandoned,
    Admitted,
    AdmittedTogether,
    Adopted,
    Bound,
    CapSet,
    Charged,
    ChargedTogether,
    Closed,
    Entry,
    Opened,
    Purged,
    ReleaseKey,
    Stored,
    StoredTogether,
)
from colonnade.ledger.job_entries import ApproversSet, Decided, Declined, PolicyNoted, Proposed
from colonnade.ledger.lines import GENESIS, chain, entry_from_line
from colonnade.ledger.receipts import verify
from colonnade.privacy.accounting import MAX_UNITS, Budget, format_units
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.membership import MEMBERSHIP, Covered, MembershipNoise
from colonnade.privacy.records import mechanism_from_record
from colonnade.privacy.ring_noise import HOSTILE

Refusal: TypeAlias = (
    AwaitingApproval
    | BudgetExceeded
    | JobClosed
    | ReleaseAbandoned
    | ReleasePurged
    | RequestConflict
)
REFUSALS = (
    AwaitingApproval,
    BudgetExceeded,
    JobClosed,
    ReleaseAbandoned,
    ReleasePurged,
    RequestConflict,
)


_PAYS_FOR = {MEMBERSHIP: "alignments", HOSTILE: "shields of sealed jobs"}


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
    spent: dict[str, int] = field(default_factory=dict)
    floor: int = 0  # spent by every account without an entry, after a recovery
    total: int = 0
    # What each open job may still spend, by job and account, and the sum of that by account.
    left: dict[str, dict[str, int]] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    admitted: dict[tuple[str, str], int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    charges: dict[ReleaseKey, Charge] = field(default_factory=dict)
    stored: dict[ReleaseKey, StoredRelease] = field(default_factory=dict)
    purged: set[ReleaseKey] = field(default_factory=set)
    bound: Bound | None = None  # the newest
    founders: frozenset[str] = frozenset()  # see `confirmed`
    abandoned: set[ReleaseKey] = field(default_factory=set)
    docket: Docket = field(default_factory=Docket)
    scoped: ScopedCaps = field(default_factory=ScopedCaps)

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
        named = {*self.caps, *self.spent, *(account for _, account in self.admitted)}
        return named - {"", MEMBERSHIP, PREDICTION, HOSTILE}

    def confirmed(self) -> frozenset[str]:
        """Return the clients' accounts that the ledger began with, or had after a forced binding.

        Later ones came with bindings that nobody had to confirm, each a small step.
        """
        beginning = self.bound is None or self.bound.forced or not self.founders
        return frozenset(self.accounts()) if beginning else self.founders

    def check_charge(self, key: ReleaseKey, *, mechanism: Mechanism, request_sha256: str) -> bool:
        """Return whether ``key`` still has to be charged; refuse what must not be answered."""
        if (earlier := self.charges.get(key)) is None:
            self._check_open(key.job)
            if key.job in self.docket.proposals and key.job not in self.scoped.places:
                raise ValueError("a proposed job is charged before it was admitted")
            if isinstance(mechanism, Disclosure) != (key.account == PREDICTION):
                raise ValueError("predictions have an account of their own, and it has no others")
            if isinstance(mechanism, Covered):
                self._check_covered(key)
            else:
                self._check_affordable(key, mechanism.cost)
            return True
        asked = request_sha256, mechanism.record()
        if (earlier.request_sha256, earlier.mechanism.record()) != asked:
            raise RequestConflict(
                f"release {key.kind} of round {key.round} was asked before with another request; "
                "a key is answered once"
            )
        if key in self.purged:
            raise ReleasePurged(
                f"release {key.kind} of round {key.round} was purged and is never drawn again"
            )
        if key in self.abandoned:
            raise abandonment(key)
        if key not in self.stored:
            self._check_open(key.job)
        return False

    def _check_open(self, job: str) -> None:
        if job in self.closed:
            raise JobClosed("the job was closed at this ledger; submit a new job")

    def _check_covered(self, key: ReleaseKey) -> None:
        """Refuse what is free unless the same job's dummies were paid for by the same account."""
        paid = self.charges.get(ReleaseKey(key.job, 0, MEMBERSHIP, key.account))
        if paid is None or not isinstance(paid.mechanism, MembershipNoise):
            raise ValueError("a release is said to be covered by dummies that nobody paid for")

    def _check_affordable(self, key: ReleaseKey, units: int) -> None:
        left = self.left.get(key.job, {}).get(key.account)
        if left is None:
            self.unreserved(key.account).charge(units)
            self.scoped.check_outside(key.job, key.account, units)
        elif units > left:
            raise BudgetExceeded(
                f"the release costs {format_units(units)} but {format_units(left, left=True)} is "
                "left of what the job was admitted with"
            )

    def unreserved(self, account: str) -> Budget:
        """Return the budget with what open jobs have set aside counted as spent."""
        budget = self.budget(account)
        return Budget(budget.cap, budget.spent + self.reserved.get(account, 0))

    def places(self, job: str, month: str) -> tuple[Place, ...]:
        """Return on which caps besides the accounts' a job counts that is admitted in ``month``."""
        if (known := self.scoped.places.get(job)) is not None:
            return known  # of its first admission
        proposal = self.docket.proposals.get(job)
        if proposal is None:  # the party's own
            return ((MONTH, month),)
        asked = proposal.entry
        return ((OPERATOR, asked.requested_by), (PURPOSE, asked.purpose), (MONTH, month))

    def check_admission(self, job: str, account: str, units: int, *, month: str) -> bool:
        """Return whether ``job`` still has to be admitted; refuse what cannot be afforded."""
        self._check_open(job)
        # A shield's price is no part of the job's: the policy states its limit, and it buys safety.
        self.docket.check_approved(job, None if account == HOSTILE else units)
        if (earlier := self.admitted.get((job, account))) is not None:
            if earlier != units:
                raise RequestConflict("the job was admitted before with another limit")
            return False
        if account == PREDICTION:
            if units:
                raise ValueError("predictions have no price: there is no guarantee to pay for")
            return True
        try:
            self.unreserved(account).charge(units)
        except BudgetExceeded as error:
            if account not in _PAYS_FOR:
                raise
            raise BudgetExceeded(
                f"in the account {account!r}, which pays for {_PAYS_FOR[account]}: {error}"
            ) from None
        self.scoped.check(self.places(job, month), account, units)
        return True

    def check_cap(self, entry: CapSet) -> None:
        """Refuse a cap that the keys did not sign or that lies below what is spent or set aside."""
        opened = self._opened()
        message = cap_statement(opened.ledger_id, self.next_seq, entry)
        if not verify(bytes.fromhex(opened.public_key), bytes.fromhex(entry.signature), message):
            raise ValueError("a cap is not signed by the ledger's key")
        place = (entry.scope, entry.account)
        before = self.scoped.cap(place) if entry.scope else self.cap(entry.account)
        raised = before is not None and entry.units > before
        guarded = bool(self.docket.approvers) and self.next_seq > opened.founding_caps + 1
        if raised and guarded and not self.docket.signed(entry.approver_signature, message):
            raise ValueError("a raise of the cap is not signed by the approver's key")
        if entry.scope:
            self.scoped.check_cap(place, entry.units)
            return
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
        if 1 < seq <= self._opened().founding_caps + 1 and not isinstance(entry, CapSet):
            raise ValueError("the caps of the founding come right after the first entry")
        match entry:
            case Opened():
                if entry.continues:
                    _check_lists(entry.continues, entry.accounted)
                check_keys(entry.approver_keys)
                self.opened, self.docket.approvers = entry, tuple(entry.approver_keys)
            case CapSet() if entry.scope:
                self.check_cap(entry)
                self.scoped.caps[entry.scope, entry.account] = entry.units
            case CapSet():
                self.check_cap(entry)
                self.caps[entry.account] = entry.units
                self.highest = max(self.highest, entry.units)
            case ApproversSet() | PolicyNoted() | Proposed() | Declined() | Decided():
                self._decide(entry, seq)
            case Admitted():
                self._admit(entry.job, [entry.account], entry.units, entry.month)
            case AdmittedTogether():
                self._admit(entry.job, entry.accounts, entry.units, entry.month)
            case Charged():
                self._charge(entry, [entry.account], [entry.request_sha256])
            case ChargedTogether():
                self._charge(entry, entry.accounts, entry.requests_sha256)
            case Stored():
                self._store(entry, seq, [entry.account], [entry.body_sha256], [entry.spent])
            case StoredTogether():
                self._store(entry, seq, entry.accounts, entry.bodies_sha256, entry.spent)
            case Purged():
                if entry.key not in self.stored or entry.key in self.purged:
                    raise ValueError("a release is purged that is not there")
                self.purged.add(entry.key)
            case Abandoned():
                self._abandon(entry)
            case Closed():
                self._close(entry.job)
            case Adopted():
                self._adopt(entry)
            case Bound():
                _check_bound(entry)
                self.founders, self.bound = self.confirmed(), entry

    # In each of these the accounts differ, so that what holds for every one of them before the
    # first still holds for the last; and nothing changes before all is checked.

    def _admit(self, job: str, accounts: Sequence[str], units: int, month: str) -> None:
        _check_lists(accounts)
        if not MONTHS.fullmatch(month):
            raise ValueError("a job is admitted in no month")
        admitted = (self.check_admission(job, each, units, month=month) for each in accounts)
        if not all(admitted):
            raise ValueError("a job is admitted twice")
        self.scoped.places[job] = self.places(job, month)
        left = self.left.setdefault(job, {})
        for account in accounts:
            self.admitted[job, account] = units
            left[account] = units
            self._reserve(job, account, units)

    def _close(self, job: str) -> None:
        self.closed.add(job)
        for account, units in self.left.pop(job, {}).items():
            self._reserve(job, account, -units)

    def _decide(
        self, entry: ApproversSet | PolicyNoted | Proposed | Declined | Decided, seq: int
    ) -> None:
        """Take what concerns decisions on jobs."""
        opened = self._opened()
        match entry:
            case ApproversSet():
                self.docket.check_approvers(opened.ledger_id, seq, entry, opened.public_key)
                self.docket.approvers = tuple(entry.keys)
            case PolicyNoted():
                self.docket.take_policy(entry, seq)
            case Proposed():
                self._check_open(entry.job)
                if entry.job in self.scoped.places:
                    raise ValueError("a job is proposed anew that was admitted")
                self.docket.take_proposal(entry, seq)
            case Declined():
                self.docket.take_refusal(entry)
            case Decided():
                self.check_decision(entry)
                self.docket.take_decision(entry)
                if entry.verdict == REFUSE:
                    self._close(entry.job)

    def check_decision(self, entry: Decided) -> None:
        """Refuse a decision that no approver signed, or that comes too late or out of order."""
        self._check_open(entry.job)
        admitted = entry.job in self.scoped.places
        self.docket.check_decision(self._opened().ledger_id, entry, admitted=admitted)

    def _charge(
        self, entry: Charged | ChargedTogether, accounts: Sequence[str], requests: Sequence[str]
    ) -> None:
        _check_lists(accounts, requests)
        _check_digests(requests)
        # The price is recomputed: an entry cannot understate it.
        mechanism, units = mechanism_from_record(entry.mechanism), entry.units
        if mechanism.cost != units:
            raise ValueError("a charge differs from the price of its mechanism")
        keys = [ReleaseKey(entry.job, entry.round, entry.kind, account) for account in accounts]
        for key, request in zip(keys, requests, strict=True):
            if not self.check_charge(key, mechanism=mechanism, request_sha256=request):
                raise ValueError("a release is charged twice")
        left = self.left.get(entry.job, {})
        for key, account, request in zip(keys, accounts, requests, strict=True):
            self.charges[key] = Charge(units, mechanism, request)
            self._spend(account, units)
            self.scoped.spend(entry.job, account, units)
            if account in left:
                left[account] -= units
                self._reserve(entry.job, account, -units)

    def _store(
        self,
        entry: Stored | StoredTogether,
        seq: int,
        accounts: Sequence[str],
        digests: Sequence[str],
        spent: Sequence[int],
    ) -> None:
        _check_lists(accounts, digests, spent)
        _check_digests(digests)
        keys = [ReleaseKey(entry.job, entry.round, entry.kind, account) for account in accounts]
        if not all(map(self.is_due, keys)):
            raise ValueError("a release is stored that was not charged, or twice")
        if any(map(operator.ne, spent, map(self.spent_by, accounts))):
            raise ValueError("a stored release misstates what was spent")
        size = entry.body_bytes
        if size < 0:
            raise ValueError("a release has a negative size")
        for place, (key, digest, units) in enumerate(zip(keys, digests, spent, strict=True)):
            self.stored[key] = StoredRelease(seq, place * size, size, digest, units)

    def _abandon(self, entry: Abandoned) -> None:
        _check_lists(entry.accounts)
        if any(not self.is_due(key) for key in entry.keys):
            raise ValueError("a release is abandoned that was not charged, or that was stored")
        self.abandoned.update(entry.keys)

    def is_due(self, key: ReleaseKey) -> bool:
        """Return whether the release was paid for and neither stored nor abandoned."""
        return key in self.charges and key not in self.stored and key not in self.abandoned

    def _adopt(self, entry: Adopted) -> None:
        if entry.scope:
            self.scoped.adopt((entry.scope, entry.account), entry.units)
        elif entry.account == "*":
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

    def _reserve(self, job: str, account: str, units: int) -> None:
        self.reserved[account] = self.reserved.get(account, 0) + units
        self.scoped.reserve(job, account, units)

    def _opened(self) -> Opened:
        if self.opened is None:
            raise ValueError("the ledger has no first entry")
        return self.opened


def abandonment(key: ReleaseKey) -> ReleaseAbandoned:
    """Return the refusal of a release that was abandoned: what went wrong stays here."""
    return ReleaseAbandoned(
        f"release {key.kind} of round {key.round} was paid for and could not be made; it is never "
        "tried again: submit a new job, and see the log of this party"
    )


def _check_lists(accounts: Sequence[str], *others: Sequence[object]) -> None:
    """Refuse an entry that lists an account twice, or nobody, or other things than accounts."""
    if not accounts or len({*accounts}) != len(accounts):
        raise ValueError("an entry lists nobody, or an account twice")
    if {"", MEMBERSHIP} <= {*accounts}:
        raise ValueError("an entry lists both accounts of the same people")
    if any(len(other) != len(accounts) for other in others):
        raise ValueError("an entry lists more or fewer things than accounts")


def _check_bound(entry: Bound) -> None:
    """Refuse a binding that names no table or no reason, or that could not be shown."""
    _check_digests([entry.table])
    told = entry.dataset + entry.client_ids + entry.other_ledger + entry.reason
    if not entry.reason.strip() or not told.isprintable():
        raise ValueError("a table is bound without a reason that can be shown")


def _check_digests(digests: Sequence[str]) -> None:
    """Refuse what is no SHA-256 in hexadecimal."""
    if any(len(each) != 64 or each.strip("0123456789abcdef") for each in digests):
        raise ValueError("an entry has a digest that is none")
