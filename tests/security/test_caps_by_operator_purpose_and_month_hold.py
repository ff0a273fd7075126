"""Caps by operator, purpose and month are the ledger's rules, beside the accounts' own caps."""

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from support.ledgers import MECHANISM, digest, key, tampered

from colonnade.cli.main import main
from colonnade.core.errors import BadInput, BudgetExceeded
from colonnade.ledger.caps import MONTH, NOBODY, OPERATOR, PURPOSE
from colonnade.ledger.create import LedgerConfig, create_ledger, memory_ledger, open_ledger
from colonnade.ledger.entries import Admitted, AdmittedTogether, Charged, Entry
from colonnade.ledger.job_entries import Proposed
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.receipts import key_to_pem, public_bytes
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.state import REFUSALS
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import job_id
from colonnade.privacy.mechanisms import record_of
from colonnade.privacy.membership import MEMBERSHIP

COST = MECHANISM.cost
CAP = 100 * COST
NOVEMBER, DECEMBER = 1_793_500_000.0, 1_796_100_000.0  # 2026
APPROVER = Ed25519PrivateKey.generate()


class Clock:
    now = NOVEMBER

    def __call__(self) -> float:
        return self.now


def a_ledger(clock: Clock | None = None, **config: object) -> Ledger:
    facts = {"party": "p", "caps": {"": CAP}, **config}
    return memory_ledger(LedgerConfig(**facts), clock=clock or Clock())  # type: ignore[arg-type]


def propose(ledger: Ledger, number: int, *, by: str = "ana", purpose: str = "study") -> str:
    spec = f"job {number}".encode()
    job = job_id(spec)
    entry = Proposed(job, "hub", by, purpose, "j", "moments", CAP, "auto", 0, 0, len(spec))
    ledger.decisions.propose(entry, spec)
    return job


def pay(ledger: Ledger, job: str, round_: int = 0, account: str = "") -> None:
    ledger.charge(key(round_, job=job, account=account), MECHANISM, request_sha256=digest(b"r"))


@pytest.mark.parametrize("scope", [OPERATOR, PURPOSE, MONTH])
def test_each_cap_binds_by_itself_and_what_a_job_did_not_use_is_free_again(scope: str) -> None:
    clock = Clock()
    ledger = a_ledger(clock)
    ledger.set_cap(10 * COST, reason="r", scope=scope)  # the default of all
    first = propose(ledger, 1)
    ledger.admit(first, units=8 * COST)
    with pytest.raises(BudgetExceeded):
        ledger.admit(propose(ledger, 2), units=3 * COST)
    pay(ledger, first)
    ledger.close_job(first)
    ledger.admit(propose(ledger, 3), units=9 * COST)
    with pytest.raises(BudgetExceeded):
        ledger.admit(propose(ledger, 4), units=COST)
    clock.now = DECEMBER
    ledger.admit(propose(ledger, 5, by="ben", purpose="other"), units=10 * COST)


def test_a_cap_that_is_set_later_counts_what_came_before() -> None:
    ledger = a_ledger()
    job = propose(ledger, 1)
    ledger.admit(job, units=5 * COST)
    for round_ in range(3):
        pay(ledger, job, round_)
    ledger.close_job(job)
    for scope, name in ((OPERATOR, "ana"), (PURPOSE, "study"), (MONTH, ""), (MONTH, "2026-11")):
        with pytest.raises(BadInput, match="not changed"):
            ledger.set_cap(2 * COST, reason="r", scope=scope, account=name)
        ledger.set_cap(3 * COST, reason="r", scope=scope, account=name)
    with pytest.raises(BudgetExceeded):
        ledger.admit(propose(ledger, 2), units=1)


def test_what_a_party_does_itself_counts_in_its_month_and_nobody_pays_outside_of_it() -> None:
    ledger = a_ledger()
    ledger.set_cap(2 * COST, reason="r", scope=MONTH)
    ledger.admit("bounds-1", units=COST)
    pay(ledger, "bounds-1")
    with pytest.raises(BudgetExceeded):
        ledger.admit("fit-1", units=2 * COST)
    with pytest.raises(BudgetExceeded):
        pay(ledger, "never admitted")


def test_alignments_and_jobs_are_paid_by_the_same_people() -> None:
    ledger = a_ledger()
    ledger.set_cap(10 * COST, reason="r", scope=PURPOSE)
    ledger.admit(propose(ledger, 1), units=6 * COST, account=MEMBERSHIP)
    with pytest.raises(BudgetExceeded):
        ledger.admit(propose(ledger, 2), units=6 * COST)


def test_who_does_not_say_who_asks_has_the_least_of_the_operators_caps() -> None:
    ledger = a_ledger()
    ledger.set_cap(6 * COST, reason="r", scope=OPERATOR, account="ana")
    ledger.set_cap(3 * COST, reason="r", scope=OPERATOR, account="ben")
    with pytest.raises(BudgetExceeded, match="not named"):
        ledger.admit(propose(ledger, 1, by=""), units=4 * COST)
    ledger.admit(propose(ledger, 2, by=""), units=3 * COST)
    ledger.admit(propose(ledger, 3, by="ana"), units=6 * COST)  # a bucket of its own
    ledger.set_cap(5 * COST, reason="r", scope=OPERATOR, account=NOBODY)
    ledger.admit(propose(ledger, 4, by=""), units=2 * COST)


