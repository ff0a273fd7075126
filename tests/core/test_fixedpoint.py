import math
import operator

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from colonnade.core.arrays import FloatArray, Int32Array
from colonnade.core.fixedpoint import (
    FINE_GRID,
    GRID,
    Bounds,
    dequantise,
    grid_dtype,
    quantise,
)
from colonnade.data.requantise import quantise_both, requantise

LARGEST = 1e120
no_deadline = settings(deadline=None)  # a busy machine is no failure
GRIDS = st.sampled_from([GRID, FINE_GRID])
ANY_VALUES = arrays(np.float64, st.integers(1, 20), elements=st.floats(allow_nan=False))


@st.composite
def any_bounds(draw: st.DrawFn) -> Bounds:
    size = st.floats(1e-120, LARGEST)
    end = st.one_of(st.just(0.0), size, size.map(operator.neg))
    low, high = sorted((draw(end), draw(end)))
    assume(high / 2 - low / 2 >= 1e-90)
    return Bounds(low, high)


@st.composite
def usual_bounds(draw: st.DrawFn) -> Bounds:
    """Bounds whose width is not lost next to their size: 2**-10 of it or more."""
    half_width = draw(st.floats(1e-3, 1e6))
    middle = half_width * draw(st.floats(-(2.0**10), 2.0**10))
    return Bounds(middle - half_width, middle + half_width)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, 1.0),
        (2.0, 1.0),
        (-math.inf, 1.0),
        (0.0, math.inf),
        (math.nan, 1.0),
        (0.0, math.nan),
        (0.0, 5e-324),
        (-5e-324, 1.0),
        (0.0, 1e-91),
        (1.0, math.nextafter(1e120, math.inf)),
        (-1.7e308, 0.0),
    ],
)
def test_unusable_bounds_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=r"bounds|low"):
        Bounds(low, high)


WIDEST = Bounds(-LARGEST, LARGEST)
COARSER_THAN_FLOATS = Bounds(1e16, 1e16 + 2.0)  # its middle is no float


def test_middle_and_half_width_survive_the_largest_bounds() -> None:
    assert (WIDEST.middle, WIDEST.half_width) == (0.0, LARGEST)
    assert Bounds(LARGEST / 2.0, LARGEST).middle == 0.75 * LARGEST


def test_integers_beyond_the_grid_stand_for_the_bounds() -> None:
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    values = np.array([least, -FINE_GRID, FINE_GRID, most], dtype=np.int32)
    for bounds in (WIDEST, Bounds(0.0, LARGEST), Bounds(-3.0, 5.0)):
        ends = [bounds.low, bounds.low, bounds.high, bounds.high]
        assert dequantise(values, bounds, grid=FINE_GRID).tolist() == ends


@no_deadline
@given(ANY_VALUES, any_bounds(), GRIDS)
@example(np.array([1e16, 1e16 + 2.0]), COARSER_THAN_FLOATS, GRID)
@example(np.array([-np.inf, 1e308, np.inf]), WIDEST, FINE_GRID)
def test_no_float_leaves_the_grid(values: FloatArray, bounds: Bounds, grid: int) -> None:
    quantised = quantise(values, bounds, grid=grid)
    assert quantised.dtype == grid_dtype(grid)
    assert quantised.min() >= -grid
    assert quantised.max() <= grid


@no_deadline
@given(any_bounds(), GRIDS)
def test_values_beyond_the_bounds_count_as_the_bounds(bounds: Bounds, grid: int) -> None:
    beyond = np.array([-np.inf, -1.7e308, 1.7e308, np.inf])
    at = np.clip(beyond, bounds.low, bounds.high)
    assert (quantise(beyond, bounds, grid=grid) == quantise(at, bounds, grid=grid)).all()


@no_deadline
@given(usual_bounds(), GRIDS)
def test_ends_and_middle_map_to_the_grid_ends_and_zero(bounds: Bounds, grid: int) -> None:
    values = np.array([bounds.low, bounds.middle, bounds.high])
    # Bounds are good to 2**-52 of their size, 2**-42 of their width: 2**-12 steps of the fine grid.
    assert quantise(values, bounds, grid=grid).tolist() == [-grid, 0, grid]


