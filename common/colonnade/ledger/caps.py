"""Caps: how they are signed, and those beside the table's, by operator, purpose and month.

A cap is signed by the ledger's key, and a raise by approvers where the ledger names any: by as many
as any decision ever needed (`decisions.Docket.quorum`), or one of two could spend alone what both
have to agree to.

Each is a budget of its own, of every account: what jobs of one operator (for one purpose, admitted
in one month) have spent or set aside of the account may not exceed it. A scope without a cap is
bounded by the table's alone. The same filter (`privacy.accounting.Budget`) runs for all of them, in
the fold of the ledger's entries. What is spent is counted whether there is a cap or not, so that
one that is set later counts what came before.

The month is the one that the machine's clock said when the job was admitted, as the entry states.
A clock that is wrong moves spending to another month; the table's cap does not know months.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BudgetExceeded
from colonnade.ledger.entries import CapSet, canonical
from colonnade.ledger.rules.amounts import Amounts, ClientNames
from colonnade.privacy.accounting import Budget, format_units
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE

OPERATOR, PURPOSE, MONTH = "operator", "purpose", "month"
NOBODY = "(not named)"  # whoever does not say who asks
PERSON = "person"  # over several projects: shown like the others, kept in an account of its own
SCOPES = (OPERATOR, PURPOSE, MONTH)
MONTHS = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")

Place = tuple[str, str]  # a scope and the operator, purpose or month
_NOTHING: Mapping[str, int] = types.MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ScopedBudget:
    """What the jobs of one operator, purpose or month may cost, did, and may still, in units."""

    scope: str
    name: str
    cap: int | None  # None without one
    spent: int  # by the account that paid most
    reserved: int

    @property
    def whose(self) -> str:
        """Whose budget it is; a cap without a name is of all who have none of their own."""
        default = self.cap is not None and not self.name
        return f"each {self.scope}" if default else describe_place((self.scope, self.name))

    @property
    def left(self) -> int:
        """What the cap leaves room for."""
        return max(0, (self.cap or 0) - self.spent - self.reserved)


@dataclass(slots=True)
class ScopedCaps:
    """The caps by scope, and what was spent and set aside under each, by account."""

    accounts: ClientNames = field(default_factory=ClientNames)
    caps: dict[Place, int] = field(default_factory=dict)
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)  # of a job
    spent: dict[Place, Amounts] = field(default_factory=dict)
    reserved: dict[Place, Amounts] = field(default_factory=dict)
    floors: dict[Place, int] = field(default_factory=dict)  # adopted after a recovery, by everybody

    def cap(self, place: Place) -> int | None:
        """Return the cap of a place: its own, or the default of its scope.

        Whoever does not say who asks has the least of the operators' caps: they might be any.
        """
        found = self.caps.get(place, self.caps.get((place[0], "")))
        if found is None and place == (OPERATOR, NOBODY):
            others = (units for (scope, _), units in self.caps.items() if scope == OPERATOR)
            return min(others, default=None)
        return found

    def month_of(self, job: str) -> str | None:
        """Return the month on whose cap a job counts, once it was admitted."""
        return dict(self.places.get(job, ())).get(MONTH)

    def check(self, places: tuple[Place, ...], account: str, units: int) -> None:
        """Refuse what a cap of one of the places does not leave room for."""
        for place in () if account == HOSTILE else places:  # shields have a cap of their own
            if (cap := self.cap(place)) is None:
                continue
            used = self._used(place, _people(account))
            if units > cap - used:
                raise BudgetExceeded(
                    f"the job may cost {format_units(units)} but "
                    f"{format_units(max(0, cap - used), left=True)} is left under the cap of "
                    f"{format_units(cap, left=True)} of {describe_place(place)}; "
                    "ask for less or raise it"
                )

    def check_cap(self, place: Place, units: int) -> None:
        """Refuse a cap below what is spent or set aside."""
        scope, name = place
        if scope not in SCOPES or not name.isprintable():
            raise ValueError("a cap is of no operator, purpose or month")
        if scope == MONTH and name and not MONTHS.fullmatch(name):
            raise ValueError("a cap is of no month")
        self._check_room(place, units, self._used(place, ""))
        for other in {*self.spent, *self.reserved, *self.floors}:
            if other == place or (other[0] == scope and not name and other not in self.caps):
                accounts = {*self.spent.get(other, ()), *self.reserved.get(other, ()), ""}
                for account in accounts:
                    self._check_room(other, units, self._used(other, account))

    def _check_room(self, place: Place, units: int, used: int) -> None:
        if used > units:
            raise ValueError(
                f"{format_units(used)} is spent or set aside under {describe_place(place)}, where "
                "alignments count too; a cap cannot be below"
            )
        Budget(units)

    def check_outside(self, job: str, account: str, units: int) -> None:
        """Refuse a charge that no admission covers, unless the job's places have room for it."""
        if job not in self.places and any(scope == MONTH for scope, _ in self.caps):
            raise BudgetExceeded(
                "under a cap by month a release is paid for by an admitted job; admit it first"
            )
        self.check(self.places.get(job, ()), account, units)

    def adopt(self, place: Place, units: int) -> None:
        """Count what a ledger that was recovered from had spent in a place."""
        if place in self.floors or place[0] not in SCOPES or units <= 0:
            raise ValueError("a scope adopts once, and something")
        if (cap := self.cap(place)) is not None:
            Budget(cap).charge(units)
        self.floors[place] = units

    def reserve(self, job: str, account: str, units: int) -> None:
        """Count what a job set aside; less than nothing frees it."""
        self._add(self.reserved, job, account, units)

    def reserve_each(
        self, job: str, accounts: Sequence[str], places: Sequence[int], units: int
    ) -> None:
        """Count what a job set aside of each of many accounts, with their numbers."""
        if {HOSTILE, MEMBERSHIP}.isdisjoint(accounts):
            for place in self.places.get(job, ()):
                self._at(self.reserved, place).add_to_each(accounts, places, units)
            return
        for account in accounts:
            self.reserve(job, account, units)

    def spend(self, job: str, account: str, units: int) -> None:
        """Count what a job paid."""
        self._add(self.spent, job, account, units)

    def budgets(self) -> Iterator[ScopedBudget]:
        """Yield every place with a cap or with spending, in order."""
        for place in sorted({*self.caps, *self.spent, *self.reserved, *self.floors}):
            found = self.budget(place)
            if found.cap is not None or found.spent or found.reserved:
                yield found

    def budget(self, place: Place) -> ScopedBudget:
        """Return the budget of a place, for the account that used most of it."""
        spent, reserved = self._of(self.spent, place), self._of(self.reserved, place)
        most = max({*spent, *reserved, ""}, key=lambda each: self._used(place, each))
        held = reserved.get(most, 0)
        return ScopedBudget(*place, self.cap(place), self._used(place, most) - held, held)

    def _used(self, place: Place, account: str) -> int:
        floor = self.floors.get(place, self.floors.get((place[0], ""), 0))
        spent, reserved = self._of(self.spent, place), self._of(self.reserved, place)
        return floor + spent.get(account, 0) + reserved.get(account, 0)

    def _of(self, counts: dict[Place, Amounts], place: Place) -> Mapping[str, int]:
        return counts.get(place, _NOTHING)

    def _add(self, counts: dict[Place, Amounts], job: str, account: str, units: int) -> None:
        people = _people(account)
        for place in () if account == HOSTILE else self.places.get(job, ()):
            at = self._at(counts, place)
            at[people] = at.get(people, 0) + units

    def _at(self, counts: dict[Place, Amounts], place: Place) -> Amounts:
        if (at := counts.get(place)) is None:
            at = counts[place] = Amounts(self.accounts)
        return at


def describe_place(place: Place) -> str:
    """Return a place for people."""
    scope, name = place
    if scope == PERSON:
        return f"a person {name}"
    return f"{scope} {name or '(none said)'}"


def _people(account: str) -> str:
    """Return who pays: alignments are paid by the people of the table, from an account beside."""
    return "" if account == MEMBERSHIP else account


def cap_statement(ledger_id: str, seq: int, entry: CapSet) -> bytes:
    """Return the bytes that the ledger's key and the approver sign for a cap."""
    return (
        b"colonnade cap v2\0"
        + canonical(
            {
                "ledger_id": ledger_id,
                "seq": seq,
                "scope": entry.scope,
                "account": entry.account,
                "units": entry.units,
                "reason": entry.reason,
            }
        ).encode()
    )


def signed_cap(
    ledger_id: str,
    seq: int,
    entry: CapSet,
    *,
    sign: Callable[[bytes], bytes],
    approvers: Sequence[Ed25519PrivateKey] = (),
) -> CapSet:
    """Return ``entry`` with its signatures; those of approvers stand one after the other."""
    message = cap_statement(ledger_id, seq, entry)
    return replace(
        entry,
        signature=sign(message).hex(),
        approver_signature="".join(each.sign(message).hex() for each in approvers),
    )
