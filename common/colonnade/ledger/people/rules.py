"""Rules of a ledger whose people have an account over several projects.

Privacy: once a ledger has joined, none of its priced releases is charged before an entry that the
people's account signed: that account was charged, durably, with its price, or for a host's clients
with all that the job can cost any of them (`privacy.person_claim` says why that suffices). The rule
is part of the fold, so an export that breaks it does not verify, wherever the account is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from colonnade.core.errors import BudgetExceeded
from colonnade.ledger.caps import PERSON, ScopedBudget
from colonnade.ledger.entries import Opened, ReleaseKey, canonical
from colonnade.ledger.people.entries import Joined, PersonPaid
from colonnade.ledger.receipts import verify
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE

ALL_PROJECTS = "over all projects"
TABLE, CLIENT = "table", "client"
KINDS = (TABLE, MEMBERSHIP, CLIENT)


def kind_of(account: str) -> str | None:
    """Return whose price an account pays; None if a person's cap does not count it.

    Predictions have no price. Shields of sealed jobs have a cap of their own, as under the caps by
    operator, purpose and month.
    """
    if account in (PREDICTION, HOSTILE):
        return None
    return {"": TABLE, MEMBERSHIP: MEMBERSHIP}.get(account, CLIENT)


@dataclass(slots=True)
class JoinedPeople:
    """The account that a ledger has joined, and what was charged there for its jobs."""

    joined: Joined | None = None
    # Open at the joining, which counted it: jobs and the accounts that each had admitted.
    before: frozenset[tuple[str, str]] = frozenset()
    paid: dict[tuple[str, str, int], PersonPaid] = field(default_factory=dict)
    covered: dict[tuple[str, str], int] = field(default_factory=dict)  # by job and kind
    used: dict[tuple[str, str], int] = field(default_factory=dict)

    def budget(self) -> ScopedBudget | None:
        """Return what the account said of itself when it was last charged by this ledger."""
        if self.joined is None:
            return None
        newest = list(self.paid.values())[-1:]
        spent, cap = (newest[0].spent, newest[0].cap) if newest else (self.joined.units, None)
        return ScopedBudget(PERSON, ALL_PROJECTS, cap, spent, 0)

    def counts(self, key: ReleaseKey, units: int) -> str | None:
        """Return whose price a release is, if the account must be charged with it first."""
        if self.joined is None or units == 0 or (key.job, key.account) in self.before:
            return None
        return kind_of(key.account)

    def check_charge(self, key: ReleaseKey, units: int, *, admitted: int | None) -> None:
        """Refuse a release that nobody admitted, or that the account was not charged with."""
        if (kind := self.counts(key, units)) is None:
            return
        if admitted is None:
            raise BudgetExceeded(
                "under a cap by person a release is paid for by an admitted job; admit it first"
            )
        covered = self.covered.get((key.job, kind), 0)
        # Of a host's clients nobody can lose more than each was admitted with.
        needed = admitted if kind == CLIENT else self.used.get((key.job, kind), 0) + units
        if covered < needed:
            raise ValueError("a release is charged before the account of its people was")

    def spend(self, key: ReleaseKey, units: int) -> None:
        """Count what a release used of what the account was charged with."""
        if (kind := self.counts(key, units)) is not None:
            self.used[key.job, kind] = self.used.get((key.job, kind), 0) + units

    def join(self, entry: Joined, opened: Opened, open_jobs: Mapping[str, Collection[str]]) -> None:
        """Take the account that the ledger joins."""
        if self.joined is not None:
            raise ValueError("a ledger joins one account of its people, for good")
        if entry.member != opened.ledger_id and entry.member not in opened.continues:
            raise ValueError("a ledger joins as another one")
        if entry.account == opened.ledger_id or entry.units < 0:
            raise ValueError("a ledger cannot be the account of its own people")
        if not entry.reason.strip() or not entry.reason.isprintable():
            raise ValueError("an account is joined without a reason that can be shown")
        _check_signed(entry.public_key, entry.signature, joined_statement(entry))
        self.joined = entry
        self.before = frozenset((job, each) for job, held in open_jobs.items() for each in held)

    def take_paid(self, entry: PersonPaid, opened: Opened, seq: int) -> None:
        """Take what the account was charged with, at place ``seq`` of this ledger."""
        if self.joined is None or entry.kind not in KINDS or entry.units < 0:
            raise ValueError("an account was charged that the ledger has not joined")
        message = paid_statement(opened.ledger_id, seq, entry)
        _check_signed(self.joined.public_key, entry.signature, message)
        self.paid[entry.job, entry.kind, seq] = entry
        if not entry.wasted:
            place = (entry.job, entry.kind)
            self.covered[place] = self.covered.get(place, 0) + entry.units


def joined_statement(entry: Joined) -> bytes:
    """Return what the people's account signs when a ledger joins."""
    facts = {"account": entry.account, "member": entry.member, "units": entry.units}
    return b"colonnade member v1\0" + canonical(facts).encode()


def paid_statement(member: str, seq: int, entry: PersonPaid) -> bytes:
    """Return what the people's account signs for a charge that is noted at place ``seq``."""
    facts = {
        "member": member,
        "place": seq,
        "job": entry.job,
        "kind": entry.kind,
        "units": entry.units,
        "wasted": entry.wasted,
        "account": entry.account,
        "account_seq": entry.account_seq,
        "chain_hash": entry.chain_hash,
        "spent": entry.spent,
        "cap": entry.cap,
    }
    return b"colonnade person charge v1\0" + canonical(facts).encode()


def _check_signed(public_key: str, signature: str, message: bytes) -> None:
    if not verify(bytes.fromhex(public_key), bytes.fromhex(signature), message):
        raise ValueError("an entry is not signed by the account of the people")
