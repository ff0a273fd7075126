"""Matching, rows and estimates, compared with dictionaries and sets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import SMALL, members, prepared

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.spec import CANARIES, NO_ROW, AlignmentSpec, Extension, Mode
from colonnade.methods.alignment.union import Overlap, Tags, match, pattern_counts, place

SEED = bytes(32)
LISTS = st.lists(st.sets(st.binary(min_size=16, max_size=16), min_size=1), min_size=2, max_size=4)


def tags_of(each: list[bytes]) -> Tags:
    return np.frombuffer(b"".join(each), np.uint8).reshape(-1, 16)


def spec_of(n_parties: int, mode: Mode = Mode.UNION, n_old: int = 0) -> AlignmentSpec:
    extends = Extension(bytes(32), n_old) if n_old else None
    lists = [range(1)] * n_parties
    people = members(lists)
    spec = prepared(people, mode=mode, chunk=100).spec
    return AlignmentSpec(spec.salt, spec.parts, mode, spec.ids, SMALL, 100, extends)


@given(LISTS)
def test_matching_is_that_of_sets(sets: list[set[bytes]]) -> None:
    lists = [sorted(each, reverse=True) for each in sets]
    matching = match([tags_of(each) for each in lists])
    ordered = sorted(set().union(*sets))
    assert matching.size == len(ordered)
    for each, mine in zip(lists, matching.places, strict=True):
        assert [ordered[at] for at in mine] == each
    patterns = [sum((tag in s) << k for k, s in enumerate(sets)) for tag in ordered]
    assert matching.patterns.tolist() == patterns
    counts, n = Counter(patterns), len(sets)
    assert pattern_counts(matching, n).tolist() == [counts[p] for p in range(1, 1 << n)]


def test_tags_that_differ_in_any_byte_are_different() -> None:
    tags = [bytes(16), *(bytes(k) + b"\1" + bytes(15 - k) for k in range(16))]
    assert match([tags_of(tags), tags_of(tags[::-1])]).size == 17


def test_equal_tags_in_one_list_are_refused() -> None:
    with pytest.raises(BadMessage):
        match([tags_of([b"a" * 16, b"b" * 16, b"a" * 16]), tags_of([b"c" * 16])])


@given(LISTS, st.sampled_from(Mode), st.integers(0, 5))
def test_rows_are_used_as_the_mode_says_and_nobody_shares_one(
    sets: list[set[bytes]], mode: Mode, phantoms: int
) -> None:
    lists = [sorted(each) for each in sets]
    matching = match([tags_of(each) for each in lists])
    placed = place(matching, spec_of(len(sets), mode), seed=SEED, phantoms=phantoms)
    rows = {
        tag: int(row)
        for each, mine in zip(lists, placed.rows, strict=True)
        for tag, row in zip(each, mine, strict=True)
    }
    assert len(set(rows.values())) == len(rows)
    assert placed.n_rows == len(rows) + phantoms
    wanted = {
        Mode.UNION: set().union(*sets),
        Mode.LEFT: sets[0],
        Mode.INNER: set.intersection(*sets),
    }[mode]
    assert {tag for tag, row in rows.items() if row < placed.kept} == wanted
    assert placed.kept == len(wanted) + (phantoms if mode is Mode.UNION else 0)


def test_the_order_is_drawn_from_the_seed_and_not_from_the_tags() -> None:
    tags = tags_of([bytes([k]) * 16 for k in range(200)])
    matching = match([tags, tags])
    one, again, other = (
        place(matching, spec_of(2), seed=seed, phantoms=3).rows[0]
        for seed in (SEED, SEED, b"\1" * 32)
    )
    assert (one == again).all()
    assert (one != other).any()
    # Spearman's correlation of a random order with the tags' has deviation 1/sqrt(199) = 0.07.
    assert abs(float(np.corrcoef(np.arange(200), one)[0, 1])) < 0.4


def claim(*rows: int) -> np.ndarray:
    return np.array(rows, np.uint32)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ((claim(5, NO_ROW), claim(NO_ROW, NO_ROW)), "does not have"),
        ((claim(1, NO_ROW), claim(2, NO_ROW)), "different rows"),
        ((claim(1, 1), claim(NO_ROW, NO_ROW)), "two people"),
        ((claim(1, NO_ROW), claim(NO_ROW, 1)), "two people"),
    ],
)
def test_claims_that_cannot_all_be_true_are_refused(
    claims: tuple[np.ndarray, np.ndarray], why: str
) -> None:
    tags = tags_of([b"a" * 16, b"b" * 16])
    with pytest.raises(BadMessage, match=why):
        place(match([tags, tags]), spec_of(2, n_old=5), seed=SEED, phantoms=0, old_rows=claims)


def test_old_rows_stay_and_new_ones_follow() -> None:
    tags = tags_of([b"a" * 16, b"b" * 16, b"c" * 16])
    old = (claim(4, NO_ROW, NO_ROW), claim(NO_ROW, 0, NO_ROW))
    placed = place(match([tags, tags]), spec_of(2, n_old=5), seed=SEED, phantoms=2, old_rows=old)
    assert placed.rows[0].tolist()[:2] == placed.rows[1].tolist()[:2] == [4, 0]
    assert 5 <= int(placed.rows[0][2]) < placed.n_rows == placed.kept == 8


def test_estimates_leave_out_dummies_and_canaries() -> None:
    spec = spec_of(3)
    people = np.array([10, 20, 30, 40, 50, 60, 70])
    pairs = np.array([p.bit_count() == 2 for p in range(1, 8)])
    counted = people + SMALL.shift + CANARIES * pairs
    overlap = Overlap.of(counted, np.zeros(7, np.int64), spec)
    assert overlap.counts == tuple(people)
    assert overlap.at_all(0) == 10 + 30 + 50 + 70
    assert overlap.at_all(0, 2) == 50 + 70
    assert Overlap.of(counted, np.full(7, -3), spec).at_all(0, 1, 2) == 67
    later = spec_of(3, n_old=9)
    twice = people + 2 * (SMALL.shift + CANARIES * pairs)
    assert Overlap.of(twice, np.zeros(7, np.int64), later).counts == tuple(people)
