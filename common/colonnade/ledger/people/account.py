"""The account of an organization's people, as one of its ledgers uses it.

It is a ledger like any other, with a cap, a mirror, approvers, exports and recovery; its releases
are claims (`privacy.person_claim`), and nothing is ever drawn under them. Several processes share
it: each opens it for one transaction and waits its turn.

Order, for a job of a member: admitting sets its price aside in the account, durably, then in the
member. Before releases are charged in the member the account is charged with their price, durably,
and the member notes that, signed by the account. What a job did not use is free when the member has
closed it: the account itself knows what it was charged with. Clients of a host are many people, and
each may take part in other rounds; there the first release charges what the job may cost any one
of them, and the later ones nothing.

A process that is killed between two of these steps leaves more counted than was spent, never less:
what was charged and not noted stays charged, and covers nothing. An account that was charged with
something of which a member has no entry, although that has gone on since, shows that the member
is a copy or was restored: the member stops for good. An account that lacks a charge that a member
holds the signature of was itself restored: it stops as well.
"""

import contextlib
import hashlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from colonnade.core.errors import (
    BudgetExceeded,
    LedgerBusy,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
)
from colonnade.ledger.drafts import Draft, ReleaseRequest
from colonnade.ledger.entries import ReleaseKey, canonical
from colonnade.ledger.people.entries import PersonPaid
from colonnade.ledger.people.rules import CLIENT, kind_of, paid_statement
from colonnade.ledger.state import REFUSALS, Head, LedgerState, Refusal
from colonnade.ledger.writing.journal import Journal
from colonnade.privacy.person_claim import PersonClaim

if TYPE_CHECKING:
    from colonnade.ledger.ledger import Ledger

CLAIM = "claim"
WAIT_S, _PAUSE_S = 30.0, 0.01


