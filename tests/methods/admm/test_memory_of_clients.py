"""Memory for clients follows from who is asked, and that changes no number."""

from collections.abc import Sequence

import numpy as np
import pytest

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.admm import prox
from colonnade.methods.admm.prox import ClientRows, KeptProblems, factorise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.party.data.clients import TableClients
from colonnade.privacy.accounting import units_down
from colonnade.server.methods.admm.duals import SparseDuals
from colonnade.server.methods.admm.state import decode_state, encode_state, start_state

COUNT = 30
SPEC = AdmmSpec(
    n_clients=COUNT,
    n_features=3,
    rounds=2,
    sampled=5,
    release_units=units_down(0.5),
    gamma=2.0,
    lipschitz=1.0,
)


def clients() -> list[ClientRows]:
    draw = np.random.default_rng(0)
    found = []
    for number in range(COUNT):
        columns = draw.integers(-GRID, GRID + 1, (3, 1 + number % 6)).astype(np.int16)
        found.append(ClientRows(columns, columns[0]))
    return found


class Reader:
    """Says whose rows were read."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.clients = clients()

    def __call__(self, number: int) -> ClientRows:
        self.read.append(number)
        return self.clients[number]


def ask(problems: prox.Displacing, asked: Sequence[int]) -> IntArray:
    points = np.random.default_rng(len(asked)).integers(-(2**26), 2**26, (len(asked), 3))
    return problems.displacements(np.array(asked, np.int64), points)


@pytest.mark.parametrize("limit", [2**28, 500, 0])
def test_answers_do_not_depend_on_what_is_kept(limit: int) -> None:
    draw, whole = np.random.default_rng(1), factorise(clients(), SPEC)
    kept = KeptProblems(SPEC, COUNT, Reader(), limit)
    for _ in range(40):
        asked = draw.permutation(COUNT)[: draw.integers(0, 9)].tolist()
        assert np.array_equal(ask(kept, asked), ask(whole, asked))


def test_rows_are_read_of_who_is_asked_and_once_while_they_are_kept() -> None:
    reader = Reader()
    kept = KeptProblems(SPEC, COUNT, reader)
    ask(kept, [7, 3, 20])
    assert sorted(reader.read) == [3, 7, 20]
    ask(kept, [3, 20, 4])
    assert sorted(reader.read) == [3, 4, 7, 20]
    with pytest.raises(ValueError, match="not among"):
        ask(kept, [COUNT])


def test_what_is_kept_is_bounded() -> None:
    draw, kept = np.random.default_rng(2), KeptProblems(SPEC, COUNT, Reader(), 1000)
    most = max(factorise([each], SPEC).n_bytes for each in clients())
    for _ in range(40):
        ask(kept, draw.permutation(COUNT)[:4].tolist())
        assert sum(each.n_bytes for each in kept._segments) <= 1000 + 4 * most


def test_clients_factorised_in_parts_are_those_factorised_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = factorise(clients(), SPEC)
    monkeypatch.setattr(prox, "_TOGETHER", 7)
    parts = factorise(clients(), SPEC)
    for name in ("basis", "matrix", "vector", "means", "counts", "ranks", "places", "firsts"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name)), name


def test_duals_are_kept_of_those_who_answered() -> None:
    draw, sparse, dense = np.random.default_rng(3), SparseDuals.zero(50, 4), np.zeros((50, 4), int)
    for _ in range(20):
        before, asked = sparse.copy(), draw.permutation(50)[:3]
        old = np.asarray(before)
        dense[asked] = draw.integers(-5, 5, (3, 4))
        sparse.put(asked, dense[asked])
        assert np.array_equal(np.asarray(sparse), dense)
        assert np.array_equal(sparse.of(asked), dense[asked])
        assert np.array_equal(np.asarray(before), old)  # a copy goes its own way
        assert sparse.changed().tolist() == np.flatnonzero(dense.any(axis=1)).tolist()


def test_a_million_clients_begin_without_duals_in_memory_or_store() -> None:
    state = start_state(10**6, 100, bytes(32))
    body = encode_state(state)
    assert len(body) < 13 * 10**6
    state.u.put(np.array([999_999]), np.ones((1, 100), np.int64))
    found = decode_state(encode_state(state))
    assert found.u.changed().tolist() == [999_999]
    assert encode_state(found) == encode_state(state)


@pytest.mark.parametrize("other", [0, COUNT])
def test_a_state_with_a_dual_of_nobody_or_twice_is_refused(other: int) -> None:
    state = start_state(COUNT, 2, bytes(32))
    state.u.put(np.array([0, 1]), np.ones((2, 2), np.int64))
    body = encode_state(state)
    at = body.index(np.array([0, 1], "<u4").tobytes() + np.packbits(state.declined).tobytes())
    with pytest.raises(ValueError, match="twice"):
        decode_state(body[: at + 4] + np.array([other], "<u4").tobytes() + body[at + 8 :])


def test_a_state_that_an_earlier_version_wrote_is_read() -> None:
    state = start_state(COUNT, 2, bytes(range(32)))
    duals = np.zeros((COUNT, 2), np.int64)
    duals[[4, 9]] = [[1, -2], [0, 5]]
    state.u.put(np.array([4, 9]), duals[[4, 9]])
    new, dense = encode_state(state), duals.astype("<i8").tobytes()
    first = 8 + 28 + 32 + 8  # magic, seven numbers, a seed, two lengths, to which a third came
    facts = first + 4 + 3 * 4 * COUNT  # then the numbers of clients that have duals
    rest = facts + 2 * 4
    old = b"admm/4\0\0" + new[8:first] + new[first + 4 : facts] + new[rest : -2 * 16] + dense
    assert encode_state(decode_state(old)) == new


def test_where_a_clients_rows_are() -> None:
    rows = TableClients.of(("a", "b", "c"), (2, 1, 3)).rows()
    assert [*rows] == [slice(0, 2), slice(2, 3), slice(3, 6)]
    assert rows[1:] == [slice(2, 3), slice(3, 6)]
    with pytest.raises(IndexError):
        rows[3]
