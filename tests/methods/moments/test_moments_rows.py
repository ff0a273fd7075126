"""What meets data in a moments job: no input of a coordinator raises a sensitivity."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit import numeric_audit
from support.entropy import ShakeNoise

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear import ball as ball_module
from colonnade.linear.ball import (
    BALL,
    DIAGONAL,
    INNER_SENSITIVITY2,
    MAX_COEF,
    MAX_OFFSET,
    OFF_DIAGONAL,
    TRIANGLE_SENSITIVITY2,
    UNIT,
    Projection,
    project,
    triangle,
)
from colonnade.linear.sums import moments_mechanism, sums
from colonnade.methods.moments import rows as rows_module
from colonnade.methods.moments.rows import (
    MAX_SKETCH,
    back_rows,
    inner_products,
    sketch_sensitivity2,
)
from colonnade.methods.moments.tasks import Task
from colonnade.privacy.accounting import rho_from_units, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.sketching.sparse import Sketch, SparseSketch

N_ROWS, DIM, RHO = 40, 16, 0.5
SKETCH = SparseSketch(b"m", N_ROWS, DIM)

# Honest sizes, the largest allowed, and anything between.
coefs = st.one_of(
    st.integers(-2 * UNIT, 2 * UNIT),
    st.integers(-MAX_COEF, MAX_COEF),
    st.sampled_from([0, UNIT, MAX_COEF, -MAX_COEF]),
)
offsets = st.one_of(
    st.integers(-UNIT * GRID, UNIT * GRID), st.sampled_from([0, MAX_OFFSET, -MAX_OFFSET])
)
entries = st.one_of(
    st.integers(-UNIT * GRID, UNIT * GRID), st.sampled_from([0, MAX_SKETCH, -MAX_SKETCH])
)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Int16Array, Int16Array, int]:
    """Return two tables of four columns that differ in one row, and that row."""
    make = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = draw(st.booleans())
    values = (
        make.choice([-GRID, 0, GRID], (4, N_ROWS))
        if ends
        else make.integers(-GRID, GRID + 1, (4, N_ROWS))
    )
    one = values.astype(np.int16)
    two, row = one.copy(), draw(st.integers(0, N_ROWS - 1))
    two[:, row] = draw(st.lists(st.integers(-GRID, GRID), min_size=4, max_size=4))
    return one, two, row


@st.composite
def projections(draw: st.DrawFn, *, columns: int = 4) -> Projection:
    outputs = draw(st.integers(1, 5))
    flat = draw(st.lists(coefs, min_size=outputs * columns, max_size=outputs * columns))
    offset = draw(st.lists(offsets, min_size=outputs, max_size=outputs))
    return Projection(np.array(flat).reshape(outputs, columns), np.array(offset))


def squared(values: IntArray) -> int:
    return sum(int(value) ** 2 for value in values.reshape(-1))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(pair=neighbours(), projection=projections(), labelled=st.booleans(), q=st.data())
def test_no_input_of_a_coordinator_raises_a_sensitivity(
    pair: tuple[Int16Array, Int16Array, int],
    projection: Projection,
    labelled: bool,
    q: st.DataObject,
) -> None:
    one, two, row = pair
    count = q.draw(st.integers(1, 3))
    flat = q.draw(st.lists(entries, min_size=count * DIM, max_size=count * DIM))
    sketches = np.array(flat).reshape(count, DIM)
    found = []
    for side in (one, two):
        made = (
            project(side[:3], side[3], projection) if labelled else project(side, None, projection)
        )
        assert int((made.astype(np.int64) ** 2).sum(axis=0).max()) <= BALL**2
        found.append(made)
    moved = np.flatnonzero((found[0] != found[1]).any(axis=0))
    assert set(moved.tolist()) <= {row}  # nothing of other rows depends on this one
    gram = triangle(found[1]) - triangle(found[0])
    assert squared(gram) <= TRIANGLE_SENSITIVITY2
    sketched = SKETCH.apply(found[1]) - SKETCH.apply(found[0])
    assert squared(sketched) <= sketch_sensitivity2(SKETCH)
    inner = [inner_products(side, sketches, SKETCH) for side in found]
    assert squared(inner[1] - inner[0]) <= INNER_SENSITIVITY2


@settings(max_examples=300, deadline=None)
@given(
    b=st.lists(st.integers(-GRID, GRID), min_size=3, max_size=3),
    c=st.lists(st.integers(-GRID, GRID), min_size=3, max_size=3),
)
def test_a_pair_of_rows_in_the_ball_moves_a_triangle_by_no_more_than_claimed(
    b: list[int], c: list[int]
) -> None:
    plain = Projection(UNIT * np.eye(3, dtype=np.int64), np.zeros(3, np.int64))
    sums = []
    for row in (b, c):
        made = project(np.array(row, np.int16).reshape(3, 1), None, plain)
        sums.append(triangle(made))
    assert squared(sums[1] - sums[0]) <= TRIANGLE_SENSITIVITY2


def axes(first: int, second: int, n_outputs: int = 2) -> tuple[Int16Array, Int16Array]:
    """Return rows of neighbours: one row lies along another axis."""
    sides = np.zeros((2, n_outputs, N_ROWS), np.int16)
    sides[0, first, 7] = BALL
    sides[1, second, 7] = BALL
    return sides[0], sides[1]


def opposite() -> tuple[Int16Array, Int16Array]:
    one = np.zeros((2, N_ROWS), np.int16)
    two = one.copy()
    one[0, 7], two[0, 7] = BALL, -BALL
    return one, two


def everywhere(sketch: Sketch) -> IntArray:
    """Return a sketch whose row 7 lies at the border of the ball."""
    sign = int(sketch.transpose(np.ones(DIM, np.int64), start=7, stop=8)[0])
    return np.full((1, DIM), sign * 2 * BALL * UNIT, np.int64)


def test_every_sensitivity_is_attained() -> None:
    one, two = axes(0, 1)
    assert squared(triangle(two) - triangle(one)) == TRIANGLE_SENSITIVITY2
    one, two = opposite()
    assert squared(SKETCH.apply(two) - SKETCH.apply(one)) == sketch_sensitivity2(SKETCH)
    inner = [inner_products(side, everywhere(SKETCH), SKETCH) for side in (one, two)]
    assert squared(inner[1] - inner[0]) == INNER_SENSITIVITY2


def test_the_weights_of_a_triangle_lie_just_below_the_root_of_two() -> None:
    # The proof needs 2 DIAGONAL**2 >= OFF_DIAGONAL**2: a pair above it would exceed the claim.
    assert 0 <= 2 * DIAGONAL**2 - OFF_DIAGONAL**2 <= 1


def test_rows_inside_the_ball_are_the_rounded_affine_map() -> None:
    draw = np.random.default_rng(3)
    features = draw.integers(-GRID, GRID + 1, (3, N_ROWS), dtype=np.int16)
    coef = draw.integers(-UNIT // 8, UNIT // 8, (2, 3))
    offset = draw.integers(-UNIT * 100, UNIT * 100, 2)
    made = project(features, None, Projection(coef, offset))
    exact = (coef @ features.astype(np.int64) + offset[:, None]) / UNIT
    assert np.all(np.abs(made - exact) <= 0.5)
    assert np.any(made)


def test_rows_outside_the_ball_keep_their_direction() -> None:
    features = np.array([[3000], [-4000]], np.int16)
    wide = Projection(100 * UNIT * np.eye(2, dtype=np.int64), np.zeros(2, np.int64))
    made = project(features, None, wide)[:, 0].astype(int)
    assert made.tolist() == [math.floor(0.6 * BALL), -math.floor(0.8 * BALL)]


def test_back_rows_are_the_transpose_in_the_ball() -> None:
    draw = np.random.default_rng(4)
    q = draw.integers(-BALL * UNIT // 4, BALL * UNIT // 4, (3, DIM))
    made = back_rows(q, SKETCH, start=5, stop=30)
    exact = np.stack([SKETCH.transpose(each)[5:30] for each in q]) / UNIT
    assert np.all(np.abs(made - exact) <= 0.5)


def test_products_and_triangles_do_not_depend_on_how_rows_are_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(5)
    features = draw.integers(-GRID, GRID + 1, (3, N_ROWS), dtype=np.int16)
    q = draw.integers(-BALL * UNIT, BALL * UNIT, (2, DIM))
    projection = Projection(draw.integers(-UNIT, UNIT, (2, 3)), np.zeros(2, np.int64))
    whole = project(features, None, projection)
    products = inner_products(whole, q, SKETCH)
    monkeypatch.setattr(ball_module, "CHUNK", 7)
    monkeypatch.setattr(rows_module, "CHUNK", 7)
    assert np.array_equal(project(features, None, projection), whole)
    assert np.array_equal(inner_products(whole, q, SKETCH), products)
    others = back_rows(q, SKETCH, start=0, stop=N_ROWS).astype(np.int64)
    assert products.tolist() == (whole.astype(np.int64) @ others.T).reshape(-1).tolist()


def test_a_compiled_ball_equals_its_plain_twin() -> None:
    draw = np.random.default_rng(6)
    sums = draw.integers(-(2**62), 2**62, (3, 50))
    sums[:, :25] >>= 26
    one, two = np.empty((3, 50), np.int16), np.empty((3, 50), np.int16)
    ball_module.into_ball(sums.copy(), one)
    ball_module.into_ball.py_func(sums.copy(), two)  # type: ignore[attr-defined]
    assert np.array_equal(one, two)


ONE, ZERO = np.ones((1, 1), np.int64), np.zeros(1, np.int64)


@pytest.mark.parametrize(
    ("coef", "offset"),
    [
        (ONE * (MAX_COEF + 1), ZERO),
        (ONE * -(2**63), ZERO),
        (ONE, ZERO + MAX_OFFSET + 1),
        (ONE, ZERO - MAX_OFFSET - 1),
        (ONE, np.zeros(2, np.int64)),
        (ONE[0], ZERO),
        (ONE.astype(np.float64), ZERO),
        (np.zeros((0, 1), np.int64), np.zeros(0, np.int64)),
        (np.zeros((1, 5000), np.int64), ZERO),
    ],
)
def test_a_projection_outside_its_bounds_is_refused(coef: IntArray, offset: IntArray) -> None:
    with pytest.raises(ValueError, match="projection"):
        Projection(coef, offset)


@pytest.mark.parametrize(
    "sketches", [ONE * (MAX_SKETCH + 1), ONE * -(2**63), ZERO, ONE.astype(np.float64)]
)
def test_sketches_outside_their_bounds_are_refused(sketches: IntArray) -> None:
    with pytest.raises(ValueError, match="sketch"):
        Task(1, sketches=sketches)


# -- audits: the worst pair of each release, at its price and at half its noise -----------------


def worst(kind: str) -> tuple[tuple[IntArray, IntArray], int]:
    """Return a worst pair of exact values, and the claimed squared sensitivity."""
    if kind == "gram":
        one, two = axes(0, 1)
        return (triangle(one), triangle(two)), TRIANGLE_SENSITIVITY2
    if kind == "means":
        ends = [np.full(2, end, np.int16) for end in (-GRID, GRID)]
        pair = [np.array(sums(end[:1]) + sums(end[1:]), np.int64) for end in ends]
        return (pair[0], pair[1]), moments_mechanism(2, units_down(RHO)).l2_sensitivity2
    one, two = opposite()
    if kind == "share":
        sketched = SKETCH.apply(one).reshape(-1), SKETCH.apply(two).reshape(-1)
        return sketched, sketch_sensitivity2(SKETCH)
    inner = [inner_products(side, everywhere(SKETCH), SKETCH) for side in (one, two)]
    return (inner[0], inner[1]), INNER_SENSITIVITY2


@pytest.mark.parametrize("kind", ["means", "gram", "share", "cross"])
def test_a_release_reveals_no_more_than_it_costs(kind: str) -> None:
    pair, sensitivity2 = worst(kind)
    right = DiscreteGaussian.within(units_down(RHO), l2_sensitivity2=sensitivity2)
    assert rho_from_units(right.cost) == pytest.approx(RHO)
    shown = numeric_audit(right, pair, ShakeNoise(kind))
    assert 0.5 * RHO < shown <= RHO  # the pair is the worst one: most of the loss can be shown


@pytest.mark.parametrize("kind", ["means", "gram", "share", "cross"])
def test_the_audit_catches_half_the_noise(kind: str) -> None:
    pair, sensitivity2 = worst(kind)
    right = DiscreteGaussian.within(units_down(RHO), l2_sensitivity2=sensitivity2)
    wrong = DiscreteGaussian(right.sigma2 // 4, sensitivity2 // 4)
    assert wrong.cost == pytest.approx(right.cost, rel=1e-3)  # it claims the same
    assert numeric_audit(wrong, pair, ShakeNoise("half " + kind)) > RHO


def test_the_audit_catches_a_triangle_with_weights_above_the_root_of_two() -> None:
    # With weight 2 instead of 41 / 29 off the diagonal, two rows that differ in one sign move the
    # triangle by more than the claim: twice its square.
    half = math.isqrt(BALL**2 // 2)
    sides = np.zeros((2, 2, N_ROWS), np.int16)
    sides[0, :, 7], sides[1, :, 7] = (half, half), (half, -half)
    pair = (triangle(sides[0]), triangle(sides[1]))
    right = DiscreteGaussian.within(units_down(RHO), l2_sensitivity2=TRIANGLE_SENSITIVITY2)
    assert numeric_audit(right, pair, ShakeNoise("weights")) <= RHO
    heavy = (pair[0] * 2 * DIAGONAL // OFF_DIAGONAL, pair[1] * 2 * DIAGONAL // OFF_DIAGONAL)
    assert numeric_audit(right, heavy, ShakeNoise("heavy")) > RHO
