"""Rows of a sealed job: no table, map or sign moves them further than is charged."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.linear.ball import BALL
from colonnade.methods.sealed import rows as rows_module
from colonnade.methods.sealed.ring import MAX_SMALL
from colonnade.methods.sealed.rows import (
    SHIELD_UNIT,
    RowScale,
    shield_from_bytes,
    shield_to_bytes,
    signs,
)


def in_ball(make: np.random.Generator, columns: int, count: int, *, edge: bool) -> Int16Array:
    """Return integer rows within the ball, on its edge or anywhere."""
    rows = make.standard_normal((columns, count))
    size = np.ones(count) if edge else make.uniform(0, 1, count)
    scaled: Int16Array = np.trunc(rows / np.sqrt((rows**2).sum(axis=0)) * size * BALL).astype(
        np.int16
    )
    return scaled


@st.composite
def cases(draw: st.DrawFn) -> tuple[RowScale, Int16Array, Int16Array]:
    """Return a scale and two tables within the ball that differ in one row."""
    columns, buckets = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    n_rows = draw(st.integers(1, 40))
    summed = n_rows > buckets
    ball = draw(st.integers(BALL // 4, 8 * BALL)) if summed else BALL
    scale = RowScale(n_rows, buckets, columns, ball, draw(st.integers(1, 200)))
    make = np.random.default_rng(draw(st.integers(0, 2**32)))
    one = in_ball(make, columns, n_rows, edge=draw(st.booleans()))
    two = one.copy()
    row = draw(st.integers(0, n_rows - 1))
    two[:, row] = (
        -one[:, row] if draw(st.booleans()) else in_ball(make, columns, 1, edge=True)[:, 0]
    )
    return scale, one, two


def squared(values: IntArray) -> int:
    return max(sum(int(v) ** 2 for v in column) for column in values.T)


@settings(max_examples=300)
@given(cases())
def test_norm_and_move_are_bounded_for_every_pair_of_tables(
    case: tuple[RowScale, Int16Array, Int16Array],
) -> None:
    scale, one, two = case
    first, second = scale.steps(one, b"seed"), scale.steps(two, b"seed")
    assert squared(first) <= scale.radius2
    assert scale.radius2 < MAX_SMALL**2
    moved = first - second
    assert int(np.count_nonzero(moved.any(axis=0))) <= 1  # a replaced row is in one bucket
    assert squared(moved) <= scale.move2


def most_apart(distance: int, scale: RowScale) -> tuple[int, int]:
    """Return two numbers so far apart whose stored and scaled values are furthest apart."""
    starts = np.arange(-scale.ball // 8, scale.ball // 8)
    both = np.stack([starts, starts + distance])
    units = shield_from_bytes(shield_to_bytes(both), 2)
    steps = np.rint(units * (scale.radius / scale.ball))
    start = int(starts[int((steps[1] - steps[0]).argmax())])
    return start, start + distance


@pytest.mark.parametrize(("columns", "balls", "radius"), [(12, 3, 301), (6, 3, 334)])
def test_rounding_shielded_buckets_is_part_of_the_move(
    columns: int, balls: int, radius: int
) -> None:
    # The noise that makes rounding to units and rounding to steps move every number furthest.
    scale = RowScale(50, 50, columns, balls * BALL, radius, shield=True)
    distance = math.isqrt(4 * BALL**2 // columns)  # of a row that crosses its ball, in a column
    distance -= (distance - 1) % SHIELD_UNIT
    noisy = np.tile(most_apart(distance, scale), (columns, 1))
    steps = scale.scaled(shield_from_bytes(shield_to_bytes(noisy), columns))
    moved = squared(steps[:, :1] - steps[:, 1:])
    assert columns * distance**2 <= 4 * BALL**2
    assert replace(scale, shield=False, n_rows=51).move2 < moved  # more than rows alone
    assert moved <= scale.move2


@pytest.mark.parametrize(("n_rows", "ball"), [(40, BALL), (400, 2 * BALL)])
def test_the_bounds_are_nearly_reached(n_rows: int, ball: int) -> None:
    # So that a bound that is half of the right one would be noticed.
    scale = RowScale(n_rows, 40, 3, ball, 100)
    make = np.random.default_rng(3)
    moves, norms = [], []
    for _ in range(300):
        one = in_ball(make, 3, n_rows, edge=True)
        if scale.summed:
            one[:, 40:] = 0  # a row alone in its bucket, so that the ball does not hold it back
        two = one.copy()
        two[:, 7] = -one[:, 7]
        first = scale.steps(one, b"s")
        norms.append(squared(first))
        moves.append(squared(first - scale.steps(two, b"s")))
    assert max(moves) > 0.9 * scale.move2
    if not scale.summed:
        assert max(norms) > 0.95 * scale.radius2


def test_rounding_is_to_nearest_and_the_ball_scales() -> None:
    scale = RowScale(4, 4, 2, BALL, 10)
    rows = np.array([[BALL, BALL // 20 + 1, -BALL // 20 - 1, 0], [0, 0, 0, 0]], np.int16)
    assert scale.steps(rows, b"")[0].tolist() == [10, 1, -1, 0]
    wide = RowScale(4, 1, 2, BALL, 10)
    heap = np.full((2, 4), BALL // 2, np.int16) * signs(b"", 4).astype(np.int16)
    assert wide.steps(heap, b"")[:, 0].tolist() == [7, 7]  # the ball's edge on the diagonal


def test_buckets_are_signed_sums_that_keep_products_on_average() -> None:
    make = np.random.default_rng(2)
    rows = make.integers(-500, 501, (2, 5000)).astype(np.int16)
    rows[1] = rows[0]
    scale = RowScale(5000, 1000, 2, 16 * BALL, 400)
    unit = scale.radius / scale.ball
    products = []
    for seed in range(60):
        steps = scale.steps(rows, b"%d" % seed) / unit
        products.append(float(steps[0] @ steps[1]))
    exact = float((rows[0].astype(float) ** 2).sum())
    # A sketch of 1000 buckets errs by sqrt(2 / 1000) of a squared norm; the mean of 60 by 0.6 %;
    # steps of 655 units, rounded, add a twelfth of their square for each bucket (2 and 3 % more).
    extra = 1000 / 12 / unit**2
    assert np.mean(products) == pytest.approx(exact + extra, rel=0.025)


def test_signs_are_balanced_and_follow_from_the_seed() -> None:
    found = signs(b"a", 10_001)
    assert set(found.tolist()) == {-1, 1}
    assert abs(int(found.sum())) < 6 * math.sqrt(10_001)
    assert np.array_equal(found, signs(b"a", 10_001))
    assert not np.array_equal(found, signs(b"b", 10_001))
    assert np.array_equal(found[:500], signs(b"a", 500))


def test_the_kernels_agree_with_their_plain_twins() -> None:
    make = np.random.default_rng(8)
    sums = make.integers(-(2**30), 2**30, (5, 50)) // make.choice([1, 100, 10**5], 50)
    fast, slow = np.empty_like(sums), np.empty_like(sums)
    rows_module._into_steps(sums, 3 * BALL, 77, 10_000, fast)
    for i in range(sums.shape[1]):  # in Python's own integers
        norm2 = sum(int(v) ** 2 for v in sums[:, i])
        length = max(math.isqrt(norm2 - 1) + 1 if norm2 else 0, 3 * BALL)
        slow[:, i] = [(2 * int(v) * 77 + length) // (2 * length) for v in sums[:, i]]
    # A value half way between two steps may go either way; none is here.
    assert np.array_equal(fast, slow)


def test_a_row_that_breaks_the_norm_would_be_dropped() -> None:
    sums = np.full((3, 2), 10_000, np.int64)
    out = np.empty_like(sums)
    rows_module._into_steps(sums, BALL, 100, 5, out)  # no row has so small a norm
    assert not out.any()


@pytest.mark.parametrize(
    "changes",
    [{"radius": 0}, {"radius": 600}, {"ball": BALL + 1}, {"n_rows": 0}, {"columns": 0}],
)
def test_an_impossible_scale_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"positive|steps|ball"):
        replace(RowScale(10, 10, 2, BALL, 10), **changes)  # type: ignore[arg-type]


def test_a_bucket_that_could_overflow_is_refused() -> None:
    with pytest.raises(ValueError, match="bucket"):
        RowScale(2**20, 2, 2, BALL, 10)
