"""The account that pays for alignments: what is free is free only where dummies were paid for."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.ledgers import CAP, digest, new_ledger

from colonnade.cli.ledger.summary import as_json, print_summary
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK, BudgetExceeded
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines, summarise, verify_export, verify_lines
from colonnade.ledger.ledger import Ledger
from colonnade.party.officer.page import evidence_page
from colonnade.privacy.accounting import rho_from_units
from colonnade.privacy.membership import MEMBERSHIP, Covered, MembershipNoise
from colonnade.privacy.simulation import SeededNoise

LAW = MembershipNoise.within(1.0, 1e-9)
REQUEST = digest(b"a task")


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return new_ledger(request.param, tmp_path)


def key(kind: str, round_: int = 0, *, job: str = "job", account: str = MEMBERSHIP) -> ReleaseKey:
    return ReleaseKey(job, round_, kind, account)


def test_what_dummies_cover_is_free_in_the_job_that_paid_for_them(ledger: Ledger) -> None:
    ledger.admit("job", units=LAW.cost, account=MEMBERSHIP)
    ledger.charge(key(MEMBERSHIP), LAW, request_sha256=REQUEST)
    for round_ in range(3):
        ledger.charge(key("points", round_), Covered(), request_sha256=REQUEST)
        ledger.store_many({key("points", round_): b"pseudonyms"})
    assert ledger.budget(MEMBERSHIP).spent == LAW.cost
    assert ledger.budget().spent == 0  # of the table's own account


@pytest.mark.parametrize(
    "free", [key("points", job="another"), key("points", account="x"), key("points", account="")]
)
def test_what_nobody_paid_dummies_for_is_not_free(ledger: Ledger, free: ReleaseKey) -> None:
    ledger.admit("job", units=LAW.cost, account=MEMBERSHIP)
    ledger.charge(key(MEMBERSHIP), LAW, request_sha256=REQUEST)
    with pytest.raises(ValueError, match="paid"):
        ledger.charge(free, Covered(), request_sha256=REQUEST)
    assert free not in ledger.state.charges


def test_an_alignment_that_its_account_cannot_afford_is_refused(ledger: Ledger) -> None:
    for number in range(CAP // LAW.cost):
        ledger.admit(f"job {number}", units=LAW.cost, account=MEMBERSHIP)
    with pytest.raises(  # which cap to raise, and what one of epsilon 1 costs
        BudgetExceeded, match=f"costs rho 0.5, .* rho 0 is left in the account '{MEMBERSHIP}'"
    ):
        ledger.admit("one more", units=LAW.cost, account=MEMBERSHIP)


def test_an_export_states_the_deltas_of_all_alignments_beside_rho(ledger: Ledger) -> None:
    for job in ("a", "b"):
        ledger.admit(job, units=LAW.cost, account=MEMBERSHIP)
        ledger.charge(key(MEMBERSHIP, job=job), LAW, request_sha256=REQUEST)
        ledger.charge(key("points", job=job), Covered(), request_sha256=REQUEST)
    accounts = {each.name: each for each in verify_export(export_lines(ledger)).accounts}
    assert accounts[MEMBERSHIP].delta == 2 * LAW.delta > 0.0
    assert accounts[MEMBERSHIP].spent == 2 * LAW.cost
    assert accounts[""].delta == 0.0


def test_a_run_of_epsilon_1_is_shown_as_epsilon_1(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    # Read as rho at a delta, the half that a run of epsilon 1 costs would be epsilon 5.2.
    ledger.admit("job", units=LAW.cost, account=MEMBERSHIP)
    ledger.charge(key(MEMBERSHIP), LAW, request_sha256=REQUEST)
    summary = summarise(ledger.state)
    print_summary(summary, 1e-6)
    (spent,) = [line for line in capsys.readouterr().out.splitlines() if "    spent" in line]
    assert f"epsilon 1 (rho 0.5) at delta {LAW.delta:.3g}" in spent
    (account,) = [each for each in as_json(summary, 1e-6)["accounts"] if each["account"]]
    assert account["runs_epsilon"] == 1.0


def test_what_is_shown_as_left_pays_for_a_run(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    law = MembershipNoise.within(0.9, 1e-9)
    ledger.admit("job", units=law.cost, account=MEMBERSHIP)
    print_summary(summarise(ledger.state), 1e-6)
    shown = capsys.readouterr().out.partition("for alignments alone")[2]
    (epsilon,) = re.findall(r"left +one alignment of epsilon ([0-9.]+)", shown)
    left = rho_from_units(ledger.free(MEMBERSHIP))
    assert 0.99 * left < float(epsilon) ** 2 / 2 <= left


def test_the_cap_of_alignments_is_raised_in_rho(tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path).close()
    line = ["ledger", "cap", str(tmp_path / "ledger"), "--account", MEMBERSHIP, "--reason", "why"]
    # An epsilon would be read at a delta, as rho 0.02: less than the half of one alignment.
    assert main([*line, "--epsilon", "1"]) == EXIT_BAD_INPUT
    assert main([*line, "--rho", "1"]) == EXIT_OK


def test_the_deviation_that_is_reported_is_that_of_dummies_and_noise() -> None:
    """Over 20,000 draws a deviation errs by 0.8 %: kurtosis is at most 6, so sqrt(5 / 4 n)."""
    noise, size = SeededNoise(3), 20_000
    counts = LAW.perturb(np.zeros(size, np.int64), noise)
    counts = LAW.report().perturb(counts, noise)
    assert float(counts.std()) == pytest.approx(LAW.deviation(1), rel=0.04)
    assert float((counts[::2] + counts[1::2]).std()) == pytest.approx(LAW.deviation(2), rel=0.04)


def test_evidence_shows_no_epsilon_that_several_alignments_exceed(ledger: Ledger) -> None:
    for job in ("first", "second"):
        ledger.admit(job, units=LAW.cost, account=MEMBERSHIP)
        ledger.charge(key(MEMBERSHIP, job=job), LAW, request_sha256=REQUEST)
    text = evidence_page(verify_lines(export_lines(ledger)), 1e-6)
    row = text[(at := text.index(">alignments<")) : text.index("</tr>", at)]
    assert "rho 1" in row
    # Each has epsilon 1, so both have 2; the root of twice the sum of their rho is less.
    assert "epsilon" not in row
