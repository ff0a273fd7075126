"""After a recovery no account has more than is left of what it truly spent."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ledgers import CAP, MECHANISM, digest, key

from colonnade.core.errors import BadInput, BudgetExceeded, LedgerDamaged, VerificationFailed
from colonnade.ledger import export
from colonnade.ledger.bundle import head_statement
from colonnade.ledger.caps import signed_cap
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import CapSet, Charged, Entry, Opened, Stored, canonical
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.lines import GENESIS, chain, line_of
from colonnade.ledger.receipts import Receipt, public_bytes
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.party.data.clients import check_accounts
from colonnade.privacy.accounting import MAX_UNITS
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.privacy.mechanisms import record_of
from colonnade.privacy.membership import MEMBERSHIP, MembershipNoise

COST = MECHANISM.cost
NAMES = ("alice", "bob", "carol")


def found(folder: Path, caps: dict[str, int]) -> LedgerFiles:
    files = LedgerFiles(folder)
    create_ledger(files, LedgerConfig("host", caps))
    return files


def rounds(ledger: Ledger, which: range, names: Sequence[str] = NAMES) -> Receipt:
    """Release for all of ``names`` together in every round; return the last receipt."""
    for round_ in which:
        keys = [key(round_, account=name) for name in names]
        assert (
            ledger.charge_many([ReleaseRequest(each, MECHANISM, digest(b"r")) for each in keys])
            == {}
        )
        ledger.store_many(dict.fromkeys(keys, b"body"))
    return ledger.stored_many(keys)[0].receipt


def test_a_restored_host_forgets_nothing_of_any_client(tmp_path: Path) -> None:
    cap = 10 * COST
    files = found(tmp_path / "ledger", {"": cap})
    ledger = open_ledger(files)
    rounds(ledger, range(8))
    ledger.close()
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    receipt = rounds(ledger, range(8, 10))  # one receipt for all three: everybody is at the cap
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new, receipts=[receipt])
    recovered = open_ledger(new)
    recovered.check_evidence(receipt)  # what the coordinator will show at its first hello
    for name in (*NAMES, "somebody else", ""):
        assert recovered.budget(name).spent >= cap
        assert recovered.free(name) == 0
    recovered.set_cap(max(cap, recovered.budget().cap), reason="back to the cap that all know")
    with pytest.raises(BudgetExceeded):
        recovered.charge(key(0, job="k", account="bob"), MECHANISM, request_sha256=digest(b"r"))
    check_accounts(recovered, divided=True)  # the host may start


def test_a_ledger_of_which_only_kept_bytes_are_damaged_is_recovered(tmp_path: Path) -> None:
    dummies = MembershipNoise.within(1.0, 1e-9)  # as dear as many releases of the table
    assert dummies.cost > 5 * COST
    files = found(tmp_path / "ledger", {"": 10 * COST, MEMBERSHIP: 2 * dummies.cost})
    ledger = open_ledger(files)
    ledger.charge(key(0, account=MEMBERSHIP), dummies, request_sha256=digest(b"r"))
    rounds(ledger, range(3), [""])
    ledger.close()
    with pytest.raises(BadInput):  # whole
        recover_ledger(files, LedgerFiles(tmp_path / "none"))
    database = apsw.Connection(str(files.database))
    database.execute("DROP TRIGGER body_is_final")
    database.execute("UPDATE body SET bytes = x'00' WHERE seq = (SELECT max(seq) FROM body)")
    database.close()
    with pytest.raises(LedgerDamaged):
        open_ledger(files)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    recovered = open_ledger(new)
    # What was spent, and one release of the same kind that may have been in progress.
    assert recovered.budget().spent == 4 * COST
    assert recovered.budget(MEMBERSHIP).spent == 2 * dummies.cost


def test_a_prediction_s_receipt_from_a_lost_part_tells_nobody_s_spending(tmp_path: Path) -> None:
    files = found(tmp_path / "ledger", {"": 10 * COST})
    ledger = open_ledger(files)
    rounds(ledger, range(1), [""])
    ledger.close()
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    rounds(ledger, range(1, 10), [""])
    scored = key(0, job="p", account=PREDICTION)
    ledger.admit("p", units=0, account=PREDICTION)
    ledger.charge(scored, Disclosure("ab" * 32, "lab", "triage", 7), request_sha256=digest(b"r"))
    receipt = ledger.store(scored, b"part").receipt  # all that the coordinator kept
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)  # with the mirror
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new, receipts=[receipt])
    assert open_ledger(new).budget().spent == 10 * COST


def test_a_table_s_receipt_from_a_lost_part_tells_nothing_of_its_alignments(tmp_path: Path) -> None:
    dummies = MembershipNoise.within(1.0, 1e-9)
    files = found(tmp_path / "ledger", {"": 2 * dummies.cost})
    ledger = open_ledger(files)
    rounds(ledger, range(1), [""])
    ledger.close()
    shutil.copytree(files.folder, tmp_path / "backup")
    ledger = open_ledger(files)
    ledger.charge(key(0, account=MEMBERSHIP), dummies, request_sha256=digest(b"r"))
    ledger.store(key(0, account=MEMBERSHIP), b"points")
    receipt = rounds(ledger, range(1, 3), [""])
    ledger.close()
    shutil.rmtree(files.folder)
    shutil.copytree(tmp_path / "backup", files.folder)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new, receipts=[receipt])
    recovered = open_ledger(new)
    assert recovered.budget(MEMBERSHIP).spent >= dummies.cost
    assert recovered.free(MEMBERSHIP) == recovered.free() == 0


@pytest.mark.parametrize(("table", "column"), [("body", "bytes"), ("entry", "line")])
def test_a_row_that_holds_a_number_is_damaged(tmp_path: Path, table: str, column: str) -> None:
    files = found(tmp_path / "ledger", {"": 10 * COST})
    ledger = open_ledger(files)
    rounds(ledger, range(3), [""])
    ledger.close()
    database = apsw.Connection(str(files.database))
    database.execute("DROP TRIGGER body_is_final")
    database.execute("DROP TRIGGER entry_is_final")
    database.execute("PRAGMA writable_schema = ON")
    database.execute(
        "UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'TEXT', 'ANY')"
    )
    database.close()
    database = apsw.Connection(str(files.database))
    database.execute(f"UPDATE {table} SET {column} = 7 WHERE seq = (SELECT max(seq) FROM {table})")
    database.close()
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    assert open_ledger(new).budget().spent == 4 * COST


def lose_tail(files: LedgerFiles, saved: tuple[bytes, bytes]) -> None:
    files.database.write_bytes(saved[0])
    files.log.write_bytes(saved[1])


def test_what_was_spent_under_a_cap_raised_in_the_lost_part_is_known(tmp_path: Path) -> None:
    files = found(tmp_path / "ledger", {"": COST})
    ledger = open_ledger(files)
    rounds(ledger, range(1), [""])
    ledger.close()
    saved = files.database.read_bytes(), files.log.read_bytes()
    ledger = open_ledger(files)
    ledger.set_cap(5 * COST, reason="more")
    rounds(ledger, range(1, 5), [""])
    ledger.close()
    lose_tail(files, saved)
    new = LedgerFiles(tmp_path / "new")
    assert recover_ledger(files, new)[""] == 5 * COST
    recovered = open_ledger(new)
    assert recovered.free() == 0
    recovered.set_cap(6 * COST, reason="more again")
    assert recovered.free() == COST


def test_an_account_with_a_higher_cap_than_the_others_keeps_its_spending(tmp_path: Path) -> None:
    files = found(tmp_path / "ledger", {"": COST, "alice": 10 * COST})
    ledger = open_ledger(files)
    rounds(ledger, range(8), ["alice"])
    ledger.close()
    saved = files.database.read_bytes(), files.log.read_bytes()
    ledger = open_ledger(files)
    rounds(ledger, range(8, 9), ["alice"])
    ledger.close()
    lose_tail(files, saved)
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    recovered = open_ledger(new)
    assert (
        recovered.budget("alice").spent == 10 * COST
    )  # nine, and one that may have been under way
    assert recovered.free("alice") == 0
    assert recovered.free("bob") == 0  # it may have been bob's release that was lost


def rename(files: LedgerFiles, old: str, new: str, *, lost: int = 0) -> None:
    """Damage a database: entries of one account are another's, and the newest are gone."""
    database = apsw.Connection(str(files.database))
    database.execute("DROP TRIGGER entry_is_final")
    database.execute("DROP TRIGGER entry_stays")
    for table in ("body", "entry"):
        newest = f"(SELECT MAX(seq) - {lost} FROM entry)"
        database.execute(f"DELETE FROM {table} WHERE seq > {newest}")
    texts = f'"{old}"', f'"{new}"'
    database.execute("UPDATE entry SET line = replace(line, ?, ?)", texts)
    database.close()


