"""A table that one ledger has paid for is not paid for by another as if it were new.

A second ``party init`` for the same table once had a second budget.
"""

import hashlib
import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.hosts import COLUMNS, PARTY, PRICE, a_ledger, ingest_rows
from support.uses import begin, bounds, fit

from colonnade.cli.main import main
from colonnade.core.errors import BadInput, NotBound
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.recovery import recover_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.party.data import binding
from colonnade.party.data.binding import OWNER_NAME, bind, check_binding, rows_of
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ingest_rows(tmp_path / "data")
    return tmp_path / "data"


USES = [begin, fit, bounds]


@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("first", USES)
def test_a_second_ledger_is_refused_whatever_either_is_used_for(
    first: Callable[[Path, Ledger], None], second: Callable[[Path, Ledger], None], data: Path
) -> None:
    one, two = a_ledger(), a_ledger()
    first(data, one)
    owner = data / OWNER_NAME
    assert owner.read_text() == f"{one.opened.ledger_id}\n"
    assert stat.S_IMODE(owner.stat().st_mode) == 0o600
    head = two.head
    with pytest.raises(NotBound):
        second(data, two)
    assert two.head == head
    second(data, one)  # which goes on
    ingest_rows(data)  # neither does another ingest forget it
    with pytest.raises(NotBound):
        second(data, two)


def test_another_ledger_takes_over_by_an_entry_that_says_from_which_and_why(data: Path) -> None:
    one, two = a_ledger(), a_ledger()
    begin(data, one)
    with open_dataset(data) as dataset:
        bind(rows_of(dataset), two, reason="one was lost in a fire")
    entry = two.state.bound
    assert entry is not None
    assert (entry.other_ledger, entry.reason) == (one.opened.ledger_id, "one was lost in a fire")
    begin(data, two)
    with pytest.raises(NotBound):
        begin(data, one)  # and never both


def test_a_ledger_that_continues_a_recovered_one_keeps_its_table(
    tmp_path: Path, data: Path
) -> None:
    old, new = LedgerFiles(tmp_path / "old"), LedgerFiles(tmp_path / "new")
    create_ledger(old, LedgerConfig(PARTY, {"": units_down(2.0)}))
    ledger = open_ledger(old)
    bounds(data, ledger)
    ledger.close()
    old.stopped.touch()
    recover_ledger(old, new)
    ledger = open_ledger(new)
    assert ledger.state.bound is not None  # no other table may come in with the recovery
    begin(data, ledger)
    assert (data / OWNER_NAME).read_text().strip() == ledger.opened.ledger_id
    ingest_rows(data, seed=1)
    with pytest.raises(NotBound):
        begin(data, ledger)
    ledger.close()


def test_the_owner_is_on_disk_before_anything_is_charged(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, seen = a_ledger(), list[tuple[bool, int]]()
    real = Ledger.charge_many

    def charge_many(self: Ledger, requests: object) -> object:
        seen.append(((data / OWNER_NAME).exists(), self.head.spent))
        return real(self, requests)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "charge_many", charge_many)
    bounds(data, ledger)
    assert seen[0] == (True, 0)


def test_a_name_that_cannot_be_written_lets_nothing_be_charged(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(binding, "sync_path", fail)
    ledger = a_ledger()
    for use in USES:
        with pytest.raises(BadInput, match="Input/output error"):
            use(data, ledger)
    assert (ledger.head.spent, ledger.state.bound) == (0, None)


def test_of_two_ledgers_that_come_at_once_one_has_the_table(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = a_ledger(), a_ledger()
    real = binding._write_owner

    def other_first(folder: Path, ledger_id: str, *, replace: bool) -> None:
        monkeypatch.setattr(binding, "_write_owner", real)
        begin(data, two)  # between the look of one and its writing
        real(folder, ledger_id, replace=replace)

    monkeypatch.setattr(binding, "_write_owner", other_first)
    with pytest.raises(NotBound):
        begin(data, one)
    begin(data, two)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"0" * 31, b"0" * 64])
def test_a_name_that_cannot_be_read_is_nobodys(data: Path, content: bytes) -> None:
    ledger = a_ledger()
    begin(data, ledger)
    (data / OWNER_NAME).write_bytes(content)
    with pytest.raises(NotBound):
        begin(data, ledger)
    with open_dataset(data) as dataset:
        bind(rows_of(dataset), ledger, reason="the disk was damaged")
    begin(data, ledger)


def test_what_cannot_be_noticed_is_what_the_documentation_says(tmp_path: Path, data: Path) -> None:
    # A copy without the file, under a ledger that was never used: nothing tells who the people are.
    begin(data, a_ledger())
    copy = shutil.copytree(data, tmp_path / "copy")
    with pytest.raises(NotBound):
        begin(copy, a_ledger())
    (copy / OWNER_NAME).unlink()
    begin(copy, a_ledger())
    assert "does not notice" in (binding.__doc__ or "")


# -- bounds --------------------------------------------------------------------------------------


def test_bounds_are_bought_only_for_the_table_that_the_ledger_is_bound_to(
    tmp_path: Path, data: Path
) -> None:
    ledger = a_ledger()
    fit(data, ledger)
    ingest_rows(tmp_path / "other", seed=1)
    head = ledger.head
    with pytest.raises(NotBound):
        bounds(tmp_path / "other", ledger)
    assert ledger.head == head
    assert not (tmp_path / "other" / OWNER_NAME).exists()


def test_buying_bounds_binds_an_unused_ledger_and_a_refused_purchase_does_not(data: Path) -> None:
    poor = a_ledger(PRICE // 1000)
    with pytest.raises(BadInput), open_dataset(data) as dataset:
        buy_bounds(dataset, poor, Gate(poor, OsNoise()), units=1)
    assert (poor.state.bound, (data / OWNER_NAME).exists()) == (None, False)
    ledger = a_ledger()
    bounds(data, ledger)
    with open_dataset(data) as dataset:
        check_binding(rows_of(dataset), ledger)
        entry = ledger.state.bound
        assert entry is not None
        assert entry.table == ledger.seal(dataset.digest)
        assert hashlib.sha256(dataset.digest).hexdigest() not in "".join(ledger.lines())


def test_the_commands_refuse_a_second_init_with_their_exit_code(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        ledger = str(tmp_path / name)
        assert main(["party", "init", "--ledger", ledger, "--name", PARTY, "--rho", "2"]) == 0
    (tmp_path / "schema.toml").write_text(COLUMNS)

    def run(verb: str, ledger: str, *more: str) -> int:
        given = ["--data", str(data), "--ledger", str(tmp_path / ledger), "--json"]
        return main(["party", verb, *given, *more])

    assert run("bounds", "one", "--rho", "0.9") == 0
    capsys.readouterr()
    fitted = ["--out", str(tmp_path / "out"), "--epsilon", "1", "--solver", "cd"]
    for verb, more in (("bounds", ["--rho", "0.9"]), ("fit", fitted)):
        assert run(verb, "two", *more) == 4
        assert json.loads(capsys.readouterr().out)["error"] == "not_bound"
    assert run("fit", "two", *fitted, "--bind", "the first was lost") == 0
    assert run("bounds", "one", "--rho", "0.9") == 4
