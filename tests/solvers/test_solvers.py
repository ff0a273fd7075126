"""Every solver without noise finds the optimum that scikit-learn finds, and says what it cannot."""

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear, minimize
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from support.solvers import Toy, resolved, sparse_of, toy

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import (
    Penalty,
    box,
    elastic_net,
    lasso,
    no_penalty,
    ridge,
)
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.defaults import with_defaults
from colonnade.solvers.designs.dense import DenseDesign, dense_design
from colonnade.solvers.iteration import (
    EVERYTHING,
    TRAIL_LENGTH,
    Block,
    Direct,
    Diverged,
    Noiseless,
    Release,
    Trail,
    iterate,
)
from colonnade.solvers.problem import Problem, plain
from colonnade.solvers.registry import SOLVERS, Solver, Unsuitable
from colonnade.solvers.solve import make_plan, solve

WIDE = 16.0  # a threshold that clips nothing here
PRIMAL: list[Solver] = [
    CoordinateDescent(passes=80, clip=WIDE),
    CoordinateDescent(passes=80, clip=WIDE, squares="bounds"),
    CoordinateDescent(passes=160, clip=WIDE, order="random", average_every=40),
    StochasticDescent(passes=600, batch_size="full", clip=WIDE, step=1.0),
    Admm(iterations=500, gamma=4.0, clip=WIDE),
]
SMOOTH: list[Solver] = [*PRIMAL, GreedyDescent(iterations=500, clip=WIDE)]
DUAL: list[Solver] = [
    DualDescent(epochs=200, batch_size=8, clip=WIDE),
    DualDescent(epochs=200, batch_size=8, clip=WIDE, noisy_alpha=True),
    DualDescent(epochs=100, batch_size=8, clip=WIDE, sequential=True),
]
TOY = toy()


def fit(
    solver: Solver, loss: Loss, penalty: Penalty, *, data: Toy = TOY, sparse: bool = False
) -> FloatArray:
    design = sparse_of(data.design) if sparse else data.design
    solver = resolved(solver, loss)
    return solve(
        plain(loss, penalty, data.design.shape[1]),
        design,
        data.target if loss is SQUARED else data.sign,
        solver,
        plan=make_plan(solver, design.shape, epsilon=1.0, delta=1e-6, enforced=True),
        release=Noiseless(),
        sampler=SeededNoise(1),
    )


@pytest.mark.parametrize("solver", PRIMAL, ids=repr)
def test_without_noise_the_lasso_is_scikit_learns(solver: Solver) -> None:
    reference = Lasso(alpha=0.01, fit_intercept=False, tol=1e-14, max_iter=10**5)
    reference.fit(TOY.X, TOY.target)
    assert np.count_nonzero(reference.coef_) < 5
    np.testing.assert_allclose(fit(solver, SQUARED, lasso(0.01)), reference.coef_, atol=1e-6)


@pytest.mark.parametrize("solver", PRIMAL, ids=repr)
def test_without_noise_the_elastic_net_is_scikit_learns(solver: Solver) -> None:
    reference = ElasticNet(alpha=0.02, l1_ratio=0.3, fit_intercept=False, tol=1e-14)
    reference.fit(TOY.X, TOY.target)
    mine = fit(solver, SQUARED, elastic_net(0.02, 0.3))
    np.testing.assert_allclose(mine, reference.coef_, atol=1e-6)


@pytest.mark.parametrize("solver", [*SMOOTH, *DUAL], ids=repr)
def test_without_noise_ridge_is_scikit_learns(solver: Solver) -> None:
    reference = Ridge(alpha=0.05 * 500, fit_intercept=False, tol=1e-14).fit(TOY.X, TOY.target)
    np.testing.assert_allclose(fit(solver, SQUARED, ridge(0.05)), reference.coef_, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*SMOOTH, *DUAL], ids=repr)
