"""Rules of what is spent and set aside: admissions, caps, and what is adopted."""

from collections.abc import Sequence

from colonnade.core.errors import BudgetExceeded, JobClosed, RequestConflict
from colonnade.ledger.caps import MONTHS, cap_statement
from colonnade.ledger.entries import Adopted, CapSet
from colonnade.ledger.receipts import verify
from colonnade.ledger.rules.amounts import Amounts
from colonnade.ledger.rules.shapes import check_lists
from colonnade.ledger.state import LedgerState
from colonnade.privacy.accounting import Budget, format_units, rho_from_units, rounded
from colonnade.privacy.disclosure import PREDICTION
from colonnade.privacy.membership import MEMBERSHIP
from colonnade.privacy.ring_noise import HOSTILE


def check_open(state: LedgerState, job: str) -> None:
    """Refuse a job that was closed."""
    if job in state.closed:
        raise JobClosed("the job was closed at this ledger; submit a new job")


def check_admission(state: LedgerState, job: str, account: str, units: int, *, month: str) -> bool:
    """Return whether ``job`` still has to be admitted; refuse what cannot be afforded."""
    check_open(state, job)
    # A shield's price is no part of the job's: the policy states its limit, and it buys safety.
    state.docket.check_approved(job, None if account == HOSTILE else units)
    if (earlier := state.admitted.get((job, account))) is not None:
        if earlier != units:
            raise RequestConflict("the job was admitted before with another limit")
        return False
    if account == PREDICTION:
        if units:
            raise ValueError("predictions have no price: there is no guarantee to pay for")
        return True
    try:
        state.unreserved(account).charge(units)
    except BudgetExceeded as error:
        if account == MEMBERSHIP:  # one run's epsilon is no conversion of its rho
            left = rho_from_units(state.unreserved(account).remaining)
            raise BudgetExceeded(
                f"the alignment costs rho {rounded(rho_from_units(units))}, half the square of its "
                f"epsilon, but rho {rounded(left, down=True)} is left in the account {account!r}; "
                "raise the cap of that account"
            ) from None
        if account != HOSTILE:
            raise
        raise BudgetExceeded(
            f"in the account {account!r}, which pays for shields of sealed jobs: {error}"
        ) from None
    state.scoped.check(state.places(job, month), account, units)
    return True


def admit(state: LedgerState, job: str, accounts: Sequence[str], units: int, month: str) -> None:
    """Set aside what a job may cost each of ``accounts``."""
    # They differ, so that what holds for every one of them before the first still holds for the
    # last; and nothing changes before all is checked.
    check_lists(accounts)
    if not MONTHS.fullmatch(month):
        raise ValueError("a job is admitted in no month")
    places = [state.names.add(each) for each in accounts]  # numbers; no amounts
    admitted = (check_admission(state, job, each, units, month=month) for each in accounts)
    if not all(admitted):
        raise ValueError("a job is admitted twice")
    state.scoped.places[job] = state.places(job, month)
    if (left := state.left.get(job)) is None:
        left = state.left[job] = Amounts(state.names)
    state.admitted.put_each(job, accounts, places, units)
    left.add_to_each(accounts, places, units)
    state.reserved.add_to_each(accounts, places, units)
    state.scoped.reserve_each(job, accounts, places, units)


def close(state: LedgerState, job: str) -> None:
    """End a job: what it has set aside is free again."""
    state.closed.add(job)
    if (kept := state.kept.pop(job, 0)) > 0:
        reserve(state, job, "", -kept)
    for account, units in state.left.pop(job, {}).items():
        reserve(state, job, account, -units)


def check_cap(state: LedgerState, entry: CapSet) -> None:
    """Refuse a cap that the keys did not sign or that lies below what is spent or set aside."""
    opened = state.first_entry()
    message = cap_statement(opened.ledger_id, state.next_seq, entry)
    if not verify(bytes.fromhex(opened.public_key), bytes.fromhex(entry.signature), message):
        raise ValueError("a cap is not signed by the ledger's key")
    place = (entry.scope, entry.account)
    before = state.scoped.cap(place) if entry.scope else state.cap(entry.account)
    raised = before is not None and entry.units > before
    guarded = bool(state.docket.approvers) and state.next_seq > opened.founding_caps + 1
    if raised and guarded:
        state.docket.check_signed(entry.approver_signature, message)
    if entry.scope:
        state.scoped.check_cap(place, entry.units)
        return
    for account in {*state.spent, *state.reserved, entry.account}:
        if account == entry.account or (entry.account == "" and account not in state.caps):
            used = state.spent_by(account) + state.reserved.get(account, 0)
            if used > entry.units:
                raise ValueError(
                    f"{format_units(used)} is spent or set aside; a cap cannot be below"
                )
            Budget(entry.units)


def adopt(state: LedgerState, entry: Adopted) -> None:
    """Count what was spent elsewhere, before anything is spent here."""
    if entry.scope:
        state.scoped.adopt((entry.scope, entry.account), entry.units)
    elif entry.account == "*":
        if state.spent or entry.units <= 0 or entry.units > state.cap():
            raise ValueError("what all accounts adopt comes first and is under the cap")
        state.floor = entry.units
    else:
        if entry.account in state.spent:
            raise ValueError("an account adopts once, before it spends")
        Budget(state.cap(entry.account)).charge(entry.units)
        state.spent[entry.account] = entry.units
        state.total += entry.units


def spend(state: LedgerState, account: str, units: int) -> None:
    """Count what an account paid."""
    state.spent[account] = state.spent_by(account) + units
    state.total += units


def reserve(state: LedgerState, job: str, account: str, units: int) -> None:
    """Count what a job set aside of an account; less than nothing frees it."""
    state.reserved[account] = state.reserved.get(account, 0) + units
    state.scoped.reserve(job, account, units)