def test_clients_have_the_cap_each() -> None:
    ledger = a_ledger()
    ledger.set_cap(10 * COST, reason="r", scope=OPERATOR)
    job = propose(ledger, 1)
    assert ledger.admit_many(job, ["a", "b"], units=6 * COST) == {}
    refused = ledger.admit_many(propose(ledger, 2), ["b", "c"], units=6 * COST)
    assert refused.keys() == {"b"}


def test_a_raise_of_such_a_cap_takes_the_approver_and_a_first_one_none() -> None:
    ledger = a_ledger(approver_keys=(public_bytes(APPROVER),))
    ledger.set_cap(5, reason="r", scope=PURPOSE)
    ledger.set_cap(4, reason="r", scope=PURPOSE, account="study")
    for name, units in (("", 6), ("study", 6), ("another", 7)):
        with pytest.raises(BadInput, match="approver"):
            ledger.set_cap(units, reason="r", scope=PURPOSE, account=name)
        ledger.set_cap(units, reason="r", scope=PURPOSE, account=name, approvers=[APPROVER])


def test_a_ledger_that_went_over_such_a_cap_does_not_open() -> None:
    ledger = a_ledger()
    ledger.set_cap(10 * COST, reason="r", scope=PURPOSE)
    ledger.set_cap(10 * COST, reason="r", scope=MONTH)
    job = propose(ledger, 1)
    fits = Admitted(job, "", 10 * COST, "2026-11")
    assert not tampered(ledger, fits)
    wrong: list[Entry] = [
        replace(fits, units=11 * COST),
        replace(fits, month="2026-13"),
        replace(fits, month=""),
        AdmittedTogether(job, ["", MEMBERSHIP], 6 * COST, "2026-11"),
        Charged("x", 0, "share", "", COST, dict(record_of(MECHANISM)), "0" * 64),
    ]
    assert [tampered(ledger, entry) for entry in wrong] == [True] * len(wrong)
    other = propose(ledger, 2, by="ben")
    assert tampered(ledger, fits, Admitted(other, "", COST, "2026-12"))  # of the same purpose


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("acx"), st.integers(1, 6))))
def test_no_order_of_jobs_spends_more_than_any_cap(steps: list[tuple[int, str, int]]) -> None:
    """Compare with sums over the entries: operators, purposes and the month are each bounded."""
    ledger, limit = a_ledger(), 12 * COST
    for scope in (OPERATOR, PURPOSE, MONTH):
        ledger.set_cap(limit if scope != MONTH else 2 * limit, reason="r", scope=scope)
    spent: dict[tuple[str, str], int] = {}
    rounds = 0
    for number, what, size in steps:
        by, purpose = "ab"[number % 2], "xyz"[number % 3]
        job = job_id(f"job {number}".encode())
        try:
            if what == "a":
                job = propose(ledger, number, by=by, purpose=purpose)
                ledger.admit(job, units=size * COST)
            elif what == "c":
                rounds += 1
                pay(ledger, job, rounds)
                for place in ((OPERATOR, by), (PURPOSE, purpose), (MONTH, "2026-11")):
                    spent[place] = spent.get(place, 0) + COST
            else:
                ledger.close_job(job)
        except (ValueError, *REFUSALS):
            continue  # what counts is the sum
    for place, units in spent.items():
        assert units <= (2 * limit if place[0] == MONTH else limit)
        assert ledger.state.scoped.budget(place).spent == units
    assert not tampered(ledger)


def test_a_recovery_forgets_no_operator_purpose_or_month(tmp_path: Path) -> None:
    old, new = LedgerFiles(tmp_path / "old"), LedgerFiles(tmp_path / "new")
    create_ledger(old, LedgerConfig("p", {"": CAP}), clock=Clock())
    ledger = open_ledger(old, clock=Clock())
    ledger.set_cap(10 * COST, reason="r", scope=PURPOSE)
    job = propose(ledger, 1)
    ledger.admit(job, units=9 * COST)
    for round_ in range(9):
        pay(ledger, job, round_)
    ledger._journal.storage.stop("a test")
    ledger.close()
    recover_ledger(old, new, clock=Clock())
    ledger = open_ledger(new, clock=Clock())
    assert ledger.state.scoped.budget((PURPOSE, "study")).spent >= 9 * COST
    with pytest.raises(BudgetExceeded):
        ledger.admit(propose(ledger, 2), units=2 * COST)
    ledger.close()


def test_the_command_sets_and_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, pem = str(tmp_path / "ledger"), tmp_path / "ana.pem"
    pem.write_bytes(key_to_pem(APPROVER))
    init = ["party", "init", "--ledger", ledger, "--name", "p", "--epsilon", "3"]
    assert main([*init, "--approver", str(pem)]) == 0
    cap = ["ledger", "cap", ledger, "--reason", "why", "--epsilon"]
    assert main([*cap, "1", "--purpose", "a study"]) == 0
    assert main([*cap, "1", "--month", "*"]) == 0
    assert main([*cap, "1", "--month", "soon"]) == 3
    assert main([*cap, "2", "--purpose", "a study"]) == 3  # a raise
    assert main([*cap, "2", "--purpose", "a study", "--approver-key", str(pem)]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", ledger]) == 0
    said = capsys.readouterr().out
    assert "purpose a study: left epsilon" in said
    assert "each month: left epsilon" in said