def test_entries_that_do_not_fit_their_hashes_are_nobodys_spending(tmp_path: Path) -> None:
    files = found(tmp_path / "ledger", {"": CAP})
    ledger = open_ledger(files)
    rounds(ledger, range(6), ["alice"])
    ledger.close()
    rename(files, "alice", "carol", lost=2)  # both heads in the mirror are of entries that are gone
    recover_ledger(files, LedgerFiles(tmp_path / "new"))
    # The mirror knows of six releases; were the entries believed, five would be another's.
    assert open_ledger(LedgerFiles(tmp_path / "new")).budget("alice").spent >= 6 * COST


def test_not_even_the_first_entry_that_does_not_fit_its_hash_is_believed(tmp_path: Path) -> None:
    files = LedgerFiles(tmp_path / "ledger")
    create_ledger(files, LedgerConfig("host", {"": CAP}, adopted={"alice": 10 * COST}))
    ledger = open_ledger(files)
    rounds(ledger, range(1), ["bob"])
    ledger.close()
    rename(files, "alice", "carol")
    recover_ledger(files, LedgerFiles(tmp_path / "new"))
    assert open_ledger(LedgerFiles(tmp_path / "new")).budget("alice").spent >= 10 * COST


def test_a_host_may_start_after_its_mirror_was_lost(tmp_path: Path) -> None:
    files = found(tmp_path / "ledger", {"": CAP})
    ledger = open_ledger(files)
    rounds(ledger, range(2))
    ledger.close()
    files.mirror.write_bytes(bytes(8192))
    new = LedgerFiles(tmp_path / "new")
    recover_ledger(files, new)
    recovered = open_ledger(new)
    check_accounts(recovered, divided=True)
    assert recovered.free("alice") == recovered.free("dave") == recovered.free() == 0


