"""A clock that is wrong neither makes a ledger unreadable nor loses what was charged."""

import json
import math
from pathlib import Path

import pytest
from support.ledgers import CAP, MECHANISM, digest, key

from colonnade.cli.ledger.summary import describe
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.lines import LATEST, entry_from_line
from colonnade.ledger.storage.files import LedgerFiles

WRONG = [-1.0, -1e18, 1e18, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("reading", WRONG)
def test_a_ledger_made_and_used_under_a_wrong_clock_opens_again(
    tmp_path: Path, reading: float
) -> None:
    files = LedgerFiles(tmp_path / "ledger")
    create_ledger(files, LedgerConfig("hospital", {"": CAP}), clock=lambda: reading)
    ledger = open_ledger(files, clock=lambda: reading)
    ledger.charge(key(), MECHANISM, request_sha256=digest(b"r"))
    released = ledger.store(key(), b"body")
    ledger.close()
    again = open_ledger(files, clock=lambda: 1.7e9)
    assert again.stored(key()) == released
    assert again.budget().spent == MECHANISM.cost
    assert verify_export(list(export_lines(again))).entries == 4
    for line in again.lines():
        assert 0 <= json.loads(line)["time"] <= LATEST
        assert describe(json.loads(line))  # people can read it too
    again.close()


def test_a_clock_that_is_set_back_changes_nothing_but_the_times(tmp_path: Path) -> None:
    files = LedgerFiles(tmp_path / "ledger")
    create_ledger(files, LedgerConfig("hospital", {"": CAP}), clock=lambda: 2e9)
    readings = iter([1.9e9, 5.0, -7.0, 1.8e9])
    ledger = open_ledger(files, clock=lambda: next(readings))
    for round_ in range(2):
        ledger.charge(key(round_), MECHANISM, request_sha256=digest(b"r"))
        ledger.store(key(round_), b"body")
    ledger.close()
    again = open_ledger(files)
    times = [entry_from_line(line)[1] for line in again.lines()]
    assert times == [2 * 10**9, 2 * 10**9, 19 * 10**8, 5, 0, 18 * 10**8]
    again.close()