class PeopleAccount:
    """The account that a member's ledger has joined.

    ``opened`` opens it, alone; ``at`` is called with each step, for the crash tests.
    """

    def __init__(
        self,
        member: Journal,
        opened: "Callable[[], Ledger]",
        *,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._member, self._open, self._at = member, opened, at
        self._name = member.opened.ledger_id
        with self._account(starts=True) as account:
            for name, round_ in self._unknown(account.state):
                # The process ended between the two charges; or this is a copy from just then.
                self._note(account, ReleaseKey(name, round_, CLAIM), wasted=True)

    def reserve(
        self, job: str, accounts: Iterable[str], units: int, *, after: str = ""
    ) -> dict[str, Refusal]:
        """Set aside the most that a job can cost a person; return whom the account refuses.

        What the job ``after`` kept, the account keeps too, for this one.
        """
        refused = dict[str, Refusal]()
        for kind, names in itertools.groupby(sorted(accounts, key=_order), kind_of):
            if kind is None or units == 0:
                continue
            try:
                with self._account() as account:
                    kept = (name for name in account.state.kept if self._is_mine(name))
                    before = next((name for name in kept if _parts(name) == (after, kind)), "")
                    name = self._reserved(account.state, job, kind)
                    account.admit(name, units=units, after=before)
                self._at("reserved")
            except REFUSALS as refusal:
                refused |= dict.fromkeys(names, _told(refusal))
        return refused

    def pay_for(self, requests: Sequence[ReleaseRequest]) -> dict[ReleaseKey, Refusal]:
        """Charge the account with ``requests`` that are new; return those that it refuses."""
        state, refused = self._member.state, dict[ReleaseKey, Refusal]()
        owed: dict[tuple[str, str], list[ReleaseRequest]] = {}
        for request in requests:
            key, cost = request.key, request.mechanism.cost
            left = state.left_of(key.job).get(key.account, -1)
            kind = state.people.counts(key, cost)
            if kind is not None and key not in state.charges and cost <= left:
                owed.setdefault((key.job, kind), []).append(request)
        for (job, kind), group in owed.items():
            try:
                self._charge(job, kind, self._price(job, kind, group))
            except REFUSALS as refusal:
                refused |= dict.fromkeys([request.key for request in group], _told(refusal))
        return refused

    def settle(self) -> None:
        """Free what was set aside for jobs that have ended."""
        with self._account():
            pass

    # -- inside ----------------------------------------------------------------------------------

    def _price(self, job: str, kind: str, group: Sequence[ReleaseRequest]) -> int:
        """Return what releases cost a person; of clients, what the whole job may cost, once."""
        if kind != CLIENT:
            return sum(request.mechanism.cost for request in group)
        if (job, kind) in self._member.state.people.covered:
            return 0
        return max(self._member.state.admitted[job, request.key.account] for request in group)

    def _charge(self, job: str, kind: str, units: int) -> None:
        """Charge the account, and then note that in the member."""
        head = self._member.state.head
        with self._account() as account:
            name = self._claim(account.state, job, kind, units)
            account.admit(name, units=account.state.admitted.get((name, ""), units))
            key, claim = ReleaseKey(name, head.seq, CLAIM), PersonClaim(self._name, units)
            account.charge(key, claim, request_sha256=_request(self._name, head))
            self._at("charged")
            self._note(account, key)

    @contextmanager
    def _account(self, *, starts: bool = False) -> Iterator["Ledger"]:
        account = _waiting(self._open)
        try:
            self._check(account, starts=starts)
            self._free(account)
            yield account
        finally:
            with contextlib.suppress(LedgerFailed):
                account.close()

    def _reserved(self, account: LedgerState, job: str, kind: str) -> str:
        """Return the name of a job's claim: the first that was not freed."""
        names = (f"{self._name}/{job}/{kind}/{number}" for number in itertools.count())
        return next(name for name in names if name not in account.closed)

    def _claim(self, account: LedgerState, job: str, kind: str, units: int) -> str:
        """Return the name of a claim that has room; a new one if those before were used up."""
        names = (f"{self._name}/{job}/{kind}/{number}" for number in itertools.count())
        return next(
            name
            for name in names
            if name not in account.closed and account.left_of(name).get("", units) >= units
        )

    def _unknown(self, account: LedgerState) -> list[tuple[str, int]]:
        """Return what the account was charged with and this member has no entry of."""
        paid = self._member.state.people.paid
        charged = [(key.job, key.round) for key in account.charges if self._is_mine(key.job)]
        return [(name, at) for name, at in charged if (*_parts(name), at + 1) not in paid]

    def _is_mine(self, claim: str) -> bool:
        return claim.startswith(f"{self._name}/")

    def _check(self, account: "Ledger", *, starts: bool) -> None:
        """Stop whichever of the two ledgers lacks what the other knows."""
        people = self._member.state.people
        if (joined := people.joined) is None:
            raise LedgerDamaged("the ledger has joined no account of its people")
        known = {account.opened.ledger_id: account.head.seq} | account.opened.predecessors
        if joined.account not in known or joined.public_key != account.opened.public_key:
            raise LedgerDamaged(
                "the folder holds another account than the one this ledger has joined; "
                "name the right one with 'colonnade ledger join'"
            )
        for paid in people.paid.values():
            lost = paid.account_seq > known.get(paid.account, -1)
            if paid.account == account.opened.ledger_id:
                lost = not account.state.on_chain(paid.account_seq, bytes.fromhex(paid.chain_hash))
            if lost:
                account.stop("a member ledger holds a charge that this account does not know")
                raise LedgerRolledBack(
                    "the account of the people lacks a charge that it signed: it was restored or "
                    "run twice; see 'colonnade ledger recover'"
                )
        request = _request(self._name, self._member.state.head) if starts else ""
        for name, round_ in self._unknown(account.state):
            charge = account.state.charges[ReleaseKey(name, round_, CLAIM)]
            if charge.request_sha256 != request:
                self._member.stop("the account of the people knows a charge that this one lacks")
                raise LedgerRolledBack(
                    "the account of the people was charged with releases of which this ledger has "
                    "no entry: it is a copy or was restored; see 'colonnade ledger recover'"
                )

    def _free(self, account: "Ledger") -> None:
        """Close the claims of jobs that are not open here any more."""
        for name in [each for each in account.state.left if self._is_mine(each)]:
            job, kind = _parts(name)
            if not any(kind_of(each) == kind for each in self._member.state.left.get(job, ())):
                kept = self._member.state.kept.get(job, 0) if kind == kind_of("") else 0
                account.close_job(name, keep=min(kept, account.state.left[name][""]))
        for name in [each for each in account.state.kept if self._is_mine(each)]:
            if _parts(name)[0] not in self._member.state.kept:
                account.close_job(name)

    def _note(self, account: "Ledger", key: ReleaseKey, *, wasted: bool = False) -> None:
        """Append to the member what the account was charged with, signed by it."""
        head, budget, (job, kind) = account.head, account.budget(), _parts(key.job)
        entry = PersonPaid(
            job=job,
            kind=kind,
            units=account.state.charges[key].units,
            wasted=wasted,
            account=account.opened.ledger_id,
            account_seq=head.seq,
            chain_hash=head.chain_hash.hex(),
            spent=budget.spent,
            cap=budget.cap,
            signature="",
        )
        statement = paid_statement(self._name, self._member.state.next_seq, entry)
        entry = replace(entry, signature=account.sign(statement).hex())
        self._member.append([Draft(entry)], releases=True)


def _parts(claim: str) -> tuple[str, str]:
    """Return job and kind of a claim."""
    job, kind, _ = claim.split("/", 1)[1].rsplit("/", 2)
    return job, kind


def _order(account: str) -> str:
    return kind_of(account) or ""


def _told(refusal: Refusal) -> Refusal:
    """Return a refusal of the account, which says whose it is."""
    if isinstance(refusal, BudgetExceeded):
        return BudgetExceeded(f"in the account of the people, over all projects: {refusal}")
    return refusal


def _request(member: str, head: Head) -> str:
    """Return what distinguishes a process that has just ended from a diverged copy."""
    facts = {"member": member, "seq": head.seq, "chain_hash": head.chain_hash.hex()}
    return hashlib.sha256(canonical(facts).encode()).hexdigest()


def _waiting(opened: "Callable[[], Ledger]") -> "Ledger":
    """Open the account, waiting for others that use it now."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return opened()
        except LedgerBusy:
            if time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