def test_the_mirror_holds_the_sum_of_more_accounts_than_64_bits(tmp_path: Path) -> None:
    path, head = tmp_path / "head", Head(7, bytes(32), 2**20 * MAX_UNITS, MAX_UNITS, MAX_UNITS)
    HeadMirror.create(path, head)
    assert head.spent > 2**64
    assert HeadMirror(path).head == head


SIGNER, APPROVER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
LEDGER_ID = "ab" * 16


def opened(founding_caps: int) -> Opened:
    keys = public_bytes(SIGNER).hex(), [public_bytes(APPROVER).hex()]
    return Opened(LEDGER_ID, "p", *keys, False, founding_caps, [], [])


def exported(*entries: Entry, time: int = 1) -> list[str]:
    """Return an export of whatever entries, as somebody with the ledger's key could write one."""
    lines = [line_of(entry, seq=seq, time=1) for seq, entry in enumerate(entries, start=1)]
    lines = [line.replace('"time":1,', f'"time":{time},') for line in lines]
    head, spent = chain_of(lines), sum(getattr(entry, "units", 0) for entry in entries[2:])
    told = {
        "type": "head",
        "ledger_id": LEDGER_ID,
        "seq": len(lines),
        "chain_hash": head.hex(),
        "spent": spent,
    }
    signature = SIGNER.sign(head_statement(told))
    return [*lines, canonical({**told, "signature": signature.hex()})]


def chain_of(lines: Sequence[str]) -> bytes:
    head = GENESIS
    for line in lines:
        head = chain(head, line)
    return head


def cap(seq: int, units: int) -> CapSet:
    return signed_cap(LEDGER_ID, seq, CapSet("", "", units, "because", "", ""), sign=SIGNER.sign)


def charged(request: str = "0" * 64) -> Charged:
    return Charged("j", 1, "d", "", COST, dict(record_of(MECHANISM)), request)


def stored(body: str = "0" * 64, size: int = 3) -> Stored:
    return Stored("j", 1, "d", "", body, size, COST)


def test_an_export_of_sound_entries_verifies() -> None:
    summary = export.verify_export(exported(opened(1), cap(2, CAP), charged(), stored()))
    assert summary.accounts[0].spent == COST


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        # A raise that the approver never saw, called one of the founding's.
        (exported(opened(5), cap(2, CAP), charged(), cap(4, 2 * CAP)), "right after"),
        (exported(opened(1), cap(2, CAP), cap(3, 2 * CAP)), "approver"),
        (exported(opened(1), cap(2, CAP), charged("no digest")), "digest"),
        (exported(opened(1), cap(2, CAP), charged(), stored("Z" * 64)), "digest"),
        (exported(opened(1), cap(2, CAP), charged(), stored(size=-7)), "negative"),
        (exported(opened(1), cap(2, CAP), charged(), time=-5), "time"),
    ],
)
def test_an_export_with_what_no_ledger_writes_does_not_verify(lines: list[str], told: str) -> None:
    with pytest.raises(VerificationFailed, match=told):
        export.verify_export(lines)
