"""The table that a party opened is the only one it answers from, whatever happens to its folder.

A client who had spent his whole cap was once answered on another client's account, because the
party kept its list of clients and mapped a new extract in which the rows had moved.
"""

import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.hosts import (
    PRICE,
    a_ledger,
    ask,
    client_job,
    ingest_rows,
    start_party,
    vault_on,
    vertical_job,
)
from support.ledgers import spending

from colonnade.cli.main import main
from colonnade.core.errors import (
    BadInput,
    DatasetBusy,
    DatasetChanged,
    NotBound,
    ReleaseAbandoned,
)
from colonnade.data.table import COARSE_NAME, FINE_NAME, open_pair
from colonnade.ledger.gate import Gate, Step
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.job import job_id
from colonnade.party.data.binding import bind, rows_of
from colonnade.party.data.clients import CLIENTS_NAME
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.wire.cohort import Replies
from colonnade.wire.jobspec import job_to_bytes

OPENING = task_to_bytes(FrankWolfeTask(None))
PEOPLE = ["ann", "ann", "bob", "bob", "cid", "cid"]
SHIFTED = ["ann", "bob", "bob", "cid", "cid", "dan"]


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Dataset]:
    ingest_rows(tmp_path / "data", PEOPLE)
    with open_dataset(tmp_path / "data") as opened:
        yield opened


def moved_away(data: Path, other: Path) -> None:
    data.rename(data.with_name("old"))
    other.rename(data)


def files_renamed_over(data: Path, other: Path) -> None:
    for path in other.iterdir():
        path.rename(data / path.name)


def link_repointed(data: Path, other: Path) -> None:
    data.rename(data.with_name("old"))
    data.symlink_to(other)


def fine_copy_renamed_over(data: Path, other: Path) -> None:
    (other / FINE_NAME).rename(data / FINE_NAME)


def written_in_place(data: Path, other: Path) -> None:
    for name in (COARSE_NAME, FINE_NAME):
        with (data / name).open("r+b") as file:
            file.write((other / name).read_bytes())


def removed(data: Path, other: Path) -> None:
    (data / COARSE_NAME).unlink()


SWAPS = [
    moved_away,
    files_renamed_over,
    link_repointed,
    fine_copy_renamed_over,
    written_in_place,
    removed,
]


