"""The solvers' compiled loops equal their plain-Python twins and keep their bounds."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.solvers import sparse_of, toy

from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED
from colonnade.solvers.designs import column_kernels, lines, row_kernels, sparse
from colonnade.solvers.designs import dense as design
from colonnade.solvers.designs.column_kernels import TOP

KINDS = [0, 1, 2]
DATA = toy(60, 4, zeros=0.3)
SPARSE = sparse_of(DATA.design)
DENSE_ROWS, SPARSE_ROWS = DATA.design.by_rows(), SPARSE.by_rows()
MARGINS = np.random.default_rng(5).normal(0.0, 2.0, 60)
FACTOR = TOP / GRID / 1.5  # large enough that some rows are clipped


def twin(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return kernel.py_func  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("kind", KINDS)
def test_column_sums_equal_their_twins(kind: int) -> None:
    before, column = DATA.design.columns[2], DATA.design.columns[1]
    margins, again = MARGINS - 1e-5 * before, MARGINS - 1e-5 * before
    part = slice(int(SPARSE.starts[1]), int(SPARSE.starts[2]))
    places = SPARSE.values[part], SPARSE.indices[part]
    total = column_kernels.dense_gradient(kind, before, 1e-5, column, FACTOR, margins, DATA.sign)
    run = twin(column_kernels.dense_gradient)
    assert total == run(kind, before, 1e-5, column, FACTOR, again, DATA.sign)
    np.testing.assert_array_equal(margins, again)
    np.testing.assert_allclose(margins, MARGINS, rtol=1e-12)  # the last step is caught up with
    for kernel in (column_kernels.sparse_gradient, twin(column_kernels.sparse_gradient)):
        assert total == kernel(kind, *places, FACTOR, margins, DATA.sign)
    steep = np.empty(60)
    column_kernels.slopes(kind, margins, DATA.sign, steep)
    weighted = column_kernels.dense_weighted(column, FACTOR, steep)
    assert weighted == total == twin(column_kernels.dense_weighted)(column, FACTOR, steep)
    assert total == column_kernels.sparse_weighted(*places, FACTOR, steep)
    assert abs(int(total)) > TOP // 100


def test_other_column_kernels_equal_their_twins() -> None:
    residual = np.random.default_rng(1).integers(-GRID, GRID, 60).astype(np.int16)
    out, again = np.empty(4, np.int64), np.empty(4, np.int64)
    arguments = (SPARSE.values, SPARSE.indices, SPARSE.starts, residual)
    column_kernels.sparse_scores(*arguments, out)
    twin(column_kernels.sparse_scores)(*arguments, again)
    np.testing.assert_array_equal(out, again)
    np.testing.assert_array_equal(out, DATA.design.scores(residual))
    assert column_kernels.square_sum(residual) == int((residual.astype(object) ** 2).sum())
    moved, plain = MARGINS.copy(), MARGINS.copy()
    column_kernels.dense_shift(DATA.design.columns[0], 0.3, moved)
    twin(column_kernels.dense_shift)(DATA.design.columns[0], 0.3, plain)
    np.testing.assert_array_equal(moved, plain)
    SPARSE.shift(0, 0.3 * GRID, plain := MARGINS.copy())
    np.testing.assert_allclose(plain, moved, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clip", [0.05, 50.0])
@pytest.mark.parametrize("rows", [DENSE_ROWS, SPARSE_ROWS], ids=["dense", "sparse"])
def test_row_sums_equal_their_twins(kind: int, clip: float, rows: Any) -> None:
    table = (rows.values, rows.columns, rows.starts, rows.shared, rows.units)
    coef, batch = np.array([0.5, -1.0, 2.0, 0.1]), np.arange(0, 60, 3)
    alpha = 0.1 * DATA.sign

    def run(kernels: Callable[[Any], Any]) -> list[Any]:
        found = [np.zeros(4, np.int64) for _ in range(4)]
        weights = [np.empty(60), np.empty(20), np.empty(20)]
        kernels(row_kernels.gradient_rows)(kind, *table, batch, coef, DATA.sign, clip, found[0])
        kernels(row_kernels.proximal_rows)(
            kind, *table, coef, MARGINS / 9, DATA.sign, 2.0, clip, weights[0], found[1]
        )
        for one_by_one in (0, 1):
            kernels(row_kernels.dual_rows)(
                kind,
                *table,
                batch,
                np.full(4, 0.2),
                coef,
                alpha,
                DATA.sign,
                3.0,
                bool(one_by_one),
                0.7,
                clip,
                weights[1 + one_by_one],
                found[2 + one_by_one],
            )
        return [*found, *weights]

    for mine, theirs in zip(run(lambda k: k), run(twin), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
        assert np.abs(mine).max() > 0


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, 1e300, -1e300, TOP, -TOP, 0.9, -0.9])
def test_no_float_adds_more_than_the_bound_to_a_column_sum(x: float) -> None:
    one, zero = np.ones(1, np.int16), np.zeros(1)
    for total in (
        column_kernels.dense_gradient(0, one, 0.0, one, 1.0, np.array([x]), zero),
        column_kernels.dense_weighted(one, 1.0, np.array([x])),
        twin(column_kernels.dense_weighted)(one, 1.0, np.array([x])),
        column_kernels.sparse_weighted(one, np.zeros(1, np.int32), 1.0, np.array([x])),
    ):
        assert abs(int(total)) <= TOP
        if abs(x) < 1.0:
            assert total == 0  # towards zero
        elif not math.isnan(x):
            assert total == math.copysign(TOP, x)


@pytest.mark.parametrize("weight", [math.nan, math.inf, -math.inf, 1e300, -1e300, 1.0, 1e-9])
def test_no_float_adds_more_than_the_bound_to_a_row_sum(weight: float) -> None:
    draw = np.random.default_rng(8)
    for n_features in (1, 2, 7, 40):
        for _ in range(50):
            values = draw.integers(-GRID, GRID + 1, n_features).astype(np.int16)
            out, scratch = np.zeros(n_features, np.int64), np.empty(n_features, np.int64)
            where = np.arange(n_features, dtype=np.int32)
            units = np.full(n_features, 1.0 / GRID)
            used = row_kernels._add_row(values, where, units, weight, 0.3, scratch, out)
            assert sum(int(x) ** 2 for x in out) <= TOP**2
            assert math.isfinite(used)
            if weight == 1e300:  # the bound is used up, not missed by far
                assert sum(int(x) ** 2 for x in out) > 0.999 * TOP**2 or not values.any()


@pytest.mark.parametrize("unit", [1e-170, 1e-200])
def test_a_row_whose_norm_is_lost_in_floats_is_stopped_by_the_integers(unit: float) -> None:
    # Squares below 1e-308 are 0: the float norm then clips nothing, and only the check is left.
    values, where = np.full(3, GRID, np.int16), np.arange(3, dtype=np.int32)
    out, scratch = np.zeros(3, np.int64), np.empty(3, np.int64)
    units = np.full(3, unit / GRID)
    for add in (row_kernels._add_row, twin(row_kernels._add_row)):
        used = add(values, where, units, 1.0 / unit, 0.1, scratch, out)
        assert used == 0.0
        assert not out.any()


@pytest.mark.parametrize("times", [0.5, 1.01, 2.0, 100.0])
def test_a_long_row_is_scaled_down_and_not_dropped(times: float) -> None:
    values, where = np.array([3000, -4000], np.int16), np.arange(2, dtype=np.int32)
    out, scratch = np.zeros(2, np.int64), np.empty(2, np.int64)
    units = np.full(2, 1.0 / 5000)  # the row's norm is 1
    used = row_kernels._add_row(values, where, units, times * 0.3, 0.3, scratch, out)
    expected = min(times, 1.0)
    assert used == pytest.approx(0.3 * expected, rel=1e-9)
    np.testing.assert_allclose(out / TOP, [0.6 * expected, -0.8 * expected], rtol=1e-8)


def test_the_sigmoid_is_good_to_ten_digits() -> None:
    for x in np.linspace(-36.0, 36.0, 1001):
        exact = 1.0 / (1.0 + math.exp(-x))
        assert column_kernels.sigmoid(x) == pytest.approx(exact, rel=2e-10)
        assert column_kernels.sigmoid(x) == twin(column_kernels.sigmoid)(x)
    assert column_kernels.sigmoid(1e6) == pytest.approx(1.0)
    assert 0.0 <= column_kernels.sigmoid(-1e6) < 1e-15


@pytest.mark.parametrize("kind", KINDS)
def test_a_proximal_weight_satisfies_its_equation(kind: int) -> None:
    for margin in np.linspace(-4.0, 4.0, 33):
        for label in (-1.0, 1.0):
            t = row_kernels.proximal_weight(kind, margin, label, 2.0, 0.7)
            m = margin + 0.7 * t
            if kind == 2 and abs(label * m - 1.0) < 1e-9:  # at the corner any slope between will do
                assert -1e-9 <= t * label <= 2.0 + 1e-9
            else:
                assert t == pytest.approx(-2.0 * column_kernels.slope(kind, m, label), abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dual_step_minimises_its_part_of_the_dual(kind: int) -> None:
    def conjugate(b: float, label: float) -> float:
        """Return the conjugate at ``-a`` with ``b = label * a``."""
        if kind == 0:
            return 0.5 * b * b - b * label * label
        if not 0.0 <= b <= 1.0:
            return math.inf
        if kind == 2:
            return -b
        return sum(x * math.log(x) for x in (b, 1.0 - b) if x > 0.0)

    for margin in (-2.0, -0.3, 0.9, 3.0):
        for label in (-1.0, 1.0):
            for alpha in (0.0, 0.4 * label):

                def value(
                    z: float, at: float = alpha, m: float = margin, y: float = label
                ) -> float:
                    return conjugate(y * (at + z), y) + m * z + 0.5 * 1.3 * z * z

                found = row_kernels.dual_step(kind, alpha, margin, label, 1.3)
                rivals = [found + d for d in (-0.1, -1e-3, 1e-3, 0.1)]
                assert all(value(found) <= value(z) + 1e-9 for z in rivals)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_sweep_equals_its_twin(kind: int) -> None:
    def run(kernel: Callable[..., Any]) -> list[Any]:
        margins, u = np.zeros(60), np.zeros(4)
        kernel(
            kind,
            DATA.design.columns,
            DATA.design.units,
            np.full(4, 0.5),
            np.full(4, 0.7),
            np.array([1.0, 0.0, 2.0, 1.0]),
            np.array([0, 2, 1, 3]),
            1,
            np.arange(-5, 6) * TOP // 3,
            0.01,
            0.1,
            0.2,
            margins,
            DATA.sign,
            u,
        )
        return [margins, u]

    for mine, theirs in zip(
        run(column_kernels.sweep), run(twin(column_kernels.sweep)), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        assert np.abs(mine).max() > 0.0


STEEP = np.random.default_rng(7).normal(0.0, 1.0, 60)
ONE_ROW = DENSE_ROWS.values[:4], DENSE_ROWS.columns, DENSE_ROWS.units
# One call of every compiled function, also of those that others call: a twin of a caller runs
# them compiled.
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "sigmoid": (column_kernels.sigmoid, [(x,) for x in (-40.0, -3.0, 0.2, 5.0, math.inf)]),
    "slope": (
        column_kernels.slope,
        [(kind, m, y) for kind in KINDS for m in (-2.0, 0.3, 1.0, 4.0) for y in (-1.0, 1.0)],
    ),
    "truncate": (
        column_kernels.truncate,
        [(x,) for x in (0.9, -0.9, 1e300, -1e300, math.inf, math.nan, TOP - 0.5)],
    ),
    "slopes": (column_kernels.slopes, [(k, MARGINS, DATA.sign, np.empty(60)) for k in KINDS]),
    "sparse_shift": (
        column_kernels.sparse_shift,
        [(SPARSE.values[:9], SPARSE.indices[:9], 0.3, MARGINS.copy())],
    ),
    "sparse_weighted": (
        column_kernels.sparse_weighted,
        [(SPARSE.values[:9], SPARSE.indices[:9], FACTOR, STEEP)],
    ),
    "square_sum": (column_kernels.square_sum, [(DATA.design.columns[0],)]),
    "quantise_slopes": (
        column_kernels.quantise_slopes,
        [(np.append(STEEP, [math.nan, math.inf, -1e300]), 9e3, GRID, np.empty(63, np.int16))],
    ),
    "_add_row": (
        row_kernels._add_row,
        [
            (*ONE_ROW, weight, 0.3, np.empty(4, np.int64), np.ones(4, np.int64))
            for weight in (0.1, -5.0, 1e300, math.nan)
        ],
    ),
    "_norm2": (row_kernels._norm2, [ONE_ROW]),
    "_margin": (row_kernels._margin, [(*ONE_ROW, np.array([0.5, -1.0, 2.0, 0.1]))]),
    "_cut": (row_kernels._cut, [(SPARSE_ROWS.starts, 5, shared) for shared in (True, False)]),
    "_count": (sparse._count, [(SPARSE.indices, np.zeros(60, np.int64))]),
    "_rise": (lines._rise, [(SPARSE.indices, SPARSE.starts, count) for count in (60, 59)]),
    "_transpose": (
        sparse._transpose,
        [
            (
                *(SPARSE.values, SPARSE.indices, SPARSE.starts, SPARSE_ROWS.starts[:-1].copy()),
                *(np.zeros_like(SPARSE.values), np.zeros_like(SPARSE.indices)),
            )
        ],
    ),
    "_place": (
        sparse._place,
        [
            (
                *(SPARSE.values / 5000.0, SPARSE.indices, SPARSE.starts, np.full(4, 2.5)),
                *(False, to_rows, (SPARSE_ROWS if to_rows else SPARSE).starts[:-1].copy()),
                *(np.zeros_like(SPARSE.values), np.zeros_like(SPARSE.indices)),
            )
            for to_rows in (True, False)
        ],
    ),
    "margins_of_rows": (
        row_kernels.margins_of_rows,
        [
            (*rows.arrays, np.arange(0, 60, 3), np.array([0.5, -1.0, 2.0, 0.1]), np.empty(20))
            for rows in (DENSE_ROWS, SPARSE_ROWS)
        ],
    ),
    "norms2_of_rows": (
        row_kernels.norms2_of_rows,
        [(*rows.arrays, np.empty(60)) for rows in (DENSE_ROWS, SPARSE_ROWS)],
    ),
    "add_rows": (
        row_kernels.add_rows,
        [
            (*rows.arrays, np.arange(60), STEEP.copy(), 0.3, np.zeros(4, np.int64))
            for rows in (DENSE_ROWS, SPARSE_ROWS)
        ],
    ),
    "proximal_weight": (
        row_kernels.proximal_weight,
        [(kind, m, 1.0, 2.0, 0.7) for kind in KINDS for m in (-3.0, 0.5, 0.9, 2.0)],
    ),
    "dual_step": (
        row_kernels.dual_step,
        [(kind, 0.2, m, 1.0, c) for kind in KINDS for m in (-3.0, 0.9, 2.0) for c in (0.0, 1.3)],
    ),
}
ELSEWHERE = {
    *("dense_gradient", "dense_shift", "dense_weighted", "sparse_gradient", "sparse_scores"),
    *("sweep", "gradient_rows", "proximal_rows", "dual_rows"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_proximal_weight_solves_its_equation_however_long_the_step(kind: int) -> None:
    draw = np.random.default_rng(8)
    steep = [SQUARED, LOGISTIC, HINGE][kind].slope
    for gamma in (0.1, 5.0, 30.0, 200.0):
        for margin, norm2 in zip(
            draw.normal(0.0, 6.0, 40), draw.uniform(0.1, 1.0, 40), strict=True
        ):
            t = row_kernels.proximal_weight(kind, margin, 1.0, gamma, norm2)
            # -t / gamma is a subgradient at the new margin; a hinge has all of [-1, 0] in its kink.
            sides = margin + t * norm2 + np.array([-1e-9, 1e-9]) * gamma
            low, high = steep(sides, np.ones(2))
            assert low - 1e-6 <= -t / gamma <= high + 1e-6


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_compiled_function_equals_its_twin(name: str) -> None:
    kernel, calls = CALLS[name]
    for arguments in calls:
        mine, theirs = ([copy.copy(each) for each in arguments] for _ in range(2))
        found, expected = kernel(*mine), twin(kernel)(*theirs)
        if expected is None:
            assert any(isinstance(each, np.ndarray) for each in theirs)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        for one, two in zip(mine, theirs, strict=True):
            if isinstance(one, np.ndarray) and one.dtype != np.int64:
                np.testing.assert_allclose(one, two, rtol=1e-12)
            elif isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, two)


def test_every_compiled_function_has_its_twin_tested() -> None:
    compiled = {
        name
        for module in (column_kernels, row_kernels, design, sparse)
        for name, value in vars(module).items()
        if hasattr(value, "py_func")
    }
    assert len(compiled) > 20
    assert compiled <= {*CALLS} | ELSEWHERE | {"score"}  # the score kernel has tests of its own
