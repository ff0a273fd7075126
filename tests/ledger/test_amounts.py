"""Tables of amounts by account say what dictionaries would, in a few bytes a client."""

import hashlib
import tracemalloc

import numpy as np
import pytest

from colonnade.ledger.rules import amounts
from colonnade.ledger.rules.amounts import Admissions, Amounts, ClientNames
from colonnade.ledger.rules.spending import admit, close
from colonnade.ledger.state import LedgerState

OTHERS = ["", "alignments", "0" * 31, "A" * 32, "g" * 32, " " * 32, "ab " * 10 + "ab"]


def account(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:32]


@pytest.mark.parametrize("different", [3, 200, 1000, 100_000])
def test_amounts_are_those_of_dictionaries(different: int) -> None:
    draw, names = np.random.default_rng(different), ClientNames()
    known = [*OTHERS, *map(account, range(3000))]
    tables = [(Amounts(names), dict[str, int]()) for _ in range(2)]
    for _ in range(20_000):
        table, model = tables[draw.integers(2)]
        name, units = known[draw.integers(len(known))], int(draw.integers(different)) << 50
        table[name] = model[name] = units
    for table, model in tables:
        assert table == model
        assert len(table) == len(model) == len([*table])
        assert next(iter(table)) == next(iter(model))
        for name in known:
            assert table.get(name) == model.get(name)
            assert (name in table) == (name in model)
    assert len(names) == len({each for table, _ in tables for each in table} - {*OTHERS})


def test_values_that_nobody_has_any_more_are_forgotten() -> None:
    names, clients = ClientNames(), [*map(account, range(50))]
    table = Amounts(names)
    for units in range(5000):
        table[clients[units % 50]] = units
    assert len(table._coded.values) <= amounts._MANY_VALUES
    assert table._coded.codes.itemsize == 1
    assert dict(table) == {clients[units % 50]: units for units in range(4950, 5000)}


def test_a_client_that_nobody_named_has_no_place() -> None:
    names = ClientNames()
    table, other = Amounts(names), Amounts(names)
    assert account(1) not in table
    table[account(1)] = 5
    assert account(1) not in other
    assert account(2) not in table
    with pytest.raises(KeyError):
        other[account(1)]
    assert len(names) == 1  # asking takes no place


def test_admissions_are_by_job_and_account() -> None:
    found = Admissions(ClientNames())
    found["a", ""] = 3
    found["b", account(1)] = 4
    assert found == {("a", ""): 3, ("b", account(1)): 4}
    assert found.get(("a", account(1))) is None
    assert ("c", "") not in found
    assert found.accounts() == {"", account(1)}


@pytest.mark.slow
def test_a_client_that_is_admitted_takes_few_tens_of_bytes() -> None:
    count, state = 40_000, LedgerState()
    state.caps[""] = 2**60
    groups = ([*map(account, range(at, at + 1000))] for at in range(0, count, 1000))
    tracemalloc.start()
    try:
        for group in groups:
            admit(state, "job", group, 2**50, "2026-11")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 50 * count
    assert len(state.left["job"]) == len(state.reserved) == len(state.admitted) == count
    close(state, "job")
    assert {*state.reserved.values()} == {0}
