"""Predictions in the ledger: counted, signed, without a price, apart from other accounts."""

import pytest

from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines, verify_export
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.privacy.mechanisms import DiscreteGaussian, record_of
from colonnade.privacy.records import mechanism_from_record

SCORES = Disclosure("ab" * 32, "hospital", "triage", 7)
NOISY = DiscreteGaussian(100, 1)


def test_what_has_no_guarantee_has_no_price_and_cannot_hide_among_what_has() -> None:
    ledger = memory_ledger(LedgerConfig("lab", {"": 2**50}, simulation=True))
    with pytest.raises(ValueError, match="no price"):
        ledger.admit("j", units=1, account=PREDICTION)
    with pytest.raises(ValueError, match="unit"):  # no other account is free
        ledger.admit("j", units=0)
    ledger.admit("j", units=0, account=PREDICTION)
    digest = "00" * 32
    for account, mechanism in (("", SCORES), (PREDICTION, NOISY)):
        with pytest.raises(ValueError, match="account"):
            ledger.charge(ReleaseKey("j", 0, "part", account), mechanism, request_sha256=digest)
    with pytest.raises(ValueError, match="unit"):  # a job that was not admitted
        ledger.charge(ReleaseKey("k", 0, "part", PREDICTION), SCORES, request_sha256=digest)
    key = ReleaseKey("j", 1, "part", PREDICTION)
    ledger.charge(key, SCORES, request_sha256=digest)
    released = ledger.store(key, b"sealed")
    assert released.receipt.signed_by(bytes.fromhex(ledger.opened.public_key))
    assert released.receipt.spent == 0
    summary = verify_export(list(export_lines(ledger)))
    accounts = {each.name: each for each in summary.accounts}
    assert (accounts[PREDICTION].releases, accounts[PREDICTION].spent) == (1, 0)
    assert accounts[""].releases == 0
    assert (Disclosure.name, 1, 0) in summary.by_mechanism
    assert ledger.state.accounts() == set()  # it is no client


def test_an_entry_says_which_model_for_whom_and_how_many_rows() -> None:
    assert mechanism_from_record(record_of(SCORES)) == SCORES
    for wrong in ({"rows": 0}, {"model": "AB" * 32}, {"receiver": ""}, {"purpose": "a\nb"}):
        with pytest.raises(ValueError):  # noqa: PT011 (each field says its own)
            mechanism_from_record(record_of(SCORES) | wrong)
