"""Penalised solves, intervals and correlations: arithmetic on releases."""

import itertools

import numpy as np
import pytest
from support.vertical import planned

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.gram import (
    elastic_net,
    floored,
    lasso,
    lasso_path,
    onto_ball,
    ridge,
    within_ball,
    within_box,
)
from colonnade.linear.intervals import own_noise
from colonnade.linear.solutions import correlations
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.contribution import intervals_of
from colonnade.methods.moments.solver.scales import Scales, sums_of_squares
from colonnade.methods.moments.solver.steps import MomentsSolver
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import STRUCTURES, make
from colonnade.simulate.inprocess.moments import run
from colonnade.simulate.inprocess.vertical import Data, grid


def problem(seed: int = 0, size: int = 8) -> tuple[FloatArray, FloatArray]:
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((200, size)) + draw.standard_normal((200, 1))
    return X.T @ X / 200, draw.standard_normal(size)


def value(gram: FloatArray, target: FloatArray, x: FloatArray, l1: float = 0.0) -> float:
    return float(x @ gram @ x / 2 - target @ x + l1 * np.abs(x).sum())


def test_a_lasso_meets_its_optimality_conditions() -> None:
    gram, target = problem()
    for penalty in (0.01, 0.3):
        x = lasso(gram, target, penalty)
        slope = target - gram @ x
        active = x != 0.0
        assert active.sum() > 0
        assert np.allclose(slope[active], penalty * np.sign(x[active]), atol=1e-6)
        assert np.all(np.abs(slope[~active]) <= penalty + 1e-6)


def test_ridge_and_elastic_net_agree_where_they_meet() -> None:
    gram, target = problem()
    assert np.allclose(elastic_net(gram, target, l1=0.0, l2=0.2), ridge(gram, target, 0.2))
    assert np.allclose(elastic_net(gram, target, l1=0.1, l2=0.0), lasso(gram, target, 0.1))


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_no_point_of_the_ball_does_better(l1: float) -> None:
    gram, target = problem(1)
    x = within_ball(gram, target, 0.7, l1=l1)
    assert np.abs(x).sum() <= 0.7 + 1e-9
    best = value(gram, target, x, l1)
    draw = np.random.default_rng(2)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(200):
            other = onto_ball(x + scale * draw.standard_normal(x.size), 0.7)
            assert value(gram, target, other, l1) >= best - 1e-9


def test_a_wide_ball_is_least_squares_and_a_box_holds() -> None:
    gram, target = problem(2)
    assert np.allclose(within_ball(gram, target, 1e6), np.linalg.solve(gram, target), atol=1e-6)
    x = within_box(gram, target, np.zeros(8), np.full(8, 0.3))
    assert x.min() >= 0.0
    assert x.max() <= 0.3
    slope = target - gram @ x
    inside = (x > 1e-9) & (x < 0.3 - 1e-9)
    assert np.allclose(slope[inside], 0.0, atol=1e-6)
    assert np.all(slope[x <= 1e-9] <= 1e-6)
    assert np.all(slope[x >= 0.3 - 1e-9] >= -1e-6)
    with pytest.raises(ValueError, match="order"):
        within_box(gram, target, np.ones(8), np.zeros(8))
    with pytest.raises(ValueError, match="positive"):
        within_ball(gram, target, 0.0)


def test_a_path_begins_with_nothing_and_loses_no_fit() -> None:
    gram, target = problem(3)
    path = lasso_path(gram, target, count=12)
    assert not path.coefs[0].any()
    fits = [value(gram, target, coef) for coef in path.coefs]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(fits))
    assert np.all(np.diff(path.penalties) < 0.0)


def test_a_floor_raises_the_smallest_eigenvalues_only() -> None:
    matrix = np.diag([-1.0, 0.5, 2.0])
    assert np.allclose(floored(matrix, 0.1), np.diag([0.1, 0.5, 2.0]))


def test_correlations_have_ones_on_the_diagonal() -> None:
    gram, _ = problem(4)
    found = correlations(gram)
    assert np.allclose(np.diag(found), 1.0)
    assert np.abs(found).max() <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_intervals_cover_what_least_squares_would_find(structure: str) -> None:
    # 4 tables with 24 coefficients each. The errors of a table's coefficients go together, so 96
    # are worth about 30: at a true coverage of 0.95 fewer than 0.85 has probability under 0.03,
    # and the intervals are wider than that where parties have little in common.
    inside = []
    for seed in range(4):
        made = make(
            20_000, (6,) * 4, informative=5, correlation=0.4, seed=seed, structure=structure
        )
        data = made.data()
        spec = recommend(planned(data, 2.0)).spec
        state, _ = run(data, spec, SeededNoise(seed), job=f"cover {seed}")
        found = intervals_of(MomentsSolver(spec, ""), state)
        columns = np.vstack([data.columns, data.label]).astype(np.float64) / GRID
        exact = np.asarray(np.corrcoef(columns))
        truth = np.linalg.solve(exact[:-1, :-1], exact[:-1, -1])
        inside.append((found.low <= truth) & (truth <= found.high))
        assert np.all(found.error > 0.0)
        assert float(np.median(found.error)) < 0.5  # they say something
    assert np.mean(inside) > 0.85


