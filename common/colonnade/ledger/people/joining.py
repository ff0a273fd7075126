"""Make a ledger a member of its people's account, for good."""

import hashlib
from contextlib import closing
from dataclasses import replace

from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.ledger.create import Clock, open_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.people.account import CLAIM
from colonnade.ledger.people.entries import Joined
from colonnade.ledger.people.place import note_account
from colonnade.ledger.people.rules import CLIENT, joined_statement, kind_of
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.accounting import format_units
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.person_claim import PersonClaim


def join_account(member: LedgerFiles, account: LedgerFiles, *, reason: str, clock: Clock) -> Joined:
    """Have ``member`` charge ``account`` before itself from now on.

    What the member has spent and set aside counts there at once. Of a member that has joined
    already only the place of the account is noted again.
    """
    if member.folder.resolve() == account.folder.resolve():
        raise BadInput("a ledger cannot be the account of its own people; make another one")
    with closing(open_ledger(account, clock=clock)) as people:
        _check_account(people, account)
        known = {people.opened.ledger_id, *people.opened.continues}
        key = people.opened.public_key
    with closing(open_ledger(member, clock=clock, joining=True)) as ledger:
        joined = ledger.state.people.joined
        if joined is not None:
            if joined.account not in known or joined.public_key != key:
                raise BadInput("the ledger has joined another account, and it is joined for good")
        else:
            with closing(open_ledger(account, clock=clock)) as people:
                joined = _joined(ledger, people, reason)
                ledger.bind(joined)
    note_account(member, account)
    return joined


def used_before(state: LedgerState) -> int:
    """Return the most that a person can have lost to a ledger, with what is set aside."""

    def used(account: str) -> int:
        return state.spent_by(account) + state.reserved.get(account, 0)

    known = {*state.spent, *state.reserved}
    of_all = sum(used(each) for each in ("", MEMBERSHIP) if each in known)
    clients = [used(each) for each in state.accounts() if kind_of(each) == CLIENT]
    return of_all + max([state.floor, *clients])


def _check_account(people: Ledger, files: LedgerFiles) -> None:
    if people.state.people.joined is not None:
        raise BadInput(f"the ledger in {files.folder} has itself joined an account")
    if people.state.bound is not None or people.state.docket.proposals:
        raise BadInput(
            f"the ledger in {files.folder} has a table of its own; make one that has none, with "
            "'colonnade party init'"
        )


def _joined(ledger: Ledger, people: Ledger, reason: str) -> Joined:
    member, units = ledger.opened.ledger_id, used_before(ledger.state)
    if ledger.opened.simulation != people.opened.simulation:
        raise BadInput("a simulation's ledger and a real one cannot share an account")
    if units:
        if units > (free := people.free()):
            raise BudgetExceeded(
                f"the ledger has used {format_units(units)}, alignments included, and its people's "
                f"account has {format_units(free, left=True)} left; raise the account's cap"
            )
        name = f"{member}@{ledger.head.seq}"
        people.admit(name, units=units)
        request = hashlib.sha256(f"{member} {ledger.head.seq}".encode()).hexdigest()
        people.charge(
            ReleaseKey(name, 0, CLAIM), PersonClaim(member, units), request_sha256=request
        )
    entry = Joined(people.opened.ledger_id, people.opened.public_key, member, units, reason, "")
    return replace(entry, signature=people.sign(joined_statement(entry)).hex())