def test_without_noise_logistic_regression_is_scikit_learns(solver: Solver) -> None:
    reference = LogisticRegression(C=1.0 / (0.1 * 500), fit_intercept=False, tol=1e-12)
    reference.fit(TOY.X, TOY.sign)
    np.testing.assert_allclose(fit(solver, LOGISTIC, ridge(0.1)), reference.coef_[0], atol=1e-6)


@pytest.mark.parametrize(
    ("solver", "tolerance"),
    [
        (Admm(iterations=4000, gamma=16.0, clip=WIDE), 1e-6),
        (DualDescent(epochs=3000, batch_size=500, clip=WIDE, sequential=True), 1e-6),
        # A constant subgradient step ends in a ball: the objective is what comes close.
        (StochasticDescent(passes=3000, batch_size="full", clip=WIDE, step=0.005), 1e-2),
    ],
    ids=repr,
)
def test_without_noise_the_hinge_loss_reaches_scikit_learns_optimum(
    solver: Solver, tolerance: float
) -> None:
    reference = LinearSVC(C=1.0 / (0.1 * 500), loss="hinge", fit_intercept=False, tol=1e-10)
    reference.set_params(max_iter=10**6, random_state=0)
    reference.fit(TOY.X, TOY.sign)
    problem = plain(HINGE, ridge(0.1), 5)
    mine = fit(solver, HINGE, ridge(0.1))
    best = problem.objective(reference.coef_[0], TOY.X @ reference.coef_[0], TOY.sign)
    assert problem.objective(mine, TOY.X @ mine, TOY.sign) <= best * (1.0 + tolerance)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("solver", PRIMAL, ids=repr)
def test_without_noise_sparse_logistic_regression_is_scikit_learns(
    solver: Solver, l1_ratio: float
) -> None:
    reference = LogisticRegression(
        C=1.0 / (0.05 * 500), l1_ratio=l1_ratio, solver="saga", fit_intercept=False, random_state=0
    )
    reference.set_params(tol=1e-12, max_iter=10**5).fit(TOY.X, TOY.sign)
    assert np.count_nonzero(reference.coef_) < 5
    mine = fit(solver, LOGISTIC, elastic_net(0.05, l1_ratio))
    np.testing.assert_allclose(mine, reference.coef_[0], atol=1e-5)


@pytest.mark.parametrize("solver", PRIMAL, ids=repr)
def test_without_noise_a_box_is_scipys(solver: Solver) -> None:
    reference = lsq_linear(TOY.X, TOY.target, bounds=(-0.25, 0.25), tol=1e-14)
    mine = fit(solver, SQUARED, box(0.25))
    np.testing.assert_allclose(mine, reference.x, atol=1e-6)
    assert np.abs(mine).max() == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize("penalty", [Penalty(0.01, 0.1, 0.6), box(0.6)], ids=["all", "box"])
