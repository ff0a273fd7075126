"""The fold: one more entry, if the rules let it follow, and the account after it.

The same rules run when a ledger opens, when it grows and when an auditor reads an export.
"""

from colonnade.core.errors import LedgerDamaged
from colonnade.ledger.decisions import REFUSE, check_keys
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
    Stored,
    StoredTogether,
)
from colonnade.ledger.job_entries import (
    AdmittedAfter,
    ApproversSet,
    Decided,
    Declined,
    PolicyNoted,
    Proposed,
    Settled,
)
from colonnade.ledger.lines import chain, entry_from_line
from colonnade.ledger.people.entries import Joined, PersonPaid
from colonnade.ledger.rules.following import admit_after, settle
from colonnade.ledger.rules.releases import abandon, charge, purge, store
from colonnade.ledger.rules.shapes import check_bound, check_lists
from colonnade.ledger.rules.spending import admit, adopt, check_cap, check_open, close
from colonnade.ledger.state import REFUSALS, LedgerState


def apply_line(state: LedgerState, line: str) -> Entry:
    """Take one more line; `LedgerDamaged` if it cannot follow what is there."""
    try:
        seq, _, entry = entry_from_line(line)
        if seq != state.next_seq:
            raise ValueError("an entry is missing or out of place")
        extend(state, entry, line)
    except (ValueError, TypeError, ArithmeticError, RecursionError, *REFUSALS) as error:
        raise LedgerDamaged(f"ledger entry {len(state.hashes)}: {error}") from None
    return entry


def extend(state: LedgerState, entry: Entry, line: str) -> None:
    """Take a new entry and its line; a rule it breaks leaves everything as it was."""
    _apply(state, entry, state.next_seq)
    state.hashes.append(chain(state.hashes[-1], line))


def _apply(state: LedgerState, entry: Entry, seq: int) -> None:
    if (seq == 1) != isinstance(entry, Opened):
        raise ValueError("the first entry, and only it, opens the ledger")
    if 1 < seq <= state.first_entry().founding_caps + 1 and not isinstance(entry, CapSet):
        raise ValueError("the first caps come right after the first entry")
    match entry:
        case Opened():
            if entry.continues:
                check_lists(entry.continues, entry.accounted)
            check_keys(entry.approver_keys)
            state.opened, state.docket.approvers = entry, tuple(entry.approver_keys)
        case CapSet() if entry.scope:
            check_cap(state, entry)
            state.scoped.caps[entry.scope, entry.account] = entry.units
        case CapSet():
            check_cap(state, entry)
            state.caps[entry.account] = entry.units
            state.highest = max(state.highest, entry.units)
        case ApproversSet() | PolicyNoted() | Proposed() | Declined() | Decided():
            decide(state, entry, seq)
        case Admitted():
            admit(state, entry.job, [entry.account], entry.units, entry.month)
        case AdmittedTogether():
            admit(state, entry.job, entry.accounts, entry.units, entry.month)
        case AdmittedAfter():
            admit_after(state, entry)
        case Charged():
            charge(state, entry, [entry.account], [entry.request_sha256])
        case ChargedTogether():
            charge(state, entry, entry.accounts, entry.requests_sha256)
        case Stored():
            store(state, entry, seq, [entry.account], [entry.body_sha256], [entry.spent])
        case StoredTogether():
            store(state, entry, seq, entry.accounts, entry.bodies_sha256, entry.spent)
        case Purged():
            purge(state, entry)
        case Abandoned():
            abandon(state, entry)
        case Closed():
            close(state, entry.job)
        case Settled():
            settle(state, entry)
        case Adopted():
            adopt(state, entry)
        case Joined():
            state.people.join(entry, state.first_entry(), state.left)
        case PersonPaid():
            state.people.take_paid(entry, state.first_entry(), seq)
        case Bound():
            check_bound(entry)
            state.founders, state.bound = state.confirmed(), entry


def decide(
    state: LedgerState, entry: ApproversSet | PolicyNoted | Proposed | Declined | Decided, seq: int
) -> None:
    """Take what concerns decisions on jobs."""
    opened = state.first_entry()
    match entry:
        case ApproversSet():
            state.docket.check_approvers(opened.ledger_id, seq, entry, opened.public_key)
            state.docket.approvers = tuple(entry.keys)
        case PolicyNoted():
            state.docket.take_policy(entry, seq)
        case Proposed():
            check_open(state, entry.job)
            if entry.job in state.scoped.places:
                raise ValueError("a job is proposed anew that was admitted")
            state.docket.take_proposal(entry, seq)
        case Declined():
            state.docket.take_refusal(entry)
        case Decided():
            check_decision(state, entry)
            state.docket.take_decision(entry)
            if entry.verdict == REFUSE:
                close(state, entry.job)


def check_decision(state: LedgerState, entry: Decided) -> None:
    """Refuse a decision that no approver signed, or that comes too late or out of order."""
    check_open(state, entry.job)
    admitted = entry.job in state.scoped.places
    state.docket.check_decision(state.first_entry().ledger_id, entry, admitted=admitted)
