"""Rules of the ledger, the same in memory and on disk."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ledgers import CAP, MECHANISM, VALUE, digest, key, new_ledger

from colonnade.core.errors import (
    BadInput,
    BudgetExceeded,
    JobClosed,
    LedgerBusy,
    LedgerDamaged,
    LedgerFailed,
    LedgerRolledBack,
    LowDisk,
    RequestConflict,
    VerificationFailed,
)
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.entries import Bound, Entry
from colonnade.ledger.export import export_lines, verify_export
from colonnade.ledger.gate import Gate
from colonnade.ledger.job_entries import Proposed
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.lines import chain, entry_from_line, line_of
from colonnade.ledger.receipts import Receipt, public_bytes
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.rules.fold import apply_line, extend
from colonnade.ledger.state import Head, LedgerState
from colonnade.ledger.storage import sqlite as storage_module
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.sqlite import SqliteStorage
from colonnade.ledger.writing import journal as journal_module
from colonnade.privacy.sampling import OsNoise


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return new_ledger(request.param, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> LedgerFiles:
    made = LedgerFiles(tmp_path / "ledger")
    create_ledger(made, LedgerConfig("hospital", {"": CAP}))
    return made


def release(ledger: Ledger, round_: int = 0, *, account: str = "") -> Released:
    ledger.charge(key(round_, account=account), MECHANISM, request_sha256=digest(b"r"))
    return ledger.store(key(round_, account=account), b"body %d" % round_)


# -- spending ------------------------------------------------------------------------------------


def test_charges_add_up_exactly(ledger: Ledger) -> None:
    for round_ in range(10):
        release(ledger, round_)
    assert ledger.budget().spent == ledger.head.spent == 10 * MECHANISM.cost


def test_admission_sets_aside_what_others_cannot_spend(ledger: Ledger) -> None:
    ledger.admit("job", units=CAP - MECHANISM.cost)
    ledger.charge(key(job="other"), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(BudgetExceeded):
        ledger.charge(key(1, job="other"), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(BudgetExceeded):
        ledger.admit("third", units=1)
    ledger.charge(key(job="job"), MECHANISM, request_sha256=digest(b"r"))


def test_a_job_cannot_spend_more_than_it_was_admitted_with(ledger: Ledger) -> None:
    ledger.admit("job", units=2 * MECHANISM.cost)
    release(ledger, 0)
    release(ledger, 1)
    with pytest.raises(BudgetExceeded, match="admitted"):
        ledger.charge(key(2), MECHANISM, request_sha256=digest(b"r"))


def test_closing_a_job_frees_what_it_had_set_aside_and_refunds_nothing(ledger: Ledger) -> None:
    ledger.admit("job", units=CAP)
    release(ledger)
    ledger.close_job("job")
    ledger.close_job("job")
    assert ledger.budget().spent == MECHANISM.cost
    ledger.admit("next", units=CAP - MECHANISM.cost)
    with pytest.raises(JobClosed):
        ledger.charge(key(1), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(JobClosed):
        ledger.admit("job", units=1)


def test_admitting_again_is_the_same_and_with_another_limit_a_conflict(ledger: Ledger) -> None:
    ledger.admit("job", units=5)
    head = ledger.head
    ledger.admit("job", units=5)
    assert ledger.head == head
    with pytest.raises(RequestConflict):
        ledger.admit("job", units=6)


def test_accounts_have_budgets_of_their_own(tmp_path: Path) -> None:
    caps = {"": MECHANISM.cost, "c7": 3 * MECHANISM.cost}
    ledger = new_ledger("memory", tmp_path, caps=caps)
    release(ledger, 0, account="c1")
    with pytest.raises(BudgetExceeded):
        release(ledger, 1, account="c1")
    for round_ in range(3):
        release(ledger, round_, account="c7")
    assert ledger.budget("c7").remaining == 0
    assert ledger.budget("c2").spent == 0
    assert ledger.head.spent == 4 * MECHANISM.cost


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_storing_what_was_not_charged_or_twice_is_impossible(kind: str, tmp_path: Path) -> None:
    ledger = new_ledger(kind, tmp_path)
    with pytest.raises(ValueError, match="not charged"):
        ledger.store(key(), b"x")
    release(ledger)
    with pytest.raises(ValueError, match="twice"):
        ledger.store(key(), b"y")
    stored = ledger.stored(key())
    assert stored is not None
    assert stored.body == b"body 0"


def test_the_database_itself_refuses_a_second_charge_of_a_key(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    release(ledger)
    ledger.close()
    database = apsw.Connection(str(files.database))
    line, idempotency_key = next(
        iter(database.execute("SELECT line, idempotency_key FROM entry WHERE seq = 3"))
    )
    with pytest.raises(apsw.ConstraintError):
        database.execute("INSERT INTO entry VALUES (9, ?, x'00', ?)", (line, idempotency_key))
    for change in (
        "UPDATE entry SET line = ''",
        "DELETE FROM entry",
        "UPDATE body SET bytes = x''",
    ):
        with pytest.raises(apsw.ConstraintError):
            database.execute(change)
    database.close()


# -- caps ----------------------------------------------------------------------------------------


def test_a_cap_is_raised_only_by_a_signed_entry(ledger: Ledger) -> None:
    ledger.set_cap(2 * CAP, reason="a new study, approved")
    assert ledger.budget().cap == 2 * CAP
    last = json.loads(list(ledger.lines())[-1])
    assert (last["type"], last["units"]) == ("cap", 2 * CAP)
    assert len(bytes.fromhex(last["signature"])) == 64


def test_a_cap_can_be_lowered_but_not_below_what_is_spent_or_set_aside(ledger: Ledger) -> None:
    release(ledger)
    ledger.admit("job2", units=MECHANISM.cost)
    ledger.set_cap(2 * MECHANISM.cost, reason="less")
    with pytest.raises(BadInput, match="below"):
        ledger.set_cap(2 * MECHANISM.cost - 1, reason="too little")
    assert ledger.budget().cap == 2 * MECHANISM.cost


def test_with_an_approver_a_raise_needs_both_signatures(tmp_path: Path) -> None:
    approver, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    ledger = new_ledger("sqlite", tmp_path, approver_keys=(public_bytes(approver),))
    for wrong in ([], [stranger]):
        with pytest.raises(BadInput, match="approver"):
            ledger.set_cap(CAP + 1, reason="more", approvers=wrong)
    ledger.set_cap(CAP - 1, reason="less needs one signature")
    ledger.set_cap(CAP + 1, reason="more", approvers=[approver])
    assert ledger.budget().cap == CAP + 1
    ledger.close()
    assert open_ledger(LedgerFiles(tmp_path / "ledger")).budget().cap == CAP + 1


@pytest.mark.parametrize("field", ["signature", "reason", "units"])
def test_a_forged_cap_entry_does_not_open(files: LedgerFiles, field: str) -> None:
    database = apsw.Connection(str(files.database))
    rows = list(database.execute("SELECT line FROM entry ORDER BY seq"))
    seq, time, entry = entry_from_line(rows[1][0])
    value = {"signature": "00" * 64, "reason": "forged", "units": 10 * CAP}[field]
    line = line_of(replace(entry, **{field: value}), seq=seq, time=time)  # type: ignore[arg-type]
    first = chain(bytes.fromhex(_genesis()), rows[0][0])
    database.execute("DROP TRIGGER entry_is_final")
    database.execute(
        "UPDATE entry SET line = ?, hash = ? WHERE seq = 2", (line, chain(first, line))
    )
    database.close()
    with pytest.raises(LedgerDamaged, match="signed"):
        open_ledger(files)


def _genesis() -> str:
    return digest(b"colonnade ledger v1")


# -- opening -------------------------------------------------------------------------------------


def test_everything_survives_reopening(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    kept = [release(ledger, round_) for round_ in range(5)]
    ledger.admit("job", units=10 * MECHANISM.cost)
    ledger.purge(key(4))
    head = ledger.head
    ledger.close()
    again = open_ledger(files)
    assert again.head == head
    assert [again.stored(key(round_)) for round_ in range(4)] == kept[:4]
    assert again.stored(key(4)) is None
    assert again.state.reserved == {"": 10 * MECHANISM.cost}


def test_files_are_private_and_the_key_is_read_only(files: LedgerFiles) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files.folder.iterdir()}
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert modes["ledger.key"] == 0o400
    assert all(mode & 0o077 == 0 for mode in modes.values())


def test_a_second_process_cannot_open_an_open_ledger(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    code = (
        "import sys; from pathlib import Path\n"
        "from colonnade.ledger.create import open_ledger\n"
        "from colonnade.ledger.storage.files import LedgerFiles\n"
        "from colonnade.core.errors import LedgerBusy\n"
        "try: open_ledger(LedgerFiles(Path(sys.argv[1])))\n"
        "except LedgerBusy as busy: print(busy)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(files.folder)],
        env={**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"in use by process {os.getpid()}" in run.stdout
    ledger.close()
    open_ledger(files).close()


def test_a_ledger_that_is_not_there_is_not_made_by_opening(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no ledger"):
        open_ledger(LedgerFiles(tmp_path / "nothing"))
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_never_made_over_another(files: LedgerFiles) -> None:
    before = files.database.read_bytes()
    with pytest.raises(BadInput, match="never replaced"):
        create_ledger(files, LedgerConfig("hospital", {"": CAP}))
    assert files.database.read_bytes() == before


def test_a_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HeadMirror, "create", fails)
    with pytest.raises(OSError, match="No space"):
        create_ledger(LedgerFiles(tmp_path / "ledger"), LedgerConfig("hospital", {"": CAP}))
    assert list(tmp_path.iterdir()) == []


def test_an_older_database_is_noticed_by_the_mirror(files: LedgerFiles, tmp_path: Path) -> None:
    ledger = open_ledger(files)
    release(ledger, 0)
    ledger.close()
    older = tmp_path / "backup"
    shutil.copytree(files.folder, older)
    ledger = open_ledger(files)
    release(ledger, 1)
    ledger.close()
    for name in ("ledger.db", "ledger.db-wal"):
        shutil.copyfile(older / name, files.folder / name)
    with pytest.raises(LedgerRolledBack, match="mirror"):
        open_ledger(files)


def test_an_entry_that_the_mirror_does_not_know_yet_is_checked_against_its_own_hash(
    files: LedgerFiles,
) -> None:
    # Killed between the commit and the mirror: only its row holds a hash of the newest entry.
    ledger, units = open_ledger(files), 5 * MECHANISM.cost
    before = ledger.head
    ledger.admit("job", units=units)
    ledger.close()
    files.mirror.unlink()
    HeadMirror.create(files.mirror, before)
    database = apsw.Connection(str(files.database))
    ((seq, line),) = database.execute("SELECT seq, line FROM entry ORDER BY seq DESC LIMIT 1")
    database.execute("DROP TRIGGER entry_is_final")
    less = str(line).replace(f'"units":{units}', f'"units":{units - 1}')
    assert less != line
    database.execute("UPDATE entry SET line = ? WHERE seq = ?", (less, seq))
    database.close()
    with pytest.raises(LedgerDamaged, match="chain"):
        open_ledger(files)


def test_an_older_folder_is_noticed_by_a_mirror_on_another_disk(tmp_path: Path) -> None:
    files = LedgerFiles(tmp_path / "ledger", tmp_path / "elsewhere.mirror")
    create_ledger(files, LedgerConfig("hospital", {"": CAP}))
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    release(ledger)
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    with pytest.raises(LedgerRolledBack):
        open_ledger(files)


def test_an_older_folder_is_noticed_by_an_echoed_receipt(
    files: LedgerFiles, tmp_path: Path
) -> None:
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    kept = release(ledger).receipt
    ledger.check_evidence(kept)
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    restored = open_ledger(files)
    with pytest.raises(LedgerRolledBack, match="receipt"):
        restored.check_evidence(kept)
    with pytest.raises(LedgerFailed):  # and it serves nothing more
        restored.charge(key(), MECHANISM, request_sha256=digest(b"r"))


def test_two_copies_run_apart_are_noticed_by_the_hash(files: LedgerFiles, tmp_path: Path) -> None:
    twin = LedgerFiles(tmp_path / "twin")
    shutil.copytree(files.folder, twin.folder)
    one, two = open_ledger(files), open_ledger(twin)
    receipt = release(one, 0).receipt
    release(two, 1)
    with pytest.raises(LedgerRolledBack):
        two.check_evidence(receipt)


@pytest.mark.parametrize("change", ["seq", "spent", "chain_hash", "body_sha256", "signature"])
def test_a_receipt_that_was_tampered_with_is_not_believed(ledger: Ledger, change: str) -> None:
    receipt = release(ledger).receipt
    other: object = 7 if change in ("seq", "spent") else b"\1" * len(getattr(receipt, change))
    with pytest.raises(BadInput, match="not signed"):
        ledger.check_evidence(replace(receipt, **{change: other}))  # type: ignore[arg-type]
    ledger.check_evidence(receipt)


def test_a_wrong_key_does_not_open_a_ledger(files: LedgerFiles, tmp_path: Path) -> None:
    other = LedgerFiles(tmp_path / "other")
    create_ledger(other, LedgerConfig("hospital", {"": CAP}))
    files.key.unlink()
    shutil.copyfile(other.key, files.key)
    with pytest.raises(LedgerDamaged, match="key"):
        open_ledger(files)


def test_a_later_schema_is_not_opened(files: LedgerFiles) -> None:
    database = apsw.Connection(str(files.database))
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(LedgerDamaged, match="99"):
        open_ledger(files)


def test_the_database_runs_with_full_durability(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    storage = ledger._journal.storage
    assert isinstance(storage, SqliteStorage)
    pragmas = {
        name: next(iter(storage._database.execute(f"PRAGMA {name}")))[0]
        for name in ("journal_mode", "synchronous", "locking_mode", "trusted_schema")
    }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "locking_mode": "exclusive",
        "trusted_schema": 0,
    }


# -- disk ----------------------------------------------------------------------------------------


def test_too_little_disk_is_refused_before_anything_is_charged(
    files: LedgerFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(files)
    kept = release(ledger, 0)
    head = ledger.head
    monkeypatch.setattr(storage_module, "RESERVE_BYTES", 2**62)
    with pytest.raises(LowDisk):
        ledger.charge(key(1), MECHANISM, request_sha256=digest(b"r"))
    assert ledger.head == head
    gate = Gate(ledger, OsNoise())
    assert gate.release(key(0), b"r", MECHANISM, VALUE.copy).body == kept.body
    monkeypatch.undo()
    release(ledger, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_refuses_and_recovers_when_space_returns(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        files = LedgerFiles(disk / "ledger")
        create_ledger(files, LedgerConfig("hospital", {"": CAP}))
        ledger = open_ledger(files)
        release(ledger, 0)
        (disk / "filler").write_bytes(bytes(8 * 2**20))
        with pytest.raises(LowDisk):
            ledger.charge(key(1), MECHANISM, request_sha256=digest(b"r"))
        (disk / "filler").unlink()
        release(ledger, 1)
        ledger.close()
        assert open_ledger(files).budget().spent == 2 * MECHANISM.cost
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


# -- the table that is paid for --------------------------------------------------------------------


def bound(ledger: Ledger, digest: bytes, *, reason: str = "why") -> Bound:
    return Bound("0" * 32, ledger.seal(digest), "text", "", forced=False, reason=reason)


def test_a_binding_is_an_entry_that_names_the_table_under_the_ledgers_key(ledger: Ledger) -> None:
    secret = bytes.fromhex("c0ffee" * 10 + "abcd")
    ledger.bind(bound(ledger, secret))
    release(ledger)
    first = ledger.state.bound
    assert first is not None
    assert first.table == ledger.seal(secret)
    text = "\n".join(export_lines(ledger))
    assert first.table in text
    assert secret.hex() not in text
    for guess in (secret, bytes.fromhex(ledger.opened.public_key) + secret):
        assert hashlib.sha256(guess).hexdigest() not in text
    ledger.bind(bound(ledger, b"x" * 32, reason="a new extract"))
    summary = verify_export(list(export_lines(ledger)))
    assert summary.bound == bound(ledger, b"x" * 32, reason="a new extract")


@pytest.mark.parametrize(
    "change", [{"reason": " "}, {"reason": "a\x1b[2J"}, {"table": "ab"}, {"dataset": "\n"}], ids=str
)
def test_a_binding_without_reason_or_table_is_refused_and_changes_nothing(
    ledger: Ledger, change: dict[str, Any]
) -> None:
    head = ledger.head
    with pytest.raises(ValueError, match=r"bound|digest"):
        ledger.bind(replace(bound(ledger, b"x"), **change))
    assert (ledger.head, ledger.state.bound) == (head, None)


# -- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_between_memory_and_disk_stops_the_ledger(
    files: LedgerFiles, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    ledger = open_ledger(files)

    def interrupted(state: LedgerState, entry: Entry, line: str) -> None:
        extend(state, entry, line)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "extend", interrupted)
        with pytest.raises(error):
            ledger.charge(key(), MECHANISM, request_sha256=digest(b"r"))
    with pytest.raises(LedgerFailed):  # memory says charged, the disk does not
        Gate(ledger, OsNoise()).release(key(), b"r", MECHANISM, VALUE.copy)
    ledger._journal.storage.close()
    assert open_ledger(files).budget().spent == 0


def test_a_refused_entry_does_not_stop_the_ledger(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="not charged"):
        ledger.store(key(), b"x")
    release(ledger)


def test_a_forked_child_cannot_use_the_ledger(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            release(ledger)
        except LedgerFailed:
            code = 7
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    release(ledger)


def test_a_stopped_ledger_gives_nothing_out(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    release(ledger)
    ledger._journal.failed = True
    with pytest.raises(LedgerFailed):
        ledger.stored(key())
    with pytest.raises(LedgerFailed):
        ledger.sign(b"x")


def test_a_replaced_lock_file_stops_the_ledger(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    files.lock.unlink()
    files.lock.touch()
    with pytest.raises(LedgerFailed):
        release(ledger)


@pytest.mark.parametrize("round_", [1.0, True, None, -1, 2**32])
def test_a_key_that_could_not_be_read_back_is_refused(round_: object) -> None:
    with pytest.raises(ValueError, match="round"):
        key(round_)  # type: ignore[arg-type]


def test_opening_makes_what_a_killed_process_left_durable(files: LedgerFiles) -> None:
    ledger = open_ledger(files)
    release(ledger)
    copy = LedgerFiles(files.folder.with_name("killed"))
    shutil.copytree(files.folder, copy.folder)
    # The mirror of the killed process lags behind: put back the one from before the release.
    mirror = HeadMirror(copy.mirror)
    for _ in range(2):
        mirror.write(Head(2, ledger.state.hashes[2], 0, CAP, CAP), force=True)
    again = open_ledger(copy)
    assert HeadMirror(copy.mirror).head == again.head == ledger.head


# -- recovery ------------------------------------------------------------------------------------

COST = MECHANISM.cost


def spoil(files: LedgerFiles, rounds: int) -> tuple[list[Receipt], int]:
    """Spend, then lose the newest part of the database; return the receipts and the spending."""
    ledger = open_ledger(files)
    receipts = [release(ledger, 0).receipt]
    ledger.close()
    saved = files.database.read_bytes(), files.log.read_bytes()
    ledger = open_ledger(files)
    receipts += [release(ledger, round_).receipt for round_ in range(1, rounds)]
    spent = ledger.head.spent
    ledger.close()
    files.database.write_bytes(saved[0])
    files.log.write_bytes(saved[1])
    return receipts, spent


def test_a_recovered_ledger_starts_with_all_that_was_spent_and_a_margin(
    files: LedgerFiles, tmp_path: Path
) -> None:
    receipts, spent = spoil(files, 6)
    new = LedgerFiles(tmp_path / "new")
    adopted = recover_ledger(files, new)
    ledger = open_ledger(new)
    assert ledger.budget().spent == adopted[""] == spent + COST
    assert ledger.budget().cap == CAP
    ledger.check_evidence(receipts[-1])  # its spending was adopted
    for again in (files, new):
        with pytest.raises((LedgerRolledBack, LedgerBusy)):  # the old one is stopped for good
            open_ledger(again)


def test_what_only_receipts_show_comes_on_top_and_leaves_nothing(
    files: LedgerFiles, tmp_path: Path
) -> None:
    # A folder restored with its mirror may have gone on beside the original: both count.
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    receipts = [release(ledger, round_).receipt for round_ in range(6)]
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    ledger = open_ledger(files)
    for round_ in range(10, 14):
        release(ledger, round_)
    ledger.close()
    new = LedgerFiles(tmp_path / "new")
    adopted = recover_ledger(files, new, receipts=receipts)
    assert adopted[""] >= 6 * COST + 4 * COST
    assert open_ledger(new).budget().remaining == 0  # a lowered cap could have been lost too


def test_without_a_mirror_everything_counts_as_spent(files: LedgerFiles, tmp_path: Path) -> None:
    spoil(files, 6)
    files.mirror.write_bytes(bytes(8192))
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    ledger = open_ledger(new)
    assert ledger.budget().remaining == ledger.budget("anyone").remaining == 0


def test_an_account_first_seen_in_the_lost_part_keeps_its_spending(
    files: LedgerFiles, tmp_path: Path
) -> None:
    ledger = open_ledger(files)
    release(ledger, 0, account="ann")
    ledger.close()
    saved = files.database.read_bytes(), files.log.read_bytes()
    ledger = open_ledger(files)
    for round_ in range(8):
        release(ledger, round_, account="bob")
    ledger.close()
    files.database.write_bytes(saved[0])
    files.log.write_bytes(saved[1])
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    recovered = open_ledger(new)
    assert recovered.budget("bob").spent >= 8 * COST
    assert recovered.budget("ann").spent >= COST
    later = key(0, job="next", account="bob")
    recovered.charge(later, MECHANISM, request_sha256=digest(b"r"))
    assert recovered.budget("bob").spent >= 9 * COST


def test_a_lowered_cap_in_the_lost_part_stays_low(files: LedgerFiles, tmp_path: Path) -> None:
    ledger = open_ledger(files)
    release(ledger)
    ledger.close()
    saved = files.database.read_bytes(), files.log.read_bytes()
    ledger = open_ledger(files)
    ledger.set_cap(3 * COST, reason="less")
    ledger.close()
    files.database.write_bytes(saved[0])
    files.log.write_bytes(saved[1])
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    assert open_ledger(new).budget().cap == 3 * COST


def test_old_jobs_are_not_answered_by_a_recovered_ledger(
    files: LedgerFiles, tmp_path: Path
) -> None:
    spoil(files, 3)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    with pytest.raises(JobClosed):
        release(open_ledger(new), 0)


def test_jobs_that_were_only_proposed_or_admitted_are_closed_by_a_recovery(
    files: LedgerFiles, tmp_path: Path
) -> None:
    ledger, spec = open_ledger(files), b"a specification"
    proposal = ("hub", "an operator", "a purpose", "a job", "moments", COST, "auto", 0, 0)
    ledger.decisions.propose(Proposed(digest(spec), *proposal, len(spec)), spec)
    ledger.admit("admitted", units=COST)
    ledger.stop("damaged")
    ledger.close()
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    recovered = open_ledger(new)
    assert recovered.free() >= COST  # that they cost too much is not what refuses them
    for job in (digest(spec), "admitted"):
        with pytest.raises(JobClosed):
            recovered.admit(job, units=COST)


def test_receipts_survive_two_recoveries(files: LedgerFiles, tmp_path: Path) -> None:
    receipts, _ = spoil(files, 4)
    second, third = LedgerFiles(tmp_path / "second"), LedgerFiles(tmp_path / "third")
    recover_ledger(files, second)
    files.mirror.unlink()
    ledger = open_ledger(second)
    ledger.charge(key(0, job="new"), MECHANISM, request_sha256=digest(b"r"))
    later = ledger.store(key(0, job="new"), b"x").receipt
    ledger.close()
    second.mirror.write_bytes(bytes(8192))
    recover_ledger(second, third)
    recovered = open_ledger(third)
    recovered.check_evidence(receipts[-1])
    recovered.check_evidence(later)


def test_a_receipt_from_before_a_recovery_that_shows_more_stops_the_new_ledger(
    files: LedgerFiles, tmp_path: Path
) -> None:
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    receipts = [release(ledger, round_).receipt for round_ in range(8)]
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    content = bytearray(files.log.read_bytes())
    content[-4096:] = bytes(4096)
    files.log.write_bytes(bytes(len(content)))  # damaged, and nobody brought a receipt
    new = LedgerFiles(tmp_path / "new")
    files.stopped.touch()
    recover_ledger(files, new)
    recovered = open_ledger(new)
    with pytest.raises(LedgerRolledBack):
        recovered.check_evidence(receipts[-1])
    recovered.close()
    with pytest.raises(LedgerRolledBack):  # a restart does not forget
        open_ledger(new)


def test_a_superseded_ledger_that_meets_its_successor_stops(
    files: LedgerFiles, tmp_path: Path
) -> None:
    spoil(files, 3)
    shutil.copytree(files.folder, tmp_path / "kept", symlinks=True)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    ledger = open_ledger(new)
    ledger.charge(key(job="next"), MECHANISM, request_sha256=digest(b"r"))
    receipt = ledger.store(key(job="next"), b"x").receipt
    # Someone restores the old folder, key and all, with a mirror that fits.
    old = LedgerFiles(tmp_path / "kept", tmp_path / "mirror")
    state = _fold(old)
    HeadMirror.create(old.mirror, state.head)
    restored = open_ledger(old)
    with pytest.raises(LedgerRolledBack):
        restored.check_evidence(receipt)


def _fold(files: LedgerFiles) -> LedgerState:
    state = LedgerState()
    database = apsw.Connection(str(files.database))
    for (line,) in list(database.execute("SELECT line FROM entry ORDER BY seq")):
        apply_line(state, line)
    database.close()
    return state


def test_a_receipt_from_elsewhere_leaves_nothing_and_what_it_shows_is_adopted(
    files: LedgerFiles, tmp_path: Path
) -> None:
    # A restored copy may have gone on beside the original: both have spent, and more than the cap.
    receipts, spent = spoil(files, CAP // COST)
    new = LedgerFiles(tmp_path / "new")
    assert recover_ledger(files, new, receipts=receipts)[""] >= spent + COST
    ledger = open_ledger(new)
    assert ledger.budget().remaining == 0
    ledger.check_evidence(receipts[-1])


def test_a_whole_ledger_is_not_recovered(files: LedgerFiles, tmp_path: Path) -> None:
    ledger = open_ledger(files)
    receipt = release(ledger).receipt
    ledger.close()
    with pytest.raises(BadInput, match="whole"):
        recover_ledger(files, LedgerFiles(tmp_path / "new"), receipts=[receipt])
    open_ledger(files).close()


def test_recovering_a_folder_that_is_no_ledger_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    with pytest.raises(BadInput, match="key"):
        recover_ledger(LedgerFiles(tmp_path / "pictures"), LedgerFiles(tmp_path / "new"))
    assert [path.name for path in tmp_path.rglob("*")] == ["pictures"]


def test_a_recovery_killed_before_the_new_ledger_exists_can_be_repeated(
    files: LedgerFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(files, 3)
    new = LedgerFiles(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr("colonnade.ledger.recovery.create_ledger", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recover_ledger(files, new)
    with pytest.raises(LedgerRolledBack):  # stopped already: never two alive
        open_ledger(files)
    recover_ledger(files, new)
    open_ledger(new).close()


def test_a_ledger_that_still_opens_is_stopped_before_its_successor_exists(
    files: LedgerFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Restored with its mirror it is whole; only a receipt tells that there is more.
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    receipt = release(ledger).receipt
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    open_ledger(files).close()
    monkeypatch.setattr("colonnade.ledger.recovery.create_ledger", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recover_ledger(files, LedgerFiles(tmp_path / "new"), receipts=[receipt])
    with pytest.raises(LedgerRolledBack):
        open_ledger(files)


def test_an_approver_and_account_caps_survive_a_recovery(tmp_path: Path) -> None:
    approver = Ed25519PrivateKey.generate()
    caps = {"": CAP, "c7": 3 * CAP, "c8": 0}
    files = LedgerFiles(tmp_path / "ledger")
    config = LedgerConfig("hospital", caps, approver_keys=(public_bytes(approver),))
    create_ledger(files, config)
    files.stopped.touch()
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    ledger = open_ledger(new)
    assert [ledger.budget(name).cap for name in caps] == list(caps.values())
    with pytest.raises(BadInput, match="approver"):
        ledger.set_cap(4 * CAP, reason="more", account="c7")


def test_recovery_refuses_receipts_of_others(files: LedgerFiles, tmp_path: Path) -> None:
    other = new_ledger("memory", tmp_path)
    with pytest.raises(BadInput, match="receipt"):
        recover_ledger(files, LedgerFiles(tmp_path / "new"), receipts=[release(other).receipt])
    open_ledger(files).close()  # nothing has changed
    assert not (tmp_path / "new").exists()


# -- exports -------------------------------------------------------------------------------------


def busy(ledger: Ledger) -> list[str]:
    ledger.admit("job", units=20 * MECHANISM.cost)
    for round_ in range(6):
        release(ledger, round_)
    ledger.purge(key(2))
    ledger.set_cap(2 * CAP, reason="study two")
    ledger.close_job("job")
    return list(export_lines(ledger))


def test_an_export_is_checked_against_a_receipt(ledger: Ledger, tmp_path: Path) -> None:
    first = release(ledger, 50).receipt
    older = list(export_lines(ledger))
    later = release(ledger, 51).receipt
    assert verify_export(older, receipt=first).entries == 4
    with pytest.raises(VerificationFailed):
        verify_export(older, receipt=later)
    other = release(new_ledger("memory", tmp_path)).receipt
    with pytest.raises(VerificationFailed):
        verify_export(older, receipt=other)


def test_an_export_adds_up(ledger: Ledger) -> None:
    lines = busy(ledger)
    summary = verify_export(lines)
    (account,) = summary.accounts
    assert (account.spent, account.cap) == (6 * MECHANISM.cost, 2 * CAP)
    assert (account.releases, account.reserved) == (6, 0)
    assert summary.by_mechanism == (("discrete_gaussian", 6, 6 * MECHANISM.cost),)


def test_an_export_alone_lets_anyone_recompute_chain_and_total(ledger: Ledger) -> None:
    # With nothing of ours but the file: hashlib, json and the formula rho = D^2 / (2 sigma^2).
    import hashlib
    from fractions import Fraction
    from math import ceil

    *lines, last = busy(ledger)
    head = hashlib.sha256(b"colonnade ledger v1").digest()
    total = 0
    for line in lines:
        head = hashlib.sha256(head + line.encode()).digest()
        entry = json.loads(line)
        if entry["type"] == "charged":
            m = entry["mechanism"]
            price = ceil(Fraction(m["l2_sensitivity2"], 2 * m["sigma2"]) * 2**50)
            assert price == entry["units"]
            total += price
    told = json.loads(last)
    assert (told["chain_hash"], told["spent"]) == (head.hex(), total)


def test_no_body_is_in_an_export(ledger: Ledger) -> None:
    text = "\n".join(busy(ledger))
    assert "body 3" not in text
    assert b"body 3".hex() not in text


@pytest.mark.parametrize("place", range(12))
def test_a_changed_export_does_not_verify(tmp_path: Path, place: int) -> None:
    lines = busy(new_ledger("memory", tmp_path))
    changed = lines.copy()
    if place < len(lines) - 1:
        del changed[place]
        with pytest.raises(VerificationFailed):
            verify_export(changed)
    changed = lines.copy()
    line = changed[place]
    digits = [i for i, letter in enumerate(line) if letter.isdigit()]
    at = digits[len(digits) // 2]
    changed[place] = line[:at] + str((int(line[at]) + 1) % 10) + line[at + 1 :]
    with pytest.raises(VerificationFailed):
        verify_export(changed)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["{}"],
        ["x"],
        ['{"type":"head"}'],
        ['["type":"head"'],
        ['{"signature":"zz","type":"head"}'],
        ['[{"type":"head"}]'],
        ["[" * 100_000],
    ],
)
def test_what_is_no_export_is_said_to_be_none(lines: list[str]) -> None:
    with pytest.raises(VerificationFailed):
        verify_export(lines)


# -- entries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "[]",
        '{"a": 1}',
        '{"job":"j","seq":1,"time":1,"type":"closed","x":1}',
        '{"job":1,"seq":1,"time":1,"type":"closed"}',
        '{"job":"j","seq":true,"time":1,"type":"closed"}',
        '{"job":"j","seq":1.0,"time":1,"type":"closed"}',
        '{"job":"j","time":1,"seq":1,"type":"closed"}',
        '{"job":"j","seq":1,"time":1,"type":"nothing"}',
        '{"seq":1,"time":1,"type":"closed"}',
    ],
)
def test_a_line_that_is_not_canonical_and_whole_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"entry|Expecting"):
        entry_from_line(line)
