"""What a job keeps for the one that follows: nobody else spends it, and nothing is given back."""

from pathlib import Path

import pytest
from support.ledgers import CAP, MECHANISM, key, new_ledger, reopened, tampered

from colonnade.core.errors import BudgetExceeded, JobClosed, RequestConflict
from colonnade.ledger.caps import MONTH
from colonnade.ledger.entries import Entry
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.job_entries import AdmittedAfter, Settled
from colonnade.ledger.ledger import Ledger

COST = MECHANISM.cost


def pay(ledger: Ledger, job: str, round_: int = 0) -> None:
    ledger.charge(key(round_, job=job), MECHANISM, request_sha256="ab" * 32)


def trained(ledger: Ledger, *, keep: int = 3 * COST) -> None:
    """Admit a job that may cost all of the cap, and end it with a part kept."""
    ledger.admit("fit", units=CAP)
    pay(ledger, "fit")
    ledger.close_job("fit", keep=keep)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_what_is_kept_is_for_the_job_that_follows_and_for_no_other(
    kind: str, tmp_path: Path
) -> None:
    ledger = new_ledger(kind, tmp_path)
    trained(ledger)
    assert ledger.free() == CAP - COST - 3 * COST
    with pytest.raises(BudgetExceeded):
        ledger.admit("other", units=ledger.free() + 1)
    ledger.admit("other", units=ledger.free())
    with pytest.raises(JobClosed):
        pay(ledger, "fit", 1)
    if kind == "disk":
        ledger = reopened(ledger, tmp_path)
    ledger.admit("evaluation", units=3 * COST, after="fit")
    ledger.admit("evaluation", units=3 * COST, after="fit")  # a retry
    for round_ in range(3):
        pay(ledger, "evaluation", round_)
    with pytest.raises(BudgetExceeded):
        pay(ledger, "evaluation", 3)
    assert ledger.free() == 0
    found = verify_export(export_lines(ledger))
    (account,) = found.accounts
    assert (account.spent, account.reserved) == (4 * COST, CAP - 4 * COST)


def test_less_is_used_and_the_rest_is_free_and_more_takes_what_is_free(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    trained(ledger)
    ledger.admit("evaluation", units=COST, after="fit")
    assert ledger.free() == CAP - 2 * COST
    other = new_ledger("memory", tmp_path)
    trained(other, keep=2 * COST)
    with pytest.raises(BudgetExceeded):
        other.admit("evaluation", units=CAP - COST + 1, after="fit")
    other.admit("evaluation", units=CAP - COST, after="fit")
    assert other.free() == 0
    with pytest.raises(RequestConflict):
        other.admit("evaluation", units=COST)


def test_what_was_used_or_freed_is_not_there_a_second_time(tmp_path: Path) -> None:
    for freed in (False, True):
        ledger = new_ledger("memory", tmp_path)
        trained(ledger)
        if freed:
            ledger.close_job("fit")
            ledger.close_job("fit")
            assert ledger.free() == CAP - COST
        else:
            ledger.admit("evaluation", units=3 * COST, after="fit")
        ledger.admit("other", units=ledger.free())
        with pytest.raises(BudgetExceeded):
            ledger.admit("again", units=1, after="fit")


def test_the_job_that_follows_counts_under_the_caps_of_the_first(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    ledger.set_cap(5 * COST, reason="r", scope=MONTH)
    ledger.admit("fit", units=5 * COST)
    pay(ledger, "fit")
    ledger.close_job("fit", keep=2 * COST)
    with pytest.raises(BudgetExceeded):
        ledger.admit("other", units=2 * COST + 1)
    ledger.admit("other", units=2 * COST)
    with pytest.raises(BudgetExceeded):
        ledger.admit("evaluation", units=2 * COST + 1, after="fit")
    ledger.admit("evaluation", units=2 * COST, after="fit")
    pay(ledger, "evaluation")
    with pytest.raises(BudgetExceeded):
        ledger.admit("more", units=1)


@pytest.mark.parametrize(
    "entries",
    [
        [Settled("fit", CAP + 1)],
        [Settled("fit", 0)],
        [Settled("nobody", 1)],
        [Settled("fit", 1), Settled("fit", 1)],
        [AdmittedAfter("evaluation", "fit", 1)],
        [Settled("fit", 1), AdmittedAfter("a", "fit", 1), AdmittedAfter("b", "fit", 1)],
        [Settled("fit", 1), AdmittedAfter("fit", "fit", 1)],
        [Settled("fit", 1), AdmittedAfter("a", "fit", CAP + 1)],
    ],
)
def test_an_export_that_keeps_or_uses_what_is_not_there_is_refused(
    entries: list[Entry], tmp_path: Path
) -> None:
    ledger = new_ledger("memory", tmp_path)
    ledger.admit("fit", units=CAP)
    assert not tampered(ledger, Settled("fit", CAP), AdmittedAfter("evaluation", "fit", CAP))
    assert tampered(ledger, *entries)
