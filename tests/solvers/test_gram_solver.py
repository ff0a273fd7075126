"""The solver ``gram``: exact without noise, shrunk by it, the same for every form of a table."""

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.solvers import UNIT, sparse_of, toy

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import AnyPenalty, Penalty, lasso, no_penalty, ridge
from colonnade.linear.solutions import Wanted
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.fit import Objective, SolverTable, fit_table, resolve_fit
from colonnade.solvers.iteration import Direct, Noiseless, Release
from colonnade.solvers.problem import Problem
from colonnade.solvers.registry import Unsuitable, default_solver
from colonnade.solvers.solve import make_plan, solve


def a_table(n_rows: int, n_features: int, *, seed: int = 0) -> tuple[DenseDesign, FloatArray]:
    """Correlated columns off the middle of their bounds, an intercept, and a label of them."""
    draw = np.random.default_rng(seed)
    common = draw.normal(size=(n_rows, 1))
    X = 0.2 * (draw.normal(size=(n_rows, n_features)) + common) + 0.3
    columns = np.rint(np.clip(X.T, -1.0, 1.0) * GRID).astype(np.int16)
    whole = np.vstack([columns, np.full((1, n_rows), GRID, np.int16)])
    signal = columns.T[:, :4] / GRID @ np.array([0.5, -0.4, 0.3, -0.2])
    label = np.clip(signal + 0.05 * draw.normal(size=n_rows), -1.0, 1.0)
    return DenseDesign(whole, np.full(n_features + 1, UNIT)), label


def fit(
    design: object,
    label: FloatArray,
    *,
    release: Release,
    loss: Loss = SQUARED,
    penalty: AnyPenalty | None = None,
    solver: Gram | None = None,
    epsilon: float = 1.0,
) -> FloatArray:
    solver = solver or Gram()
    scales = np.append(np.ones(design.shape[1] - 1), 0.0)  # type: ignore[attr-defined]
    problem = Problem(loss, penalty or no_penalty(), scales)
    plan = make_plan(solver, design.shape, epsilon=epsilon, delta=1e-6)  # type: ignore[attr-defined]
    return solve(problem, design, label, solver, plan=plan, release=release)  # type: ignore[arg-type]


def test_without_noise_it_is_least_squares() -> None:
    design, label = a_table(4000, 6)
    # Residuals are clipped at one deviation of the label, so a wide clip leaves none out.
    found = fit(design, label, release=Noiseless(), solver=Gram(refinements=12, clip=8.0))
    X = design.columns.T / GRID
    exact = np.linalg.lstsq(X, label, rcond=None)[0]
    np.testing.assert_allclose(found[:-1], exact[:-1], atol=0.002)
    np.testing.assert_allclose(X @ found, X @ exact, atol=0.004)


def test_without_noise_it_is_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    design, signal = a_table(20_000, 4)
    chance = 1.0 / (1.0 + np.exp(-8.0 * signal + 2.0))
    label = np.where(np.random.default_rng(1).random(20_000) < chance, 1.0, -1.0)
    solver = Gram(refinements=20, clip=1.0)
    found = fit(design, label, release=Noiseless(), loss=LOGISTIC, solver=solver)
    X = design.columns.T[:, :-1] / GRID
    exact = LogisticRegression(C=np.inf, tol=1e-10).fit(X, label)
    # Rows outside the ball count less: consistent, not the same estimate.
    np.testing.assert_allclose(found[:-1], exact.coef_[0], atol=0.06 * np.abs(exact.coef_).max())
    chances = 1.0 / (1.0 + np.exp(-(X @ found[:-1] + found[-1])))
    assert float(chances.mean()) == pytest.approx(float((label > 0).mean()), abs=0.01)


