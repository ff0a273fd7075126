"""Copies of a ledger's folder that use one mirror cannot spend twice, however they are run."""

import contextlib
import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.ledgers import CAP, MECHANISM, digest, key

from colonnade.core.errors import (
    BadInput,
    ColonnadeError,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
)
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.snapshot import read_snapshot

COST = MECHANISM.cost
ALL_ROUNDS = CAP // COST


@pytest.fixture
def copies(tmp_path: Path) -> list[LedgerFiles]:
    """Make a ledger and a copy of its folder, with one mirror on another disk."""
    mirror = tmp_path / "elsewhere.mirror"
    files = [LedgerFiles(tmp_path / name, mirror) for name in ("first", "second")]
    create_ledger(files[0], LedgerConfig("hospital", {"": CAP}))
    shutil.copytree(files[0].folder, files[1].folder)
    return files


def spend(ledger: Ledger, rounds: int) -> int:
    """Make so many new releases, or as many as the ledger lets out; return how many."""
    done, first = 0, len(ledger.state.charges)
    with contextlib.suppress(ColonnadeError):
        for round_ in range(first, first + rounds):
            ledger.charge(key(round_), MECHANISM, request_sha256=digest(b"r"))
            ledger.store(key(round_), b"body")
            done += 1
    return done


def refused(files: LedgerFiles) -> str:
    with pytest.raises(ColonnadeError) as refusal:
        open_ledger(files)
    return refusal.value.code


def test_a_copy_does_not_open_while_another_lives(copies: list[LedgerFiles]) -> None:
    ledger = open_ledger(copies[0])
    assert refused(copies[1]) == "ledger_busy"
    assert spend(ledger, ALL_ROUNDS) == ALL_ROUNDS  # the first is not disturbed
    ledger.close()


def test_a_copy_does_not_open_after_another_has_spent(copies: list[LedgerFiles]) -> None:
    ledger = open_ledger(copies[0])
    spend(ledger, 1)
    ledger.close()
    assert refused(copies[1]) == "ledger_rolled_back"
    open_ledger(copies[0]).close()


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every lock be had by everyone, as on a network disk without locks."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


@pytest.mark.usefixtures("no_locks")
def test_live_copies_stop_each_other_where_locks_do_not_hold(copies: list[LedgerFiles]) -> None:
    ledgers = [open_ledger(files) for files in copies]  # the second opening writes the mirror
    done = [spend(ledger, ALL_ROUNDS) for ledger in ledgers]
    assert sum(done) == 0
    for ledger, files in zip(ledgers, copies, strict=True):
        with pytest.raises(LedgerFailed):  # not only that once
            ledger.charge(key(99), MECHANISM, request_sha256=digest(b"r"))
        assert refused(files) == "ledger_rolled_back"  # nor after a restart


@pytest.mark.usefixtures("no_locks")
def test_a_second_writer_is_noticed_before_anything_more_is_released(
    copies: list[LedgerFiles],
) -> None:
    second = open_ledger(copies[1])
    first = open_ledger(copies[0])
    assert spend(first, 5) == 5
    assert spend(second, ALL_ROUNDS) == 0
    assert spend(first, ALL_ROUNDS) == 0  # it learns from the mirror that it has a copy
    # Whichever of them is recovered, the other's spending counts too.
    new = LedgerFiles(copies[0].folder.with_name("new"))
    for ledger in (first, second):
        ledger._journal.storage.abandon()  # type: ignore[attr-defined]
    adopted = recover_ledger(copies[1], new)
    assert adopted[""] >= 5 * COST


def test_a_mirror_replaced_under_a_running_ledger_stops_it_for_good(
    copies: list[LedgerFiles],
) -> None:
    files = copies[0]
    ledger = open_ledger(files)
    spend(ledger, 1)
    other = files.mirror.with_name("other")
    shutil.copy(files.mirror, other)
    other.rename(files.mirror)  # the lock is on the file that had the name before
    assert spend(ledger, ALL_ROUNDS) == 0
    ledger._journal.storage.abandon()  # type: ignore[attr-defined]
    assert refused(files) == "ledger_rolled_back"


