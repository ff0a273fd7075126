"""Rules of jobs that follow others: what an ended job keeps, and who is admitted with it.

A job that is to be evaluated sets the evaluation's price aside with its own, so that no later job
can spend it. It ends with that part kept; the evaluation is admitted with it, or the party frees
it. Nothing is spent twice and nothing given back: what is kept was never charged.
"""

from colonnade.core.errors import RequestConflict
from colonnade.ledger.job_entries import AdmittedAfter, Settled
from colonnade.ledger.rules.amounts import Amounts
from colonnade.ledger.rules.spending import check_open, close, reserve
from colonnade.ledger.state import LedgerState
from colonnade.privacy.accounting import Budget


def settle(state: LedgerState, entry: Settled) -> None:
    """End a job, and keep a part of what it has set aside."""
    check_open(state, entry.job)
    if not 0 < entry.units <= state.left_of(entry.job).get("", 0):
        raise ValueError("a job keeps more than it has set aside, or nothing")
    close(state, entry.job)
    state.kept[entry.job] = entry.units
    reserve(state, entry.job, "", entry.units)


def check_after(state: LedgerState, job: str, before: str, units: int) -> bool:
    """Return whether ``job`` still has to be admitted; refuse what cannot be afforded.

    What ``before`` kept is counted as free for it.
    """
    check_open(state, job)
    state.docket.check_approved(job, units)
    if (earlier := state.admitted.get((job, ""))) is not None:
        if earlier != units:
            raise RequestConflict("the job was admitted before with another limit")
        return False
    if (kept := state.kept.get(before)) is None:
        raise ValueError("a job follows one that has kept nothing")
    known = state.unreserved("")
    Budget(known.cap, known.spent - kept).charge(units)
    if units > kept:
        state.scoped.check(state.scoped.places.get(before, ()), "", units - kept)
    return True


def admit_after(state: LedgerState, entry: AdmittedAfter) -> None:
    """Set aside what a job may cost, of what the one before it kept; the rest of that is free."""
    if not check_after(state, entry.job, entry.before, entry.units):
        raise ValueError("a job is admitted twice")
    close(state, entry.before)
    state.scoped.places[entry.job] = state.scoped.places.get(entry.before, ())
    state.admitted[entry.job, ""] = entry.units
    state.left[entry.job] = Amounts(state.names, [("", entry.units)])
    reserve(state, entry.job, "", entry.units)