@pytest.mark.parametrize("solver", PRIMAL, ids=repr)
def test_without_noise_logistic_regression_in_a_box_is_scipys(
    solver: Solver, penalty: Penalty
) -> None:
    # The l1 part is smooth on either half line: w = a - b with a, b >= 0 and l1 (a + b).
    problem = plain(LOGISTIC, Penalty(0.0, penalty.l2), 5)

    def value(halves: FloatArray) -> float:
        w = halves[:5] - halves[5:]
        return problem.objective(w, TOY.X @ w, TOY.sign) + penalty.l1 * float(halves.sum())

    reference = minimize(
        value, np.zeros(10), bounds=[(0.0, 0.6)] * 10, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    expected = reference.x[:5] - reference.x[5:]
    # The reference differentiates by differences: good to about 1e-5.
    np.testing.assert_allclose(fit(solver, LOGISTIC, penalty), expected, atol=1e-4)
    assert np.abs(expected).max() == pytest.approx(0.6, abs=1e-4)


@pytest.mark.parametrize(
    "penalty", [lasso(0.02), Penalty(0.02, 0.0, 0.5)], ids=["l1", "l1 in a box"]
)
def test_without_noise_the_hinge_loss_with_an_l1_penalty_is_a_linear_programs(
    penalty: Penalty,
) -> None:
    # min mean(s) + l1 (a + b) over s >= 1 - y X (a - b), all of them >= 0, a and b in the box.
    rows = TOY.sign[:, None] * TOY.X
    most = penalty.bound if math.isfinite(penalty.bound) else None
    found = linprog(
        np.concatenate([np.full(500, 1 / 500), np.full(10, penalty.l1)]),
        A_ub=np.hstack([-np.eye(500), -rows, rows]),
        b_ub=-np.ones(500),
        bounds=[(0.0, None)] * 500 + [(0.0, most)] * 10,
    )
    problem = plain(HINGE, penalty, 5)
    mine = fit(Admm(iterations=6000, gamma=16.0, clip=WIDE), HINGE, penalty)
    value = problem.objective(mine, TOY.X @ mine, TOY.sign)
    assert value == pytest.approx(found.fun, rel=1e-5)


def test_without_noise_frank_wolfe_approaches_the_lasso_of_its_radius() -> None:
    # The open-loop step converges like 2 C / (k + 2) in the objective, C <= (2 radius)**2 times
    # the largest eigenvalue of X'X / n, about 0.4: 3000 steps leave less than 1e-3.
    reference = Lasso(alpha=0.02, fit_intercept=False, tol=1e-14).fit(TOY.X, TOY.target)
    radius = float(np.abs(reference.coef_).sum())
    mine = fit(FrankWolfe(radius=radius, iterations=3000, clip=4.0), SQUARED, no_penalty())
    assert np.abs(mine).sum() <= radius * (1.0 + 1e-12)
    problem = plain(SQUARED, no_penalty(), 5)
    gap = problem.objective(mine, TOY.X @ mine, TOY.target)
    gap -= problem.objective(reference.coef_, TOY.X @ reference.coef_, TOY.target)
    assert -1e-9 < gap < 1e-3


def test_a_sampled_batch_averages_to_the_full_gradient() -> None:
    # 4000 noiseless steps with batches of a fifth; the last iterates scatter around the optimum
    # with a deviation of about step * slope / sqrt(batch), below 0.02 here.
    reference = Ridge(alpha=0.05 * 500, fit_intercept=False).fit(TOY.X, TOY.target)
    solver = StochasticDescent(passes=800, batch_size=100, clip=WIDE, step=0.2)
    mine = fit(solver, SQUARED, ridge(0.05))
    np.testing.assert_allclose(mine, reference.coef_, atol=0.02)


@pytest.mark.parametrize(
    "solver",
    [
        CoordinateDescent(passes=3),
        GreedyDescent(iterations=6),
        StochasticDescent(passes=3, batch_size=50),
        FrankWolfe(iterations=6),
        Admm(iterations=4),
        DualDescent(epochs=2, batch_size=64),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_a_sparse_table_gives_the_same_model_as_a_dense_one(solver: Solver, loss: Loss) -> None:
    data = toy(zeros=0.6)
    penalty = no_penalty() if isinstance(solver, FrankWolfe) else ridge(0.1)
    dense = fit(solver, loss, penalty, data=data)
    np.testing.assert_allclose(fit(solver, loss, penalty, data=data, sparse=True), dense, rtol=1e-6)
    assert np.abs(dense).max() > 0.01


@pytest.mark.parametrize("name", SOLVERS)
def test_a_table_by_rows_gives_the_same_model_and_rows_without_a_copy(name: str) -> None:
    columns, units = TOY.design.columns, TOY.design.units
    solver = with_defaults(SOLVERS[name](), SQUARED, TOY.design.shape, epsilon=1.0, delta=1e-6)
    by_rows = DenseDesign(np.asfortranarray(columns), units)
    penalty = no_penalty() if name == "frank_wolfe" else ridge(0.1)
    problem = plain(SQUARED, penalty, units.size)
    plan = make_plan(solver, by_rows.shape, epsilon=1.0, delta=1e-6)
    first, second = (
        solve(
            problem,
            design,
            TOY.target,
            solver,
            plan=plan,
            release=Noiseless(),
            sampler=SeededNoise(0),
        )
        for design in (TOY.design, by_rows)
    )
    np.testing.assert_array_equal(first, second)
    assert first.any()
    assert np.shares_memory(by_rows.by_rows().values, by_rows.columns)
    assert not np.shares_memory(TOY.design.by_rows().values, columns)


def test_values_are_quantised_alike_in_pieces_and_in_both_orders() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(40_000, 3))  # more rows than are quantised at once
    bounds = [Bounds(-1.0, 1.0), Bounds(-2.0, 3.0), Bounds(0.0, 1.0)]
    whole = np.stack([quantise(X[:, j], bounds[j], grid=GRID) for j in range(3)])
    for row_wise in (False, True):
        design = dense_design(X, bounds, intercept=True, row_wise=row_wise)
        np.testing.assert_array_equal(design.columns[:3], whole)
        assert (design.columns[3] == GRID).all()
        assert design.columns.flags.f_contiguous == row_wise


@pytest.mark.parametrize(
    ("solver", "problem", "word"),
    [
        (CoordinateDescent(passes=1), plain(HINGE, ridge(1.0), 2), "hinge"),
        (GreedyDescent(), plain(HINGE, ridge(1.0), 2), "hinge"),
        (GreedyDescent(), plain(SQUARED, lasso(1.0), 2), "l1"),
        (FrankWolfe(), plain(HINGE, no_penalty(), 2), "smooth"),
        (FrankWolfe(), plain(SQUARED, ridge(1.0), 2), "radius"),
        (DualDescent(), plain(SQUARED, no_penalty(), 2), "l2"),
        (DualDescent(), plain(SQUARED, lasso(1.0), 2), "l1"),
        (DualDescent(), plain(SQUARED, Penalty(l2=1.0, bound=1.0), 2), "box"),
        (DualDescent(), Problem(SQUARED, ridge(1.0), np.array([1.0, 0.0])), "intercept"),
        (DualDescent(), plain(HINGE, lasso(1.0), 2), "'sgd' or 'admm'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    solver: Solver, problem: Problem, word: str
) -> None:
    data = toy(20, 2)
    plan = make_plan(solver, data.design.shape, epsilon=1.0, delta=1e-6, enforced=True)
    with pytest.raises(Unsuitable, match=word):
        solve(problem, data.design, data.sign, solver, plan=plan, release=Noiseless())


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("cd", {"passes": 0}),
        ("cd", {"clip": -0.1}),
        ("cd", {"clip": math.inf}),
        ("cd", {"order": "greedy"}),
        ("cd", {"squares": "exact"}),
        ("gcd", {"iterations": 0}),
        ("gcd", {"squares": "exact"}),
        ("sgd", {"batch_size": 0}),
        ("sgd", {"batch_size": "half"}),
        ("cd", {"seed": -1}),
        ("sgd", {"step": 0.0}),
        ("frank_wolfe", {"radius": math.nan}),
        ("admm", {"relaxation": 1.0}),
        ("admm", {"gamma": -1.0}),
        ("dual", {"norm": -1.0}),
        ("dual", {"batch_size": 0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, setting: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        SOLVERS[name](**setting)


def plain_problem(name: str, loss: Loss) -> Problem:
    """Return a problem with the penalty that most solvers can do with."""
    return plain(loss, no_penalty() if name == "frank_wolfe" else ridge(0.01), 5)


SUITED = [
    (name, loss)
    for name, kind in SOLVERS.items()
    for loss in (SQUARED, LOGISTIC, HINGE)
    if kind().refusal(plain_problem(name, loss)) is None
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loss"), SUITED, ids=lambda part: getattr(part, "name", part))
def test_the_defaults_of_every_solver_come_near_the_optimum(name: str, loss: Loss) -> None:
    # At epsilon 4 on 20 000 rows noise is small: what is left is the settings' own doing. The best
    # objective is found without noise in many steps; a default run covers half the way to it.
    data, flip = toy(20_000), np.random.default_rng(5).random(20_000) < 0.2
    label = np.where(flip, -data.sign, data.sign) if loss.classifies else data.target
    problem = plain_problem(name, loss)

    def run(chosen: Solver, release: Release) -> float:
        chosen = with_defaults(chosen, loss, data.design.shape, epsilon=4.0, delta=1e-6)
        plan = make_plan(chosen, data.design.shape, epsilon=4.0, delta=1e-6)
        noise = SeededNoise(0)
        coef = solve(problem, data.design, label, chosen, plan=plan, release=release, sampler=noise)
        return problem.objective(coef, data.X @ coef, label)

    best = run(StochasticDescent(passes=100, batch_size="full", step=2.0, clip=WIDE), Noiseless())
    zero = problem.objective(np.zeros(5), np.zeros(label.size), label)
    assert best < 0.9 * zero
    assert run(SOLVERS[name](), Direct(SeededNoise(0))) - best < 0.5 * (zero - best)


def test_given_mean_squares_are_checked_and_used() -> None:
    right = tuple((TOY.X**2).mean(0))
    given = fit(CoordinateDescent(passes=3, squares=right), SQUARED, ridge(0.1))
    bought = fit(CoordinateDescent(passes=3), SQUARED, ridge(0.1))
    np.testing.assert_allclose(given, bought, rtol=1e-3)  # without noise they are the same
    for wrong in (right[:-1], (0.0, *right[1:]), (math.nan, *right[1:])):
        with pytest.raises(ValueError, match="mean squares"):
            fit(CoordinateDescent(passes=3, squares=wrong), SQUARED, ridge(0.1))


def test_passes_that_nobody_chose_grow_with_the_rows_and_the_budget_and_are_bounded() -> None:
    def passes(loss: Loss, n_rows: int, n_features: int, epsilon: float) -> int:
        shape = n_rows, n_features
        made = with_defaults(CoordinateDescent(), loss, shape, epsilon=epsilon, delta=1e-6)
        assert isinstance(made, CoordinateDescent)
        assert made.passes is not None
        return made.passes

    # Epsilon 1 is rho 0.02436: 0.007 * 0.02436 * (2000 / 6)**2 = 18.9 for squared error.
    assert passes(SQUARED, 2000, 6, 1.0) == 19
    assert passes(SQUARED, 2000, 6, 0.5) < passes(SQUARED, 2000, 6, 1.0)
    assert passes(LOGISTIC, 5000, 6, 1.0) == 34
    assert passes(SQUARED, 10**6, 6, 1.0) == 50
    assert passes(SQUARED, 100, 50, 0.1) == 5
    kept = CoordinateDescent(passes=7, clip=0.4)
    assert with_defaults(kept, SQUARED, (10**6, 6), epsilon=1.0, delta=1e-6) is kept
    with pytest.raises(ValueError, match="defaults"):
        make_plan(CoordinateDescent(), (100, 5), epsilon=1.0, delta=1e-6)


def test_batches_are_small_only_where_sampling_is_credited() -> None:
    shape = (5000, 5)
    one = with_defaults(StochasticDescent(), SQUARED, shape, epsilon=1.0, delta=1e-6)
    two = with_defaults(StochasticDescent(), SQUARED, shape, epsilon=1.0, delta=1e-6, enforced=True)
    assert isinstance(one, StochasticDescent)
    assert isinstance(two, StochasticDescent)
    assert (one.batch_size, two.batch_size) == (512, "full")
    assert two.steps(*shape) == 20 < one.steps(*shape)
    asked = StochasticDescent(batch_size=100, clip=0.1)
    assert with_defaults(asked, SQUARED, shape, epsilon=1.0, delta=1e-6, enforced=True) is asked


@pytest.mark.parametrize("name", ["cd", "gcd", "sgd", "admm"])
def test_a_threshold_that_nobody_chose_suits_the_loss(name: str) -> None:
    given: dict[str, Any] = {"shape": (500, 5), "epsilon": 1.0, "delta": 1e-6}
    chosen = [with_defaults(SOLVERS[name](), loss, **given) for loss in (SQUARED, LOGISTIC)]
    low, high = (solver.clip for solver in chosen)  # type: ignore[attr-defined]
    assert 0.0 < low < high <= 1.0


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_the_dual_learns_under_a_weak_penalty(loss: Loss) -> None:
    # The model is v / (n l2): with n l2 = 1 noise of v is noise of the model, so that thresholds
    # must shrink with the steps that the penalty allows. With one of 0.1 the objective is hundreds.
    data, flip = toy(5000), np.random.default_rng(5).random(5000) < 0.2
    label = np.where(flip, -data.sign, data.sign) if loss.classifies else data.target
    problem = plain(loss, ridge(1.0 / 5000), 5)
    plan = make_plan(DualDescent(), data.design.shape, epsilon=2.0, delta=1e-6)
    release = Direct(SeededNoise(0))
    coef = solve(problem, data.design, label, DualDescent(), plan=plan, release=release)
    zero = problem.objective(np.zeros(5), np.zeros(label.size), label)
    best = fit(CoordinateDescent(passes=80, clip=WIDE), loss, ridge(1.0 / 5000), data=data)
    if loss is SQUARED:
        least = problem.objective(best, data.X @ best, label)
        assert problem.objective(coef, data.X @ coef, label) - least < 0.3 * (zero - least)
    assert problem.objective(coef, data.X @ coef, label) < 0.95 * zero


def test_every_solver_has_a_name() -> None:
    assert all(kind.name == name for name, kind in SOLVERS.items())


class Halving:
    """R(u) = u / 2 + 1 on one block at a time: the fixed point is 2."""

    def __init__(self) -> None:
        self.followed: list[tuple[Block, float]] = []

    def relaxation(self, k: int) -> float:
        return 0.5

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, float]:
        return k % u.size, float(u[k % u.size]) / 2.0 + 1.0

    def follow(self, block: Block, change: FloatArray | float) -> None:
        self.followed.append((block, float(np.sum(change))))

    def model(self, u: FloatArray) -> FloatArray:
        return 10.0 * u


def test_a_step_moves_one_block_towards_its_target_by_lambda() -> None:
    operator = Halving()
    seen: list[int] = []
    model = iterate(operator, np.array([0.0, 8.0]), Noiseless(), steps=3, progress=seen.append)
    # Block 0: 0 -> 0.5; block 1: 8 -> 6.5; block 0: 0.5 -> 0.875.
    np.testing.assert_array_equal(model, [8.75, 65.0])
    assert operator.followed == [(0, 0.5), (1, -1.5), (0, 0.375)]
    assert seen == [1, 2, 3]


def test_averaging_continues_from_the_mean_of_the_period() -> None:
    operator = Halving()
    model = iterate(operator, np.array([0.0, 8.0]), Noiseless(), steps=2, average_every=2)
    # Iterates [0.5, 8] and [0.5, 6.5]: the mean is [0.5, 7.25].
    np.testing.assert_array_equal(model, [5.0, 72.5])
    assert operator.followed[-1] == (EVERYTHING, 0.75)


@pytest.mark.parametrize("far", [1e200, -1e200, math.nan])
def test_coefficients_that_run_away_are_stopped(far: float) -> None:
    class Exploding(Halving):
        def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, float]:
            return 0, far if k else 0.0

    with pytest.raises(Diverged, match="step 2 of 9"):
        iterate(Exploding(), np.zeros(2), Noiseless(), steps=9)


@pytest.mark.parametrize("penalty", [lasso(0.3), ridge(0.7), elastic_net(0.5, 0.4), box(0.2)])
def test_a_proximal_map_minimises_what_it_says(penalty: Penalty) -> None:
    scales, step = np.array([0.0, 0.5, 2.0]), np.array([0.3, 0.7, 1.5])
    point = np.array([0.4, -0.9, 0.8])
    found = penalty.prox(point, step, scales)
    grid = np.linspace(-1.5, 1.5, 3001)
    for j in range(3):
        values = [
            penalty.value(np.array([w]), scales[j : j + 1]) + (w - point[j]) ** 2 / (2.0 * step[j])
            for w in grid
        ]
        assert found[j] == pytest.approx(grid[int(np.argmin(values))], abs=2e-3)
        assert penalty.prox_one(point[j], step[j], scales[j]) == pytest.approx(found[j], abs=1e-15)


@pytest.mark.parametrize("order", ["cyclic", "random"])
@pytest.mark.parametrize("penalty", [Penalty(0.01, 0.1, 0.3), lasso(0.02)], ids=["all", "l1"])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_compiled_sweeps_are_the_iteration_bit_for_bit(
    loss: Loss, penalty: Penalty, order: Literal["cyclic", "random"]
) -> None:
    solver = resolved(
        CoordinateDescent(passes=120, order=order, squares="bounds"), loss
    )  # two sweeps
    plan = make_plan(solver, TOY.design.shape, epsilon=1.0, delta=1e-6)
    label = TOY.target if loss is SQUARED else TOY.sign
    problem = Problem(loss, penalty, np.array([1.0, 0.5, 2.0, 1.0, 0.0]))
    noise = SeededNoise(5).discrete_gaussian(plan.mechanism("step").sigma2, 600)  # type: ignore[attr-defined]

    class Scripted:
        """Gives the same numbers in whatever portions."""

        def __init__(self) -> None:
            self.used = 0

        def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
            self.used += size
            return noise[self.used - size : self.used]

    def one_by_one(kind, round_, mechanism, compute):  # type: ignore[no-untyped-def]
        return compute() + noise[round_]

    swept = Direct(Scripted())  # type: ignore[arg-type]
    fast = solve(problem, TOY.design, label, solver, plan=plan, release=swept)
    slow = solve(problem, TOY.design, label, solver, plan=plan, release=one_by_one)
    np.testing.assert_array_equal(fast, slow)
    assert np.abs(fast).max() > 0.0


def test_exact_noise_reaches_every_step() -> None:
    solver = resolved(CoordinateDescent(passes=2))
    plan = make_plan(solver, TOY.design.shape, epsilon=1.0, delta=1e-6)
    problem = plain(SQUARED, lasso(0.01), 5)
    runs = [
        solve(problem, TOY.design, TOY.target, solver, plan=plan, release=Direct(OsNoise()))
        for _ in range(2)
    ]
    assert (runs[0] != runs[1]).any()


@pytest.mark.parametrize(
    "solver",
    [
        CoordinateDescent(passes=100),
        GreedyDescent(iterations=30),
        StochasticDescent(passes=8, batch_size="full"),
        Admm(iterations=7),
        DualDescent(epochs=3, batch_size=64),
    ],
    ids=repr,
)
def test_a_trail_ends_at_the_model_and_changes_nothing(solver: Solver) -> None:
    solver = resolved(solver)
    plan = make_plan(solver, TOY.design.shape, epsilon=1.0, delta=1e-6)
    problem = plain(SQUARED, ridge(0.1), 5)

    def run(trail: Trail | None) -> FloatArray:
        release = Direct(SeededNoise(3))
        return solve(
            problem, TOY.design, TOY.target, solver, plan=plan, release=release, trail=trail
        )

    trail: Trail = []
    model = run(trail)
    steps = solver.steps(*TOY.design.shape)
    apart = -(-steps // TRAIL_LENGTH)
    assert [step for step, _ in trail] == [*range(apart, steps, apart), steps]
    np.testing.assert_array_equal(trail[-1][1], model)
    assert all((one != two).any() for (_, one), (_, two) in itertools.pairwise(trail))
    if isinstance(solver, CoordinateDescent):  # its noise is drawn in other portions
        return
    np.testing.assert_array_equal(run(None), model)