@pytest.mark.parametrize("penalty", [lasso(0.01), ridge(0.05), Penalty(bound=0.3)], ids=repr)
def test_a_penalty_is_minimised_in_the_users_units(penalty: Penalty) -> None:
    design, label = a_table(4000, 6)
    solver = Gram(refinements=12, clip=8.0, reach=50.0)
    found = fit(design, label, release=Noiseless(), penalty=penalty, solver=solver)
    scales = np.append(np.ones(6), 0.0)
    problem = Problem(SQUARED, penalty, scales)
    X = design.columns.T / GRID
    best = problem.objective(found, X @ found, label)
    draw = np.random.default_rng(2)
    for _ in range(200):  # no neighbour is better, but for rounding
        other = found + 0.01 * draw.normal(size=7) * (found != 0.0)
        other[:-1] = np.clip(other[:-1], -penalty.bound, penalty.bound)
        assert problem.objective(other, X @ other, label) > best - 2e-6


def test_noise_that_rules_leaves_a_model_that_is_all_but_constant() -> None:
    design, label = a_table(300, 6)
    release = Direct(ShakeNoise("rules"))
    found = fit(design, label, release=release, epsilon=0.01)
    assert np.abs(found[:-1]).max() < 0.05  # the truth has 0.5


def test_sparse_tables_give_the_model_of_dense_ones() -> None:
    data = toy(2000, 4, zeros=0.8)
    columns = np.vstack([data.design.columns, np.full((1, 2000), GRID, np.int16)])
    dense = DenseDesign(columns, np.full(5, UNIT))
    one, two = (
        fit(design, data.target, release=Direct(ShakeNoise("forms")))
        for design in (dense, sparse_of(dense))
    )
    np.testing.assert_array_equal(one, two)


def test_a_wide_table_is_screened_to_the_columns_that_matter() -> None:
    design, label = a_table(20_000, 30)
    solver = Gram(widest=20, keep=8)
    found = fit(design, label, release=Direct(ShakeNoise("wide")), solver=solver, epsilon=4.0)
    assert 4 <= np.count_nonzero(found[:-1]) <= 8
    assert (np.abs(found[:4]) > 0.1).all()
    kinds = [part.kind for part in solver.parts(*design.shape)]
    assert kinds == ["moments", "gram", "products", "select", "step"]


def test_other_losses_are_refused_and_have_another_default() -> None:
    design, label = a_table(100, 4)
    with pytest.raises(Unsuitable):
        fit(design, np.sign(label), release=Noiseless(), loss=HINGE)
    assert [default_solver(loss).name for loss in (SQUARED, LOGISTIC, HINGE)] == [
        "gram",
        "gram",
        "sgd",
    ]


def test_intervals_and_the_path_come_from_the_same_releases() -> None:
    # The truth in deviations: 0.5, -0.4, 0.3, -0.2 and zeros, times the ratio of deviations. Of 16
    # coefficients of 6 fits each, 95 % intervals miss 5 % on average: 8 sigma below 0.95 is 0.77.
    covered, misses = [], []
    for seed in range(6):
        design, label = a_table(30_000, 16, seed=seed)
        bounds, own = (Bounds(-1.0, 1.0),) * 16, Bounds(-1.0, 1.0)
        table = SolverTable(design, bounds, label, own, intercept=True)
        fit = resolve_fit(
            Objective(SQUARED), Gram(), design.shape, epsilon=2.0, delta=1e-6, noise="fast"
        )
        told = fit_table(table, fit, seed=seed).statistics
        assert told is not None
        truth = np.zeros(16)
        truth[:4] = (0.5, -0.4, 0.3, -0.2)
        truth *= (design.columns[:-1] / GRID).std(axis=1) / label.std()
        found = told.intervals()
        covered.append((found.low <= truth) & (truth <= found.high))
        misses.append(np.abs(found.coef - truth).max())
        path = told.path(count=5)
        assert not path.coefs[0].any()
        assert (np.abs(path.coefs[-1, :4]) > 0.2).all()
        ridge_ = told.solve(Wanted("ridge", strength=100.0))
        assert np.abs(ridge_).max() < 0.1
    assert np.mean(covered) > 0.77
    assert np.max(misses) < 0.5