def test_pinned_values() -> None:
    values = np.array([-5.0, 0.0, 2.5, 5.0, 7.5, 9.99999, 10.0, 11.0])
    expected = [-GRID, -GRID, -GRID // 2, 0, GRID // 2, GRID, GRID, GRID]
    assert quantise(values, Bounds(0.0, 10.0), grid=GRID).tolist() == expected


@no_deadline
@given(ANY_VALUES, any_bounds(), GRIDS)
def test_each_entry_depends_on_its_own_value_only(
    values: FloatArray, bounds: Bounds, grid: int
) -> None:
    concat = quantise(values, bounds, grid=grid)
    alone = [quantise(values[i : i + 1], bounds, grid=grid)[0] for i in range(values.size)]
    assert concat.tolist() == alone


@no_deadline
@given(ANY_VALUES, any_bounds(), GRIDS)
def test_order_is_kept(values: FloatArray, bounds: Bounds, grid: int) -> None:
    quantised = quantise(np.sort(values), bounds, grid=grid).astype(np.int64)
    assert (np.diff(quantised) >= 0).all()


@no_deadline
@given(st.data(), usual_bounds(), GRIDS)
def test_round_trip_errs_by_half_a_step(data: st.DataObject, bounds: Bounds, grid: int) -> None:
    values = data.draw(arrays(np.float64, 5, elements=st.floats(bounds.low, bounds.high)))
    back = dequantise(quantise(values, bounds, grid=grid), bounds, grid=grid)
    # Float rounding adds at most a few 2**-42 of the width, 1 % of a fine step (2**-30).
    assert np.abs(back - values).max() <= 0.51 * bounds.half_width / grid


@no_deadline
@given(st.data(), GRIDS)
def test_integers_survive_the_round_trip(data: st.DataObject, grid: int) -> None:
    integers = data.draw(arrays(np.int32, 5, elements=st.integers(-grid, grid)))
    bounds = data.draw(usual_bounds())
    back = quantise(dequantise(integers, bounds, grid=grid), bounds, grid=grid)
    assert back.tolist() == integers.tolist()


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        quantise(np.array([0.0, np.nan]), Bounds(0.0, 1.0), grid=GRID)


def test_other_grids_are_refused() -> None:
    with pytest.raises(ValueError, match="grid"):
        quantise(np.zeros(1), Bounds(0.0, 1.0), grid=2**15)


def test_values_given_are_left_unchanged() -> None:
    values = np.array([0.3, 7.0])
    quantise(values, Bounds(0.0, 1.0), grid=GRID)
    assert values.tolist() == [0.3, 7.0]


@no_deadline
@given(arrays(np.float64, st.integers(0, 40), elements=st.floats()), any_bounds(), st.data())
def test_one_pass_over_both_grids_is_quantising_on_each(
    values: FloatArray, bounds: Bounds, data: st.DataObject
) -> None:
    fill = data.draw(st.floats(bounds.low, bounds.high))
    both, missing = quantise_both(values, bounds, fill=fill), np.isnan(values)
    filled = np.where(missing, fill, values)
    assert np.array_equal(both.coarse, quantise(filled, bounds, grid=GRID))
    assert np.array_equal(both.fine, quantise(filled, bounds, grid=FINE_GRID))
    assert both.missing == missing.sum()
    assert both.clipped == ((values < bounds.low) | (values > bounds.high)).sum()
    with pytest.raises(ValueError, match="missing"):
        quantise_both(values, bounds, fill=math.nan)


@no_deadline
@given(arrays(np.int32, st.integers(1, 20)), any_bounds(), any_bounds())
def test_no_fine_integer_leaves_the_grid_when_quantised_again(
    fine: Int32Array, declared: Bounds, tight: Bounds
) -> None:
    coarse = requantise(fine, declared=declared, tight=tight)
    assert coarse.dtype == np.int16
    assert coarse.min() >= -GRID
    assert coarse.max() <= GRID


@no_deadline
@given(st.data())
def test_quantising_again_is_within_a_step_of_quantising_once(data: st.DataObject) -> None:
    declared = Bounds(-1000.0, 1000.0)
    tight = Bounds(data.draw(st.floats(-900.0, -1.0)), data.draw(st.floats(1.0, 900.0)))
    values = data.draw(arrays(np.float64, 20, elements=st.floats(-2000.0, 2000.0)))
    fine = quantise(values, declared, grid=FINE_GRID)
    again = requantise(fine, declared=declared, tight=tight).astype(np.int64)
    # A fine step is 1000 * 2**-30, at most 2**-7 of a coarse one here: rounding twice can tie.
    assert np.abs(again - quantise(values, tight, grid=GRID)).max() <= 1
