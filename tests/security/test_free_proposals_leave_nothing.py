"""What a coordinator proposes costs it nothing, so it leaves nothing at a party.

Every proposal with other bounds once left a copy of the table on the party's disk, for ever.
"""

import datetime as dt
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hosts import PRICE, a_ledger, ask, client_job, ingest_rows, vault_on, vertical_job
from support.ledgers import spending

from colonnade.core.errors import LowDisk
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.job import job_id
from colonnade.party.data import columns as versions
from colonnade.party.data.columns import MAX_MADE, ColumnCache
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.officer import unpaid
from colonnade.party.vault.vault import Vault
from colonnade.wire.jobspec import job_to_bytes

OPENING = task_to_bytes(FrankWolfeTask(None))


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as opened:
        yield opened


def files(dataset: Dataset) -> set[str]:
    return {str(path) for path in dataset.folder.rglob("*")}


def nameless() -> int:
    """Return how many files without a name this process has mapped."""
    gc.collect()
    lines = Path(f"/proc/{os.getpid()}/maps").read_text().splitlines()
    return sum(line.endswith("(deleted)") and "/data/" in line for line in lines)


def test_proposals_read_and_write_nothing(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*_: object) -> None:
        raise AssertionError("columns were made for a proposal")

    monkeypatch.setattr(versions, "_made", made)
    ledger, before = a_ledger(), files(dataset)
    vault = vault_on(dataset, ledger)
    for salt in range(50):
        job = vertical_job(dataset, salt=salt, half_width=1.0 + salt / 100.0)
        assert vault.consider(job_to_bytes(job)).accepted
    assert files(dataset) == before


def test_a_refused_proposal_sets_nothing_aside_and_leaves_nothing(dataset: Dataset) -> None:
    ledger, before = a_ledger(PRICE), files(dataset)  # a job costs more
    vault = vault_on(dataset, ledger)
    head = spending(ledger)
    decision = vault.consider(job_to_bytes(vertical_job(dataset, half_width=1.0)))
    assert decision.code == "budget_exceeded"
    assert (spending(ledger), files(dataset), nameless()) == (head, before, 0)


def test_however_many_jobs_are_open_few_have_columns_and_no_file_has_a_name(
    dataset: Dataset,
) -> None:
    ledger, before = a_ledger(), files(dataset)
    vault = vault_on(dataset, ledger)
    names = []
    for salt in range(3 * MAX_MADE):
        spec = job_to_bytes(vertical_job(dataset, salt=salt, half_width=1.0 + salt / 100.0))
        assert vault.consider(spec).accepted
        vault.answer(job_id(spec), 0, OPENING)
        names.append(job_id(spec))
        assert nameless() <= MAX_MADE
    assert nameless() == MAX_MADE
    assert files(dataset) == before
    first = vault.answer(names[0], 0, OPENING)  # whose columns had to go, and are made again
    assert first
    for name in names:
        vault.close_job(name)
    assert nameless() == 0  # they end with their jobs
    assert files(dataset) == before


def proposed(vault: Vault, dataset: Dataset, salt: int) -> bool:
    """Propose a job and end it, as a coordinator may as often as it likes."""
    spec = job_to_bytes(vertical_job(dataset, salt=salt))
    accepted = vault.consider(spec).accepted
    vault.close_job(job_id(spec))
    return accepted


def test_jobs_that_are_asked_nothing_cannot_grow_the_ledger_without_end(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpaid, "MAX_UNPAID", 5)
    ledger, day = a_ledger(), [dt.date(2026, 1, 1)]
    vault = vault_on(dataset, ledger, today=lambda: day[0])
    assert [proposed(vault, dataset, salt) for salt in range(8)] == [True] * 5 + [False] * 3
    head = ledger.head
    decision = vault.consider(job_to_bytes(vertical_job(dataset, salt=8)))
    assert (decision.code, ledger.head) == ("policy_refused", head)
    day[0] = dt.date(2026, 1, 2)
    assert proposed(vault, dataset, 9)


def test_jobs_that_are_paid_for_do_not_count(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpaid, "MAX_UNPAID", 5)
    vault = vault_on(dataset, a_ledger())
    for salt in range(12):
        spec = job_to_bytes(vertical_job(dataset, salt=salt))
        assert vault.consider(spec).accepted
        vault.answer(job_id(spec), 0, OPENING)
        vault.close_job(job_id(spec))


def test_columns_that_were_let_go_come_back_the_same(dataset: Dataset) -> None:
    cache = ColumnCache(dataset.coarse, dataset.fine, most=1)
    jobs = [
        cache.of_job(["b", "a"], [Bounds(-1.0, 1.0), Bounds(-w, w)], ("y", Bounds(0.0, 1.0)))
        for w in (2.0, 3.0)
    ]
    first = jobs[0].features.copy()
    assert (jobs[1].features != first).any()
    assert len(cache) == 1
    assert (jobs[0].features == first).all()


def test_a_host_reads_no_row_for_a_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_rows(tmp_path / "data", ["a", "a", "b", "c"])
    with open_dataset(tmp_path / "data") as dataset:
        vault = vault_on(dataset, a_ledger())
        job = client_job(dataset)
        monkeypatch.setattr("colonnade.methods.admm.prox.factorise", lambda *_: pytest.fail("read"))
        assert vault.consider(job_to_bytes(job)).accepted
        monkeypatch.undo()
        assert vault.answer(job_id(job_to_bytes(job)), 1, ask([0, 1, 2]))


def test_a_full_disk_shows_before_anything_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_rows(tmp_path / "data", ["a", "a", "b", "c"])
    with open_dataset(tmp_path / "data") as dataset:
        ledger = a_ledger()
        vault = vault_on(dataset, ledger)
        spec = job_to_bytes(client_job(dataset, half_width=1.0))
        assert vault.consider(spec).accepted

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        head = ledger.head
        with monkeypatch.context() as patch:
            patch.setattr("colonnade.party.data.columns.tempfile.TemporaryFile", full)
            with pytest.raises(LowDisk):
                vault.answer(job_id(spec), 1, ask([0, 1, 2]))
        assert ledger.head == head
        assert vault.answer(job_id(spec), 1, ask([0, 1, 2]))  # there is room again
