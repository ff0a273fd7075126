"""Checks without which everything seems to work: each has a test that only it can pass."""

from collections.abc import Iterator
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

from colonnade.core.errors import BadInput
from colonnade.data.table import COARSE_NAME, FINE_NAME
from colonnade.ledger.ledger import Ledger
from colonnade.methods.frank_wolfe.codec import FrankWolfeTask, task_to_bytes
from colonnade.methods.job import job_id
from colonnade.party.data.binding import bind, claim, rows_of
from colonnade.party.data.dataset import open_dataset
from colonnade.wire.cohort import Replies
from colonnade.wire.jobspec import job_to_bytes

OPENING = task_to_bytes(FrankWolfeTask(None))


# -- a divided table after a whole one -----------------------------------------------------------


@pytest.fixture
def spent(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger that has paid for a whole table, whose rows are about to be divided by clients."""
    ledger = a_ledger()
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as dataset:
        claim(rows_of(dataset), ledger)
        vault = vault_on(dataset, ledger)
        spec = job_to_bytes(vertical_job(dataset))
        assert vault.consider(spec).accepted
        vault.answer(job_id(spec), 0, OPENING)
    assert ledger.budget().spent > 0
    ingest_rows(tmp_path / "data", [f"client {row % 50}" for row in range(500)])
    yield ledger
    ledger.close()


def test_a_divided_table_is_refused_after_a_whole_one_was_paid_for(
    spent: Ledger, tmp_path: Path
) -> None:
    head = spent.head
    with open_dataset(tmp_path / "data") as dataset:
        with pytest.raises(BadInput, match="whole table"):
            claim(rows_of(dataset), spent)
        for force in (False, True):
            with pytest.raises(BadInput, match="whole table"):
                bind(rows_of(dataset), spent, reason="why", clients=dataset.clients, force=force)
    assert spent.head == head


def test_a_whole_table_is_refused_after_clients_paid(tmp_path: Path) -> None:
    ledger = a_ledger()
    ingest_rows(tmp_path / "data", ["a", "b", "c"])
    with open_dataset(tmp_path / "data") as dataset:
        claim(rows_of(dataset), ledger)
        vault = vault_on(dataset, ledger)
        spec = job_to_bytes(client_job(dataset))
        assert vault.consider(spec).accepted
        vault.answer(job_id(spec), 1, ask([0]))
    ingest_rows(tmp_path / "data")
    with open_dataset(tmp_path / "data") as dataset:
        with pytest.raises(BadInput, match="paid"):
            claim(rows_of(dataset), ledger)
        with pytest.raises(BadInput, match="paid"):
            bind(rows_of(dataset), ledger, reason="why", force=True)


# -- a client without admission ------------------------------------------------------------------


def test_a_client_for_whom_nothing_was_set_aside_declines_though_its_budget_is_free_again(
    tmp_path: Path,
) -> None:
    ingest_rows(tmp_path / "data", ["a", "b", "c"])
    with open_dataset(tmp_path / "data") as dataset:
        assert dataset.clients is not None
        ledger = a_ledger(5 * PRICE)
        vault = vault_on(dataset, ledger)
        poor = dataset.clients.accounts(ledger)[1]
        ledger.admit("an earlier job", units=5 * PRICE, account=poor)  # all that it has
        spec = job_to_bytes(client_job(dataset))
        assert vault.consider(spec).accepted
        assert (job_id(spec), poor) not in ledger.state.admitted
        ledger.close_job("an earlier job")
        assert ledger.free(poor) == 5 * PRICE
        for round_ in (1, 2):
            replies = vault.answer(job_id(spec), round_, ask([0, 1, 2], round_=round_))
            assert isinstance(replies, Replies)
            assert (list(replies.released), list(replies.declined)) == ([0, 2], [1])
        assert ledger.budget(poor).spent == 0


# -- tables at the start -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [COARSE_NAME, FINE_NAME])
@pytest.mark.parametrize("value", [0x01, 0x7F], ids=["other", "off the grid"])
def test_a_party_does_not_start_with_a_damaged_table(tmp_path: Path, name: str, value: int) -> None:
    ingest_rows(tmp_path / "data")
    path = tmp_path / "data" / name
    content = bytearray(path.read_bytes())
    content[4096 + 3] ^= value  # a high byte of the first column, which no header covers
    path.write_bytes(bytes(content))
    ledger = a_ledger()
    with pytest.raises(BadInput, match=r"damaged|grid"):
        start_party(tmp_path / "data", ledger)
    assert ledger.state.bound is None
