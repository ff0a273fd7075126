"""Entries that speak of many accounts: what they may say, and what becomes of their bytes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.ledgers import CAP, MECHANISM, VALUE, digest, key, new_ledger

from colonnade.cli.main import main
from colonnade.core.errors import LedgerDamaged, LowDisk
from colonnade.ledger.create import open_ledger
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import canonical
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.rules.fold import apply_line
from colonnade.ledger.state import LedgerState
from colonnade.ledger.storage import sqlite as storage_module
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.sampling import OsNoise

NAMES = ["a", "b", "c"]
ASKS = [ReleaseRequest(key(account=name), MECHANISM, digest(name.encode())) for name in NAMES]
BODIES = {key(account=name): f"body of {name}".encode() for name in NAMES}


def release_together(ledger: Ledger) -> None:
    assert ledger.admit_many("job", NAMES, units=2 * MECHANISM.cost) == {}
    assert ledger.charge_many(ASKS) == {}
    ledger.store_many(BODIES)


def read_back(ledger: Ledger) -> LedgerState:
    state = LedgerState()
    for line in ledger.lines():
        apply_line(state, line)
    return state


def test_what_happens_to_many_is_one_line_and_means_the_same_as_many(tmp_path: Path) -> None:
    ledger, one_by_one = (new_ledger("memory", tmp_path) for _ in range(2))
    release_together(ledger)
    for ask in ASKS:
        one_by_one.admit("job", units=2 * MECHANISM.cost, account=ask.key.account)
        one_by_one.charge(ask.key, ask.mechanism, request_sha256=ask.request_sha256)
        one_by_one.store(ask.key, BODIES[ask.key])
    kinds = [json.loads(line)["type"] for line in ledger.lines()]
    assert kinds[-3:] == ["admitted-together", "charged-together", "stored-together"]
    for state in (read_back(ledger), read_back(one_by_one)):
        assert state.spent == dict.fromkeys(NAMES, MECHANISM.cost)
        assert state.reserved == dict.fromkeys(NAMES, MECHANISM.cost)
        assert state.total == 3 * MECHANISM.cost
        assert {key: charge.request_sha256 for key, charge in state.charges.items()} == {
            ask.key: ask.request_sha256 for ask in ASKS
        }
        assert [state.stored[each].body_sha256 for each in BODIES] == [
            *map(digest, BODIES.values())
        ]


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (-3, lambda entry: entry.update(accounts=["a", "b", "a"])),
        (-3, lambda entry: entry.update(accounts=[])),
        (-3, lambda entry: entry.update(accounts=["a", "b", 3])),
        (-3, lambda entry: entry.update(units=CAP + 1)),
        (-2, lambda entry: entry.update(accounts=["a", "b", "a"])),
        (-2, lambda entry: entry.update(accounts=[], requests_sha256=[])),
        (-2, lambda entry: entry["requests_sha256"].pop()),
        (-2, lambda entry: entry["accounts"].append("d")),
        (-2, lambda entry: entry.update(units=MECHANISM.cost - 1)),
        (-2, lambda entry: entry["mechanism"].update(sigma2=51)),
        (-2, lambda entry: entry.update(accounts="abc")),
        (-1, lambda entry: entry["accounts"].append("d")),
        (-1, lambda entry: entry.update(accounts=["a", "b", "d"])),
        (-1, lambda entry: entry.update(accounts=["a", "b", "b"])),
        (-1, lambda entry: entry["bodies_sha256"].pop()),
        (-1, lambda entry: entry["spent"].pop()),
        (-1, lambda entry: entry["spent"].__setitem__(1, MECHANISM.cost - 1)),
        (-1, lambda entry: entry["spent"].__setitem__(1, True)),
    ],
)
def test_a_line_that_misstates_one_of_many_does_not_load(
    place: int, change: Change, tmp_path: Path
) -> None:
    ledger = new_ledger("memory", tmp_path)
    release_together(ledger)
    lines = list(ledger.lines())
    entry = json.loads(lines[place])
    change(entry)
    state = LedgerState()
    for line in lines[:place]:
        apply_line(state, line)
    before = repr(state)
    with pytest.raises(LedgerDamaged):
        apply_line(state, canonical(entry))
    assert repr(state) == before  # not even the accounts before the wrong one


@pytest.mark.parametrize("place", [-3, -2, -1])
def test_a_line_of_many_cannot_come_again(place: int, tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    release_together(ledger)
    state = read_back(ledger)
    entry = json.loads(list(ledger.lines())[place]) | {"seq": state.next_seq}
    with pytest.raises(LedgerDamaged, match="twice"):
        apply_line(state, canonical(entry))


@pytest.mark.parametrize("left_out", [1, 2])
def test_a_line_does_not_follow_where_others_were_left_out(left_out: int, tmp_path: Path) -> None:
    # Releases of one job do not build on each other: only their places tell that one is missing.
    ledger = new_ledger("memory", tmp_path)
    for round_ in range(3):
        ledger.charge(key(round_), MECHANISM, request_sha256=digest(b"r"))
    lines, state = list(ledger.lines()), LedgerState()
    for line in lines[:-3]:
        apply_line(state, line)
    before = repr(state)
    with pytest.raises(LedgerDamaged, match="place"):
        apply_line(state, lines[left_out - 3])
    assert repr(state) == before


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("gone", NAMES)
def test_purging_one_of_many_leaves_the_others(kind: str, gone: str, tmp_path: Path) -> None:
    ledger = new_ledger(kind, tmp_path)
    release_together(ledger)
    ledger.purge(key(account=gone))
    if kind == "sqlite":
        ledger.close()
        database = apsw.Connection(str(LedgerFiles(tmp_path / "ledger").database))
        kept = b"".join(row[0] for row in database.execute("SELECT bytes FROM body"))
        database.close()
        assert BODIES[key(account=gone)] not in kept
        ledger = open_ledger(LedgerFiles(tmp_path / "ledger"))
    assert ledger.stored(key(account=gone)) is None
    others = [each for each in BODIES if each.account != gone]
    assert [each.body for each in ledger.stored_many(others)] == [BODIES[each] for each in others]


def test_damage_to_any_part_of_a_shared_body_is_noticed(tmp_path: Path) -> None:
    ledger = new_ledger("sqlite", tmp_path)
    release_together(ledger)
    ledger.close()
    files = LedgerFiles(tmp_path / "ledger")
    whole = b"".join(BODIES.values())
    assert set_body(files, whole) == whole
    for at in (0, 8, 9, 13, 18, len(whole) - 1):
        set_body(files, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LedgerDamaged, match="release"):
            open_ledger(files)
    set_body(files, whole)
    assert open_ledger(files).stored_many(list(BODIES))[2].body == b"body of c"


def set_body(files: LedgerFiles, body: bytes) -> bytes:
    """Put other bytes in the only row that has some; return what it had."""
    database = apsw.Connection(str(files.database))
    ((before,),) = database.execute("SELECT bytes FROM body")
    database.execute("DROP TRIGGER IF EXISTS body_is_final")
    database.execute("UPDATE body SET bytes = ?", (body,))
    database.close()
    return bytes(before)


def test_bodies_of_other_sizes_are_not_stored_in_one_row(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path)
    assert ledger.charge_many(ASKS) == {}
    bodies = dict(zip(BODIES, [b"xx", b"yyy", b"zzz"], strict=True))
    ledger.store_many(bodies)
    assert [each.body for each in ledger.stored_many(list(bodies))] == [b"xx", b"yyy", b"zzz"]
    assert [read_back(ledger).stored[each].seq for each in bodies] == [4, 5, 5]


def test_every_one_of_many_is_paid_from_its_own_account(tmp_path: Path) -> None:
    ledger = new_ledger("memory", tmp_path, caps={"": CAP, "b": MECHANISM.cost})
    gate = Gate(ledger, OsNoise())
    for round_ in range(2):
        requests = [
            ReleaseRequest(key(round_, account=name), MECHANISM, digest(b"r")) for name in NAMES
        ]
        replies = gate.release_many(requests, lambda keys: [VALUE.copy() for _ in keys])
    assert [type(reply).__name__ for reply in replies] == ["Released", "BudgetExceeded", "Released"]
    assert [ledger.budget(name).spent // MECHANISM.cost for name in NAMES] == [2, 1, 2]
    released = [reply for reply in replies if isinstance(reply, Released)]
    assert {reply.receipt.account for reply in released} == {"c"}  # the newest speaks for all
    assert released[0].receipt.spent == 2 * MECHANISM.cost


def test_too_little_disk_refuses_an_admission_before_anything_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger("sqlite", tmp_path)
    head = ledger.head
    monkeypatch.setattr(storage_module, "RESERVE_BYTES", 2**62)
    with pytest.raises(LowDisk):
        ledger.admit_many("job", NAMES, units=1)
    assert ledger.head == head
    monkeypatch.undo()
    assert ledger.admit_many("job", NAMES, units=1) == {}


def test_many_accounts_are_summed_up_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"client {number}" for number in range(9)]
    ledger = new_ledger("sqlite", tmp_path)
    for round_, some in enumerate((names, names[:4])):
        requests = [
            ReleaseRequest(key(round_, account=name), MECHANISM, digest(b"r")) for name in some
        ]
        assert ledger.charge_many(requests) == {}
    ledger.close()
    assert main(["ledger", "show", str(tmp_path / "ledger"), "--entries"]) == 0
    shown = capsys.readouterr().out
    assert "9 accounts of clients" in shown
    assert "client 3" not in shown
    assert re.search(r"spent    epsilon \S+ \(rho 0.08", shown)
    half = next(line for line in shown.splitlines() if line.endswith("by half of them at most"))
    assert "(rho 0.0400" in half or "(rho 0.04)" in half
    assert re.search(r"left     epsilon \S+ \(rho 0.9", shown)
    assert "accounts=(9 listed)" in shown
    assert "discrete_gaussian      13 releases\n" in shown  # their sum is nobody's spending
