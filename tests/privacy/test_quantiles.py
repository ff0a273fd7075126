"""Private quantiles: exact counts, exact bisection, the price they are sold at, and its premise."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.audit import numeric_audit
from support.entropy import ScriptedNoise, ShakeNoise

from colonnade.core.arrays import AnyArray, Int32Array, IntArray
from colonnade.core.fixedpoint import FINE_GRID, Bounds, quantise
from colonnade.methods import bounds as quantiles
from colonnade.methods.bounds import LEVELS, STEPS, QuantilePlan, count_at_most, tight_bounds
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import NoiseSource

WIDE = Bounds(-100.0, 150.0)
ZERO = ScriptedNoise(0)
PLACES = st.integers(-FINE_GRID, FINE_GRID)
Draw = Callable[[np.random.Generator, int], AnyArray]
SHAPES: dict[str, Draw] = {
    "normal": lambda draw, n: draw.normal(size=n),
    "uniform": lambda draw, n: draw.uniform(size=n),
    "lognormal": lambda draw, n: draw.lognormal(size=n),
    "exponential": lambda draw, n: draw.exponential(size=n),
    "half zeros": lambda draw, n: draw.exponential(size=n) * (draw.random(n) < 0.5),
    "binary": lambda draw, n: (draw.random(n) < 0.3) * 1.0,
    "counts": lambda draw, n: draw.poisson(2.0, n) * 1.0,
    "clipped at both ends": lambda draw, n: draw.normal(0.0, 500.0, n),
}


def fine(shape: str, n_rows: int, *, bounds: Bounds = WIDE, seed: int = 1) -> Int32Array:
    return quantise(SHAPES[shape](np.random.default_rng(seed), n_rows), bounds, grid=FINE_GRID)


def answers(
    columns: Int32Array, plan: QuantilePlan, noise: NoiseSource = ZERO, *, units: int = RHO_UNIT
) -> list[bytes]:
    """Return the bodies of all steps."""
    bodies: list[bytes] = []
    for _ in range(plan.steps):
        counts = count_at_most(columns, plan.thresholds(bodies)).reshape(-1)
        bodies.append(plan.encode(plan.mechanism(units).perturb(counts, noise)))
    return bodies


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_rows", [1, 19, 20, 21, 4999])
def test_without_noise_the_cells_hold_the_quantiles(shape: str, n_rows: int) -> None:
    column = fine(shape, n_rows)
    plan = QuantilePlan(1, n_rows)
    cells = plan.result(answers(column.reshape(1, -1), plan))[0]
    for level, (low, high) in zip(LEVELS, cells, strict=True):
        exact = np.quantile(column, float(level), method="inverted_cdf")
        assert low < exact <= high
        assert high - low <= 2 * FINE_GRID // 2**STEPS + 1  # a millionth of the width


@pytest.mark.parametrize("shape", SHAPES)
def test_with_enough_steps_the_quantile_is_exact_to_a_place_of_the_grid(shape: str) -> None:
    column, levels = fine(shape, 777), (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10))
    plan = QuantilePlan(1, 777, 31, levels=levels)
    cells = plan.result(answers(column.reshape(1, -1), plan))[0]
    ordered = np.sort(column)
    for level, (low, high) in zip(levels, cells, strict=True):
        exact = ordered[math.ceil(level * 777) - 1]
        assert low < exact <= high <= low + 2


def test_with_noise_the_error_is_in_level_and_as_small_as_the_noise() -> None:
    n_rows, n_columns = 20_000, len(SHAPES)
    columns = np.stack([fine(shape, n_rows) for shape in SHAPES])
    plan = QuantilePlan(n_columns, n_rows)
    units = units_down(0.1)
    cells = plan.result(answers(columns, plan, ShakeNoise("levels"), units=units))
    # The end of a cell was a threshold whose noisy count lay on its side of level * n. A discrete
    # Gaussian passes z sigma with probability at most 2 exp(-z**2 / 2); over 320 draws z = 6.4
    # fails with probability below 1e-6. With the noise asked for that is 0.0128 of the rows.
    error = 6.4 * math.sqrt(plan.mechanism(units).sigma2) / n_rows
    assert error < 0.013
    for column, row in zip(columns, cells, strict=True):
        for level, (low, high) in zip(LEVELS, row, strict=True):
            assert (column <= low).mean() < level + error
            assert (column <= high).mean() >= level - error
    exact = plan.result(answers(columns, plan))
    assert (cells != exact).any()  # the noise did something


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    old=st.tuples(PLACES, PLACES),
    new=st.tuples(PLACES, PLACES),
    thresholds=st.lists(st.integers(-FINE_GRID - 1, FINE_GRID), min_size=4, max_size=4),
)
@example(
    seed=0, old=(-FINE_GRID,) * 2, new=(FINE_GRID,) * 2, thresholds=[0, 1, -FINE_GRID, FINE_GRID]
)
def test_replacing_a_row_moves_every_count_by_at_most_one_for_any_thresholds(
    seed: int, old: tuple[int, int], new: tuple[int, int], thresholds: list[int]
) -> None:
    columns = np.random.default_rng(seed).integers(-FINE_GRID, FINE_GRID, (2, 50), dtype=np.int32)
    other = columns.copy()
    columns[:, 17], other[:, 17] = old, new
    asked = np.array(thresholds, np.int32).reshape(2, 2)
    moved = np.abs(count_at_most(other, asked) - count_at_most(columns, asked))
    assert moved.max() <= 1
    assert (moved**2).sum() <= QuantilePlan(2, 50).mechanism(RHO_UNIT).l2_sensitivity2


def neighbours(plan: QuantilePlan) -> tuple[IntArray, IntArray]:
    """Return the counts of one step over two tables that differ in one row as much as they can."""
    draw = np.random.default_rng(3)
    low = draw.integers(-FINE_GRID, FINE_GRID, (plan.n_columns, plan.n_rows), dtype=np.int32)
    high = low.copy()
    low[:, 5], high[:, 5] = -FINE_GRID, FINE_GRID
    asked = plan.thresholds([])
    return count_at_most(low, asked).reshape(-1), count_at_most(high, asked).reshape(-1)


def test_a_step_reveals_no_more_than_it_costs() -> None:
    plan, rho = QuantilePlan(8, 300), 0.5
    mechanism = plan.mechanism(STEPS * units_down(rho))
    shown = numeric_audit(mechanism, neighbours(plan), ShakeNoise("step"))
    assert rho_from_units(mechanism.cost) == pytest.approx(rho)
    assert 0.5 * rho < shown <= rho  # the pair is the worst one: most of the loss can be shown


@pytest.mark.parametrize(
    "wrong", [DiscreteGaussian(4, 4), DiscreteGaussian(8, 8)], ids=["half the noise", "one level"]
)
def test_the_audit_catches_too_little_noise(wrong: DiscreteGaussian) -> None:
    plan, rho = QuantilePlan(8, 300), 0.5
    right = plan.mechanism(STEPS * units_down(rho))
    assert (right.sigma2, right.l2_sensitivity2) == (16, 16)
    assert wrong.cost == right.cost  # it claims the same
    assert numeric_audit(wrong, neighbours(plan), ShakeNoise("wrong")) > rho


@settings(max_examples=200)
@given(
    n_columns=st.integers(1, 2000),
    steps=st.integers(1, 31),
    units=st.integers(31, 8 * RHO_UNIT),
)
def test_the_price_is_the_formula_within_what_was_offered(
    n_columns: int, steps: int, units: int
) -> None:
    plan = QuantilePlan(n_columns, 1000, steps)
    mechanism = plan.mechanism(units)
    exact = Fraction(steps * 2 * n_columns, 2 * mechanism.sigma2)
    assert plan.price(mechanism) - steps < exact * RHO_UNIT <= plan.price(mechanism) <= units
    # What a resumed purchase relies on.
    assert plan.mechanism(plan.price(mechanism)) == mechanism


@pytest.mark.parametrize(("n_columns", "n_rows"), [(1, 200), (10, 10_000), (100, 10**6)])
def test_the_least_price_keeps_three_sigma_between_a_level_and_its_end(
    n_columns: int, n_rows: int
) -> None:
    plan = QuantilePlan(n_columns, n_rows)
    sigma = math.sqrt(plan.mechanism(plan.least_units).sigma2)
    assert 3 * sigma <= n_rows / 20
    cheaper = plan.mechanism(plan.least_units * 98 // 100)
    assert 3 * math.sqrt(cheaper.sigma2) > 0.99 * n_rows / 20


@settings(max_examples=200)
@given(
    n_rows=st.integers(1, 10**9),
    counts=st.lists(st.integers(-(2**40), 2**40), min_size=4, max_size=4),
)
def test_packing_keeps_size_and_every_decision(n_rows: int, counts: list[int]) -> None:
    plan = QuantilePlan(2, n_rows)
    noisy = np.array(counts, np.int64)
    body = plan.encode(noisy)
    assert len(body) == plan.n_bytes == -(-4 * n_rows.bit_length() // 8)
    read = plan.decode(body)
    inside = (noisy >= 0) & (noisy <= n_rows)
    assert (read.reshape(-1)[inside] == noisy[inside]).all()
    wanted = [math.ceil(level * n_rows) for level in LEVELS]
    assert ((read >= wanted) == (noisy.reshape(2, 2) >= wanted)).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 7, 16384, 16385, 100_001])
def test_counts_are_exact(n_rows: int, threads: int) -> None:
    draw = np.random.default_rng(n_rows)
    columns = draw.integers(-FINE_GRID, FINE_GRID + 1, (3, n_rows), dtype=np.int32)
    columns[0, :] //= 2**28  # many equal values, some at the threshold
    thresholds = np.array([[0, 1], [-FINE_GRID - 1, FINE_GRID], [5, -5]], np.int32)
    exact = (columns[:, None, :] <= thresholds[:, :, None]).sum(axis=2)
    assert count_at_most(columns, thresholds, threads=threads).tolist() == exact.tolist()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), n_rows=st.integers(1, 300))
def test_the_compiled_kernel_equals_its_python_function(seed: int, n_rows: int) -> None:
    draw = np.random.default_rng(seed)
    columns = draw.integers(-FINE_GRID, FINE_GRID + 1, (2, n_rows), dtype=np.int32)
    thresholds = draw.integers(-FINE_GRID, FINE_GRID + 1, (2, 3), dtype=np.int32)
    compiled, plain = np.zeros((2, 3), np.int64), np.zeros((2, 3), np.int64)
    kernel = quantiles._count_rows
    kernel(columns, thresholds, 0, n_rows, compiled)
    kernel.py_func(columns, thresholds, 0, n_rows, plain)  # type: ignore[attr-defined]
    assert compiled.tolist() == plain.tolist()


def test_other_types_and_shapes_are_refused() -> None:
    columns, thresholds = np.zeros((2, 5), np.int32), np.zeros((2, 2), np.int32)
    with pytest.raises(ValueError, match="int32"):
        count_at_most(columns.astype(np.int64), thresholds)
    with pytest.raises(ValueError, match="int32"):
        count_at_most(columns, thresholds * 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every column"):
        count_at_most(columns, thresholds[:1])
    for n_columns, n_rows, steps in [(0, 5, 9), (5, 0, 9), (5, 5, 0), (5, 5, 32)]:
        with pytest.raises(ValueError, match="quantiles need"):
            QuantilePlan(n_columns, n_rows, steps)
    half = Fraction(1, 2)
    for levels in [(), (half, half), (half, Fraction(1)), (Fraction(0),), (half, Fraction(1, 3))]:
        with pytest.raises(ValueError, match="levels"):
            QuantilePlan(1, 1, levels=levels)
    plan = QuantilePlan(1, 100)
    with pytest.raises(ValueError, match="bytes"):
        plan.thresholds([b""])
    with pytest.raises(ValueError, match="21 answers"):
        plan.result([bytes(plan.n_bytes)] * 21)
    with pytest.raises(ValueError, match="step"):
        tight_bounds([WIDE], plan, [bytes(plan.n_bytes)] * 19, 1)


def tight(column: Int32Array, bounds: Bounds = WIDE) -> Bounds:
    plan = QuantilePlan(1, column.size)
    return tight_bounds([bounds], plan, answers(column.reshape(1, -1), plan), 0)[0]


# Clipped shares from the quantiles of the distributions, widened by half their distance: beyond
# 3.29 sigma for the normal, 5 % point of the exponential 0.051 and 95 % point 2.996 give 4.468,
# and so on; ten rows of 20 000 either way are sampling.
@pytest.mark.parametrize(
    ("shape", "clipped", "width"),
    [
        ("normal", 0.0010, 6.58),
        ("uniform", 0.0, 1.8),
        ("lognormal", 0.0207, 9.97),
        ("exponential", 0.0115, 5.89),
        ("half zeros", 0.0158, 4.61),
        ("binary", 0.0, 2.0),
        ("counts", 0.0011, 10.0),
    ],
)
def test_few_rows_are_clipped_and_the_width_is_tight(
    shape: str, clipped: float, width: float
) -> None:
    values = SHAPES[shape](np.random.default_rng(1), 20_000)
    found = tight(quantise(values, WIDE, grid=FINE_GRID))
    share = ((values < found.low) | (values > found.high)).mean()
    # Standard errors of a share and of two sample quantiles, times five.
    assert share == pytest.approx(clipped, abs=5 * math.sqrt((clipped + 1e-4) / 20_000) + 1e-3)
    assert found.high - found.low == pytest.approx(width, rel=0.06)


@pytest.mark.parametrize("share", [0.0, 0.04])
def test_a_nearly_constant_column_keeps_its_declared_bounds(share: float) -> None:
    rare = np.zeros(1000, np.int32)
    rare[: int(1000 * share)] = FINE_GRID
    assert tight(rare) == WIDE


@pytest.mark.parametrize("share", [0.03, 0.04, 0.05, 0.06, 0.94, 0.95, 0.96])
def test_a_rare_flag_keeps_its_declared_bounds_whatever_the_noise(share: float) -> None:
    # Every threshold between 0 and 1 counts the same rows, and about a level's share of them. With
    # noise alone to decide, half of the flags of 4 % had a bound at 0.1, 0.2 or anywhere.
    declared, n_rows, columns = Bounds(0.0, 1.0), 8000, 20
    rows = np.arange(n_rows) < n_rows * share
    flags = np.tile(np.where(rows, FINE_GRID, -FINE_GRID).astype(np.int32), (columns, 1))
    plan = QuantilePlan(columns, n_rows)
    units = plan.least_units  # the most noise that is sold
    bodies = answers(flags, plan, ShakeNoise("flags"), units=units)
    found = tight_bounds([declared] * columns, plan, bodies, plan.mechanism(units).sigma2)
    assert found == (declared,) * columns


def test_declared_bounds_that_are_far_too_wide_are_still_tightened_under_noise() -> None:
    # Most of the later half of the bisection then lies beyond all rows, where counts are alike too.
    declared, n_rows = Bounds(0.0, 1e6), 8000
    draw = np.random.default_rng(2)
    visits = np.where(draw.random(n_rows) < 0.6, 0.0, draw.integers(1, 30, n_rows))
    plan = QuantilePlan(1, n_rows)
    units = 4 * plan.least_units
    column = quantise(visits, declared, grid=FINE_GRID).reshape(1, -1)
    bodies = answers(column, plan, ShakeNoise("visits"), units=units)
    (found,) = tight_bounds([declared], plan, bodies, plan.mechanism(units).sigma2)
    assert found.low == 0.0
    assert 30.0 < found.high < 60.0


def test_a_column_that_fills_its_bounds_keeps_exactly_them() -> None:
    for bounds in (Bounds(0.1, 0.7), Bounds(-1e120, 0.7e120), Bounds(-1e-120, 1.0)):
        assert tight(fine("clipped at both ends", 5000), bounds) == bounds


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    low=st.floats(-1e120, 1e120),
    width=st.floats(1e-91, 1e120),
    places=st.integers(0, 31),
)
def test_any_answers_give_valid_bounds_within_the_declared_ones(
    seed: int, low: float, width: float, places: int
) -> None:
    try:
        declared = Bounds(low, low + width)
    except ValueError:
        return
    draw = np.random.default_rng(seed)
    plan = QuantilePlan(3, 1000)
    # Random bytes, some of them agreeing at first so that cells are narrow.
    first = draw.bytes(plan.n_bytes)
    bodies = [first if step < places else draw.bytes(plan.n_bytes) for step in range(STEPS)]
    for found in tight_bounds([declared] * 3, plan, bodies, 100):
        assert declared.low <= found.low < found.high <= declared.high


def test_thresholds_depend_on_released_bytes_only_and_start_in_the_middle() -> None:
    plan = QuantilePlan(1, 1000)
    assert plan.thresholds([]).tolist() == [[-1, -1]]
    low = plan.encode(np.array([900, 900]))  # more than 5 % below, less than 95 % below
    assert plan.thresholds([low]).tolist() == [[-(FINE_GRID // 2) - 1, FINE_GRID // 2 - 1]]
    assert plan.result([low]).tolist() == [[[-FINE_GRID - 1, -1], [-1, FINE_GRID]]]