def test_ingest_into_the_folder_of_a_running_party_is_refused(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (dataset.folder / COARSE_NAME).read_bytes()
    with pytest.raises(DatasetBusy):
        ingest_rows(dataset.folder, seed=1)
    (tmp_path / "s.toml").write_text('[[feature]]\nname = "a"\nlow = 0\nhigh = 1\n')
    given = ["--schema", str(tmp_path / "s.toml"), "--out", str(dataset.folder)]
    assert main(["party", "ingest", *given, str(tmp_path / "data.csv"), "--json"]) == 6
    assert '"error": "dataset_busy"' in capsys.readouterr().out
    assert (dataset.folder / COARSE_NAME).read_bytes() == before
    assert sorted(p.name for p in dataset.folder.iterdir()) == [COARSE_NAME, FINE_NAME]
    dataset.check()


def test_a_table_that_is_being_ingested_is_not_opened(tmp_path: Path) -> None:
    ingest_rows(tmp_path / "data")
    from colonnade.party.data.folder import workspace

    with workspace(tmp_path / "data"), pytest.raises(DatasetBusy):
        open_dataset(tmp_path / "data")
    open_dataset(tmp_path / "data").close()


def test_a_killed_party_leaves_no_lock(tmp_path: Path) -> None:
    ingest_rows(tmp_path / "data")
    script = (
        "import sys, pathlib; from colonnade.party.data.dataset import open_dataset;"
        "held = open_dataset(pathlib.Path(sys.argv[1])); print('held', flush=True);"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DatasetBusy):
            ingest_rows(tmp_path / "data", seed=1)
        holder.send_signal(signal.SIGKILL)
    ingest_rows(tmp_path / "data", seed=1)


@pytest.mark.parametrize("swap", SWAPS)
def test_a_vertical_job_is_neither_accepted_nor_answered_from_another_table(
    swap: Callable[[Path, Path], None],
    dataset: Dataset,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = a_ledger()
    vault = vault_on(dataset, ledger)
    begun, new = (job_to_bytes(vertical_job(dataset, salt=salt)) for salt in (0, 1))
    assert vault.consider(begun).accepted
    ingest_rows(tmp_path / "other", seed=1)
    swap(dataset.folder, tmp_path / "other")
    head = spending(ledger)
    with caplog.at_level(logging.ERROR), pytest.raises(DatasetChanged):
        vault.answer(job_id(begun), 0, OPENING)
    assert "dataset_changed" in caplog.text  # which tells the operator
    decision = vault.consider(new)
    assert (decision.accepted, decision.code) == (False, "dataset_changed")
    assert str(dataset.folder) not in decision.message
    assert spending(ledger) == head  # nothing charged, nothing set aside


@pytest.mark.parametrize("swap", SWAPS)
def test_nobody_is_answered_on_another_clients_account(
    swap: Callable[[Path, Path], None], host: Dataset, tmp_path: Path
) -> None:
    ledger = a_ledger(PRICE)  # one answer is all that a client may ever give
    vault = vault_on(host, ledger)
    spec = job_to_bytes(client_job(host))
    assert vault.consider(spec).accepted
    first = vault.answer(job_id(spec), 1, ask([0]))
    assert isinstance(first, Replies)
    assert list(first.released) == [0]
    ingest_rows(tmp_path / "other", SHIFTED)  # where the rows of one stand where another's did
    swap(host.folder, tmp_path / "other")
    head = ledger.head
    for clients in ([1], [2], [0, 1, 2]):
        with pytest.raises(DatasetChanged):
            vault.answer(job_id(spec), 1, ask(clients))
    assert ledger.head == head


def test_a_replaced_list_of_clients_is_noticed_too(host: Dataset, tmp_path: Path) -> None:
    ledger = a_ledger()
    vault = vault_on(host, ledger)
    spec = job_to_bytes(client_job(host))
    assert vault.consider(spec).accepted
    path = host.folder / CLIENTS_NAME
    path.write_text(path.read_text().replace("ann", "eve"))
    with pytest.raises(DatasetChanged):
        vault.answer(job_id(spec), 1, ask([0]))


def test_a_table_written_while_it_is_read_is_noticed_before_noise_is_drawn(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = a_ledger()
    vault = vault_on(dataset, ledger)
    spec = job_to_bytes(vertical_job(dataset))
    assert vault.consider(spec).accepted
    steps: list[Step] = []
    real = vault._gate._at

    def at(step: Step) -> None:
        steps.append(step)
        if step is Step.CHARGED:  # between the last look and the reading
            with (dataset.folder / COARSE_NAME).open("r+b") as file:
                file.write(file.read(1))
        real(step)

    monkeypatch.setattr(vault._gate, "_at", at)
    with pytest.raises(ReleaseAbandoned):  # it was paid for
        vault.answer(job_id(spec), 0, OPENING)
    assert Step.DRAWN not in steps
    assert not ledger.state.stored


@pytest.mark.parametrize("half_width", [9.0, 2.0], ids=["mapped", "made"])
def test_what_a_job_reads_is_what_was_opened_even_if_nobody_looked(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half_width: float
) -> None:
    # The check is taken away: the tables themselves must still be the ones that were opened.
    job = vertical_job(dataset, half_width=half_width)
    spec = job_to_bytes(job)
    expected = vault_on(dataset, a_ledger())
    assert expected.consider(spec).accepted
    right = expected.answer(job_id(spec), 0, OPENING)
    monkeypatch.setattr(Dataset, "check", lambda self: None)
    vault = vault_on(dataset, a_ledger())
    ingest_rows(tmp_path / "other", seed=1)
    moved_away(dataset.folder, tmp_path / "other")
    assert vault.consider(spec).accepted
    found = vault.answer(job_id(spec), 0, OPENING)
    assert not isinstance(found, Replies)
    assert not isinstance(right, Replies)
    assert [each.body for each in found] == [each.body for each in right]


def test_after_another_ingest_binding_is_the_only_way_to_start(tmp_path: Path) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data")
    start_party(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data")  # the same rows again: nothing to say
    start_party(tmp_path / "data", ledger)
    ingest_rows(tmp_path / "data", seed=1)
    with pytest.raises(NotBound):
        start_party(tmp_path / "data", ledger)
    with open_dataset(tmp_path / "data") as dataset:
        bind(rows_of(dataset), ledger, reason="the extract of May")
    start_party(tmp_path / "data", ledger)


def test_tables_of_two_ingests_are_never_opened_together(tmp_path: Path) -> None:
    ingest_rows(tmp_path / "data")
    ingest_rows(tmp_path / "other", seed=1)
    shutil.copy(tmp_path / "other" / FINE_NAME, tmp_path / "data" / FINE_NAME)
    for use in (open_dataset, open_pair):
        with pytest.raises(BadInput):
            use(tmp_path / "data")


def test_a_gate_looks_before_it_charges(dataset: Dataset, tmp_path: Path) -> None:
    # Every release of a vault passes here, so that no kind of answer can forget it.
    vault = vault_on(dataset, a_ledger())
    gate: Gate = vault._gate
    ingest_rows(tmp_path / "other", seed=1)
    moved_away(dataset.folder, tmp_path / "other")
    with pytest.raises(DatasetChanged):
        gate.release_many([], lambda _: [])
