"""Polynomials of a sealed job: products, packing, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sealed import dot, negacyclic

from colonnade.methods.sealed import ring
from colonnade.methods.sealed.packing import (
    HIGH_FIELD,
    HIGH_STEP,
    LOW_FIELD,
    LOW_STEP,
    Layout,
    numbers,
    pack,
    packed_bytes,
    unpack,
)
from colonnade.methods.sealed.ring import (
    DEGREE,
    MAX_SMALL,
    MODULUS,
    add,
    add_products,
    reversed_at,
    subtract,
    times,
)

pytest.importorskip("seal")
from colonnade.methods.sealed.ring import dot as inner_products
from colonnade.methods.sealed.ring import seal_ring

MAKE = np.random.default_rng(5)
LAYOUTS = [
    Layout(3000, 3),
    Layout(2000, 4, lanes=3),
    Layout(5000, 1, lanes=4),
    Layout(1000, 11),
    Layout(1000, 11, groups=2),
    Layout(1000, 7, lanes=2, groups=3),
    Layout(100, 1),
]


def polynomials(count: int) -> list[np.ndarray]:
    return [MAKE.integers(0, MODULUS, DEGREE) for _ in range(count)]


def test_the_modulus_is_a_prime_with_a_transform_and_fits_its_bits() -> None:
    assert MODULUS % (2 * DEGREE) == 1
    assert MODULUS < 2**54
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):  # decides primality below 2**64
        assert _probably_prime(base)


def _probably_prime(base: int) -> bool:
    odd, twos = MODULUS - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    x = pow(base, odd, MODULUS)
    return x in (1, MODULUS - 1) or any(
        pow(base, odd << i, MODULUS) == MODULUS - 1 for i in range(twos)
    )


def test_products_are_those_of_the_ring() -> None:
    one, two, three, four = polynomials(4)
    v, w = (MAKE.integers(1 - MAX_SMALL, MAX_SMALL, DEGREE) for _ in range(2))
    found = times(seal_ring(), seal_ring().forward(np.stack([one, two])), v)
    assert np.array_equal(found[0], negacyclic(one, v))
    assert np.array_equal(found[1], negacyclic(two, v))
    first, second = dot([(one, two), (three, four)], [v, w])
    assert np.array_equal(first, add(negacyclic(one, v), negacyclic(three, w)))
    assert np.array_equal(second, add(negacyclic(two, v), negacyclic(four, w)))


def test_sums_of_products_are_exact_however_many_and_however_large() -> None:
    count, parts = 600, 2  # more than are summed before a reduction
    tables = np.full((count, parts, DEGREE), MODULUS - 1, np.uint64)
    factors = np.full((count, DEGREE), MODULUS - 1, np.uint64)
    tables[:, 1, 5:] = MAKE.integers(0, MODULUS, (count, DEGREE - 5))
    factors[:, 5:] = MAKE.integers(0, MODULUS, (count, DEGREE - 5))
    out = np.full((parts, DEGREE), MODULUS - 1, np.uint64)
    add_products(tables, factors, out)
    for part, place in ((0, 0), (1, 4), (1, 5), (1, DEGREE - 1), (0, 600)):
        both = zip(tables[:, part, place].tolist(), factors[:, place].tolist(), strict=True)
        assert int(out[part, place]) == (MODULUS - 1 + sum(a * b for a, b in both)) % MODULUS


@pytest.mark.parametrize("count", [1, 2, 3])
def test_transforms_come_back_and_zeros_are_no_exception(count: int) -> None:
    table = np.zeros((count, DEGREE), np.int64)
    values = seal_ring().forward(table)
    assert not values.any()
    assert not seal_ring().inverse(values).any()
    table[-1] = polynomials(1)[0]
    assert np.array_equal(seal_ring().inverse(seal_ring().forward(table)), table)


@pytest.mark.parametrize("place", [None, 0, 1, DEGREE - 1])
def test_multipliers_of_zeros_or_of_one_row_are_no_exception(place: int | None) -> None:
    # SEAL itself raises one for a multiplier of zeros: whether a party's rows are all 0 would show.
    small = np.zeros(DEGREE, np.int64)
    if place is not None:
        small[place] = -1
    (one,) = polynomials(1)
    zero = np.zeros(DEGREE, np.int64)
    values = seal_ring().forward(np.stack([one, zero]))  # and a peer may send zeros
    product, nothing = times(seal_ring(), values, small)
    assert np.array_equal(product, negacyclic(one, small))
    assert not nothing.any()
    first, second = dot([(one, one), (one, one)], [small, small])
    assert np.array_equal(first, add(negacyclic(one, small), negacyclic(one, small)))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_wanted_coefficients_are_the_products_of_columns(layout: Layout) -> None:
    rows = MAKE.integers(-300, 301, (layout.columns, layout.rows))
    others = MAKE.integers(-50, 51, (5, layout.rows))
    others[2] = 0
    raw = []
    for group in layout.messages(rows):
        assert not group[0].any()  # the public key's
        pairs = [(each, each) for each in group[1:]]
        products = (dot(pairs, list(smalls))[0] for smalls in layout.multipliers(others))
        raw += [product[layout.wanted] for product in products]
    assert len(raw) == layout.replies(5)
    assert np.array_equal(layout.products(np.stack(raw), 5), others @ rows.T)


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_wanted_coefficients_without_transforms_are_those_of_the_ring(layout: Layout) -> None:
    bodies = np.stack(polynomials(layout.chunks))
    others = MAKE.integers(1 - MAX_SMALL, MAX_SMALL, (5, layout.rows))
    pairs = [(each, each) for each in bodies]
    expected = [dot(pairs, list(smalls))[0][layout.wanted] for smalls in layout.multipliers(others)]
    sums = inner_products(others, layout.blocks(bodies))
    assert np.array_equal(layout.joined(sums), np.stack(expected))


def test_inner_products_are_exact_however_long_and_however_large() -> None:
    rows = (1 << 18) + 5000  # sums of all together would exceed the modulus
    small, large = (np.full((1, rows), MAX_SMALL - 1), np.full((3, rows), MODULUS - 1))
    large[1], large[2] = -(MODULUS - 1), MAKE.integers(0, MODULUS, rows)
    exact = [sum(column) * (MAX_SMALL - 1) % MODULUS for column in large.tolist()]
    assert inner_products(small, large).tolist() == [exact]


def test_coefficients_at_places_are_those_of_a_product() -> None:
    (one,), small = polynomials(1), MAKE.integers(1 - MAX_SMALL, MAX_SMALL, DEGREE)
    places = np.array([0, 1, 777, DEGREE - 1])
    expected = [negacyclic(one, small)[places].tolist()]
    assert inner_products(small[None, :], reversed_at(one, places)).tolist() == expected
    assert inner_products(reversed_at(small, places), one[None, :]).T.tolist() == expected


def test_another_library_with_another_order_of_values_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is expanded would be other polynomials there than here.
    monkeypatch.setattr(ring, "_ORDER", "0" * 64)
    with pytest.raises(ImportError, match="another transform"):
        ring.SealRing()


@given(
    st.integers(-(LOW_FIELD // 2), LOW_FIELD // 2 - 1),
    st.integers(1 - HIGH_FIELD // 2, HIGH_FIELD // 2 - 1),
    st.integers(-(LOW_STEP // 2), LOW_STEP // 2 - 1),
)
def test_both_numbers_of_a_coefficient_come_back(low: int, high: int, error: int) -> None:
    raw = (LOW_STEP * low + HIGH_STEP * high + error) % MODULUS
    found = numbers(np.array([raw]))
    assert (int(found[0][0]), int(found[1][0])) == (low, high)


@given(st.lists(st.integers(0, MODULUS - 1), max_size=9))
def test_packed_coefficients_come_back_and_have_the_predicted_size(values: list[int]) -> None:
    body = pack(np.array(values, np.int64))
    assert len(body) == packed_bytes(len(values)) == -(-54 * len(values) // 8)
    assert unpack(body, len(values)).tolist() == values


def test_coefficients_outside_the_ring_and_other_sizes_are_refused() -> None:
    body = pack(np.array([1, MODULUS - 1, 7]))
    with pytest.raises(ValueError, match="bytes"):
        unpack(body[:-1], 3)
    with pytest.raises(ValueError, match="bytes"):
        unpack(body + b"\0", 3)
    with pytest.raises(ValueError, match="modulus"):
        unpack(pack(np.array([1, MODULUS, 7])), 3)
    with pytest.raises(ValueError, match="modulus"):
        unpack(pack(np.array([1, 2**54 - 1, 7])), 3)
    with pytest.raises(ValueError, match="not zero"):
        unpack(body[:-1] + bytes([body[-1] | 0x80]), 3)


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_bodies_hold_every_polynomial_once_and_fit_a_message(layout: Layout) -> None:
    held = [
        (group, index) for group, first, last in layout.bodies() for index in range(first, last)
    ]
    assert held == [(g, i) for g in range(layout.groups) for i in range(1 + layout.chunks)]
    assert max(layout.sealed_bytes()) <= 3 << 20


def test_a_large_table_is_cut_into_several_bodies() -> None:
    layout = Layout(1 << 16, 24)
    assert [last - first for _, first, last in layout.bodies()] == [113, 81]
    assert sum(layout.sealed_bytes()) == 2 * 96 + 194 * 27648


def test_sums_and_differences_stay_in_the_ring() -> None:
    edge = np.array([0, 1, MODULUS - 1])
    assert add(edge, edge[::-1].copy()).tolist() == [MODULUS - 1, 2, MODULUS - 1]
    assert subtract(edge, np.array([1, 1, 1])).tolist() == [MODULUS - 1, 0, MODULUS - 2]