def test_an_effect_is_for_a_deviation_of_its_column_however_wide_its_bounds_are() -> None:
    # A number a twentieth as wide as its bounds beside two classes: a party scales it by four times
    # its deviation. Two parties, of which the other has nothing in common with it.
    draw = np.random.default_rng(11)
    normal, classes = draw.normal(size=(2, 40_000)), draw.integers(0, 2, (2, 40_000))
    label = 0.5 * normal[0] + 0.25 * (2 * classes[0] - 1) + 0.8 * draw.normal(size=40_000)
    rows = np.vstack([0.05 * normal[0], 2.0 * classes - 1.0, 0.3 * normal[1]])
    data = Data(grid(rows), grid(label / 4.0), ((0, 1, 2), (3,)))
    spec = recommend(planned(data, 4.0)).spec
    state, _ = run(data, spec, SeededNoise(5), job="narrow")
    found = intervals_of(MomentsSolver(spec, ""), state)
    exact = np.asarray(np.corrcoef(np.vstack([data.columns, data.label]) / GRID))
    truth = np.linalg.solve(exact[:-1, :-1], exact[:-1, -1])
    assert truth[0] > 0.4
    # Scaled by the wider deviation it would be four times as large. Of four coefficients one is
    # off by more than four of its errors with probability below 0.001.
    assert np.all(np.abs(found.coef - truth) < 4.0 * found.error)
    assert found.error[0] < 0.2


def test_a_higher_level_makes_wider_intervals() -> None:
    data = make(5000, (3,) * 2, informative=2, correlation=0.3, seed=1).data()
    spec = recommend(planned(data, 2.0)).spec
    state, _ = run(data, spec, SeededNoise(1))
    solver = MomentsSolver(spec, "")
    narrow, wide = (intervals_of(solver, state, level=level) for level in (0.5, 0.99))
    assert np.all(wide.high - wide.low > narrow.high - narrow.low)
    assert np.array_equal(wide.coef, narrow.coef)
    with pytest.raises(ValueError, match="level"):
        intervals_of(solver, state, level=1.0)


def test_the_errors_of_a_party_alone_are_neither_too_small_nor_too_large() -> None:
    scores = []
    for seed in range(8):
        data = make(4000, (10,), informative=4, correlation=0.3, seed=seed).data()
        spec = recommend(planned(data, 1.0)).spec
        state, _ = run(data, spec, SeededNoise(seed), job=f"alone {seed}")
        found = intervals_of(MomentsSolver(spec, ""), state)
        # In the data's own units: released deviations err, and the Gram matrix makes up for it.
        scales = Scales.of(spec, state.bodies)
        unit = scales.label_deviation / scales.features["p0"].deviation
        columns = np.vstack([data.columns, np.full(4000, GRID)]).T / GRID
        truth = np.linalg.lstsq(columns, data.label / GRID, rcond=None)[0][:-1]
        scores.append((found.coef * unit - truth) / (found.error * unit))
    # 80 scores, worth about 40: the root mean square of as many normal ones errs by 0.11. The rows
    # at hand are the population here, so the sampling part of the error makes scores smaller.
    assert 0.6 < float(np.sqrt(np.mean(np.square(scores)))) < 1.3


def test_the_error_of_own_moments_is_that_of_drawn_noise() -> None:
    draw, size, count = np.random.default_rng(0), 4, 40_000
    coef = np.array([1.0, -0.5, 0.25, 2.0])
    noise = np.triu(0.2 * draw.standard_normal((count, size, size)), 1)
    noise = noise + noise.transpose(0, 2, 1)
    noise[:, range(size), range(size)] = 0.3 * draw.standard_normal((count, size))
    moved = 0.5 * draw.standard_normal((count, size)) - noise @ coef
    # An entry's standard error is below sqrt(2 / 40000) times the largest variance, 0.8: 5 of them.
    own = own_noise(coef, diagonal=0.3, off=0.2, target=0.5)
    assert np.allclose(moved.T @ moved / count, own, atol=0.03)


@pytest.mark.parametrize("largest", [1, 1 << 20, 3 << 29, 1 << 31, 1 << 62, -(1 << 63)])
def test_squares_are_summed_exactly_however_large(largest: int) -> None:
    # Sums of floats depend on their order, and products of 64-bit integers wrap around.
    row = np.array([largest, largest // 3, -7, 5], np.int64)
    assert sums_of_squares(row[None]) == [sum(value * value for value in row.tolist())]
