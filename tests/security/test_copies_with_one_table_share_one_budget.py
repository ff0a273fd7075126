"""Copies of a ledger that have a head mirror each are noticed by the table that they pay for.

``cp -r ledger copy`` once gave local fits of one table the cap twice: the mirror was copied too,
and no coordinator is told of a local fit.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.hosts import PARTY, ingest_rows
from support.uses import begin, bounds, fit

from colonnade.core.errors import LedgerRolledBack, NotBound
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.data.binding import bind, note_use, rows_of
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.witness import HEAD_NAME
from colonnade.privacy.accounting import units_down

CAP = 1.0

Use = Callable[[Path, Ledger], None]


def rebind(data: Path, ledger: Ledger) -> None:
    with open_dataset(data) as dataset:
        bind(rows_of(dataset), ledger, reason="the same people")


def use(folder: Path, *uses: tuple[Use, Path]) -> None:
    ledger = open_ledger(LedgerFiles(folder))
    try:
        for each, data in uses:
            each(data, ledger)
    finally:
        ledger.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ingest_rows(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def ledger(tmp_path: Path, data: Path) -> Path:
    create_ledger(LedgerFiles(tmp_path / "ledger"), LedgerConfig(PARTY, {"": units_down(CAP)}))
    use(tmp_path / "ledger", (begin, data))
    return tmp_path / "ledger"


@pytest.mark.parametrize("second", [begin, fit, bounds, rebind])
@pytest.mark.parametrize("first", [fit, bounds])
def test_a_copy_does_not_go_on_after_the_other_has_spent(
    first: Use, second: Use, data: Path, ledger: Path
) -> None:
    copy = ledger.with_name("copy")
    shutil.copytree(ledger, copy)
    use(copy, (first, data))
    before = open_ledger(LedgerFiles(ledger))
    head = before.head
    before.close()
    with pytest.raises(LedgerRolledBack):
        use(ledger, (second, data))
    with pytest.raises(LedgerRolledBack):  # for good
        use(ledger)
    assert head.spent == 0
    use(copy, (first, data))  # which replays


def test_a_restored_backup_is_noticed_and_its_recovery_adopts_what_was_spent(
    tmp_path: Path, data: Path, ledger: Path
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(ledger, backup)
    use(ledger, (bounds, data))
    shutil.rmtree(ledger)
    backup.rename(ledger)
    with pytest.raises(LedgerRolledBack):
        use(ledger, (fit, data))
    recovered = LedgerFiles(tmp_path / "recovered")
    recover_ledger(LedgerFiles(ledger), recovered)
    reopened = open_ledger(recovered)
    assert reopened.budget().spent >= units_down(0.8)
    begin(data, reopened)
    reopened.close()


def test_what_another_ledger_left_stops_nothing_and_a_refused_one_leaves_nothing(
    tmp_path: Path, data: Path, ledger: Path
) -> None:
    left = (data / HEAD_NAME).read_bytes()
    other = tmp_path / "other"
    create_ledger(LedgerFiles(other), LedgerConfig(PARTY, {"": units_down(CAP)}))
    with pytest.raises(NotBound):
        use(other, (fit, data))
    stranger = open_ledger(LedgerFiles(other))
    with open_dataset(data) as dataset:
        note_use(rows_of(dataset), stranger)
    stranger.close()
    assert (data / HEAD_NAME).read_bytes() == left
    use(other, (rebind, data), (begin, data))
    assert (data / HEAD_NAME).read_bytes() != left


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b'{"type": "head"}\n', b"x" * 10_000])
def test_a_file_that_says_nothing_stops_nothing(content: bytes, data: Path, ledger: Path) -> None:
    (data / HEAD_NAME).write_bytes(content)
    use(ledger, (begin, data))
    assert (data / HEAD_NAME).read_bytes() != content


def test_a_recovery_of_a_backup_that_knows_nothing_of_what_was_spent_is_noticed(
    tmp_path: Path, data: Path, ledger: Path
) -> None:
    backup, recovered = tmp_path / "backup", tmp_path / "recovered"
    shutil.copytree(ledger, backup)
    use(ledger, (bounds, data))
    (backup / "ledger.stopped").touch()
    recover_ledger(LedgerFiles(backup), LedgerFiles(recovered))
    made = open_ledger(LedgerFiles(recovered))
    left = made.budget().remaining
    made.close()
    assert left > units_down(CAP / 2)
    with pytest.raises(LedgerRolledBack):
        use(recovered, (fit, data))