def test_a_copy_of_a_stopped_ledger_neither_opens_nor_recovers(copies: list[LedgerFiles]) -> None:
    ledger = open_ledger(copies[0])
    ledger._journal.storage.stop("for a test")
    ledger.close()
    assert refused(copies[1]) == "ledger_rolled_back"
    with pytest.raises(BadInput):
        recover_ledger(copies[1], LedgerFiles(copies[1].folder.with_name("new")))
    recover_ledger(copies[0], LedgerFiles(copies[0].folder.with_name("new")))


def test_a_ledger_is_recovered_once(copies: list[LedgerFiles]) -> None:
    copies[0].stopped.touch()
    recover_ledger(copies[0], LedgerFiles(copies[0].folder.with_name("new")))
    assert refused(copies[1]) == "ledger_rolled_back"
    copies[1].stopped.touch()
    with pytest.raises(BadInput):
        recover_ledger(copies[1], LedgerFiles(copies[1].folder.with_name("again")))


def test_a_ledger_that_has_a_successor_names_it(copies: list[LedgerFiles]) -> None:
    old, new = copies[0], copies[0].folder.with_name("new")
    old.stopped.write_text("a later head was shown\n")
    key = old.key.read_bytes()

    def said(work: Callable[[], object]) -> str:
        with pytest.raises(ColonnadeError) as refused:
            work()
        return str(refused.value)

    again = LedgerFiles(new.with_name("again"))
    assert "see 'colonnade ledger recover'" in said(lambda: open_ledger(old))
    recover_ledger(old, LedgerFiles(new))
    for work in (open_ledger, read_snapshot, lambda files: recover_ledger(files, again)):
        told = said(lambda work=work: work(old))  # type: ignore[misc]
        assert told == f"the ledger in {old.folder} was recovered into {new}; use that one"
    old.key.write_bytes(key)  # as if the recovery had been cut off before the successor was there
    assert "see 'colonnade ledger recover'" in said(lambda: open_ledger(old))


def test_a_missing_mirror_is_named(copies: list[LedgerFiles]) -> None:
    copies[0].mirror.unlink()
    with pytest.raises(
        LedgerDamaged, match=f"^{copies[0].mirror} is missing; name the head mirror"
    ):
        open_ledger(copies[0])


def test_a_recovery_waits_for_a_copy_that_runs(copies: list[LedgerFiles]) -> None:
    ledger = open_ledger(copies[0])
    copies[1].stopped.touch()
    with pytest.raises(ColonnadeError) as busy:
        recover_ledger(copies[1], LedgerFiles(copies[1].folder.with_name("new")))
    assert busy.value.code == "ledger_busy"
    ledger.close()


def test_of_two_ledgers_that_are_made_at_once_the_later_leaves_the_mirror_alone(
    tmp_path: Path,
) -> None:
    mirror = tmp_path / "head"

    def other_comes_first() -> float:
        mirror.write_bytes(b"the head of another ledger")
        return 0.0

    files = LedgerFiles(tmp_path / "late", mirror)
    config = LedgerConfig("hospital", {"": CAP})
    with pytest.raises(FileExistsError):
        create_ledger(files, config, clock=other_comes_first)
    assert mirror.read_bytes() == b"the head of another ledger"
    assert not files.folder.exists()


def test_looking_at_a_mirror_disturbs_nobody(copies: list[LedgerFiles]) -> None:
    ledger = open_ledger(copies[0])
    look = HeadMirror(copies[0].mirror)
    assert look.head == ledger.head
    look.close()
    assert spend(ledger, 2) == 2
    ledger.close()
    with pytest.raises(LedgerRolledBack):
        open_ledger(copies[1])
