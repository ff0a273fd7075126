"""The scikit-learn estimators: conventions kept as far as privacy allows, bounds demanded."""

import math
import warnings
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from colonnade.core.arrays import FloatArray
from colonnade.estimators import (
    PrivateElasticNet,
    PrivateLasso,
    PrivateLinearClassifier,
    PrivateLinearRegressor,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateScaler,
    SpendWarning,
)
from colonnade.privacy.accounting import epsilon_of
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.registry import Unsuitable

LONG = CoordinateDescent(passes=1500, clip=16.0)
REGRESSORS = [PrivateLasso, PrivateElasticNet, PrivateRidge]
CLASSIFIERS = [PrivateLogisticRegression, PrivateLinearSVC]

AGAIN = "it fits twice and expects the same model, and private noise is never the same"
# What scikit-learn's checks ask that privacy cannot give, and why.
EXCLUSIONS = {
    "check_fit_idempotent": AGAIN,
    "check_regressor_data_not_an_array": AGAIN,
    "check_classifier_data_not_an_array": AGAIN,
    "check_regressors_int": AGAIN,
    "check_supervised_y_2d": AGAIN,
}


def checked(noise: str) -> list[Any]:
    """Return one of each; the checks' tables are small, so epsilon is not."""
    common = {"epsilon": 999.0, "bounds": (-5.0, 5.0), "noise": noise}
    scaler = PrivateScaler(**common)  # type: ignore[arg-type]
    return [
        scaler,
        PrivateLinearRegressor(y_bounds=(-5.0, 5.0), **common),  # type: ignore[arg-type]
        PrivateLinearClassifier("logistic", **common),  # type: ignore[arg-type]
        PrivateLasso(0.01, y_bounds=(-5.0, 5.0), **common),  # type: ignore[arg-type]
        PrivateElasticNet(0.01, y_bounds=(-5.0, 5.0), **common),  # type: ignore[arg-type]
        PrivateRidge(0.1, y_bounds=(-5.0, 5.0), **common),  # type: ignore[arg-type]
        PrivateLogisticRegression(**common),  # type: ignore[arg-type]
        PrivateLinearSVC(**common),  # type: ignore[arg-type]
    ]


def checks(noise: str) -> list[Any]:
    """Return scikit-learn's checks of every estimator, as parameters of a test."""
    return [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}")
        for each in checked(noise)
        for estimator, check in estimator_checks_generator(each, mark=None)
        if noise == "off" or check.func.__name__ not in EXCLUSIONS
    ]


def run(check: Callable[[Any], None], estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpendWarning)  # the checks copy what they fit
        try:
            check(estimator)
        except SkipTest as skipped:  # repeated fits, and libraries that are not installed
            pytest.skip(str(skipped))


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), checks("exact"))
def test_private_fits_keep_scikit_learns_conventions(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    run(check, estimator)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), checks("off"))
def test_without_noise_no_convention_is_broken(
    estimator: Any, check: Callable[[Any], None]
) -> None:
    run(check, estimator)


@pytest.mark.parametrize("name", sorted(EXCLUSIONS))
def test_an_exclusion_is_needed(name: str) -> None:
    broken = 0
    for each in checked("exact"):
        for estimator, check in estimator_checks_generator(each, mark=None):
            if check.func.__name__ == name:
                try:
                    run(check, estimator)
                except AssertionError:
                    broken += 1
    assert broken


def table(n_rows: int = 400) -> tuple[FloatArray, FloatArray]:
    """Return features in users' units, none of them centred, and a label."""
    draw = np.random.default_rng(4)
    X = draw.uniform([10.0, -1.0, 0.0], [50.0, 3.0, 0.2], (n_rows, 3))
    y = 100.0 + 2.0 * X[:, 0] - 5.0 * X[:, 1] + 30.0 * X[:, 2] + draw.normal(0.0, 3.0, n_rows)
    return X, y


BOUNDS = (np.array([10.0, -1.0, 0.0]), np.array([50.0, 3.0, 0.2]))
Y_BOUNDS = (80.0, 240.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("mine", "reference"),
    [
        (PrivateLasso(0.4), Lasso(alpha=0.4)),
        (PrivateElasticNet(0.1, l1_ratio=0.3), ElasticNet(alpha=0.1, l1_ratio=0.3)),
        (PrivateRidge(30.0), Ridge(alpha=30.0)),
    ],
    ids=["lasso", "elastic net", "ridge"],
)
def test_without_noise_a_regression_is_scikit_learns_in_the_users_units(
    mine: Any, reference: Any, fit_intercept: bool
) -> None:
    X, y = table()
    mine = clone(mine).set_params(
        bounds=BOUNDS, y_bounds=Y_BOUNDS, noise="off", solver=LONG, fit_intercept=fit_intercept
    )
    reference = clone(reference).set_params(fit_intercept=fit_intercept, tol=1e-12)
    mine.fit(X, y)
    reference.fit(X, y)
    # Values are rounded to 2**-15 of their range, about 1e-4 of a deviation; errors of 400 rows
    # average out to well below 1e-3 of the label's deviation.
    np.testing.assert_allclose(mine.predict(X), reference.predict(X), atol=1e-3 * y.std())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_logistic_regression_is_scikit_learns_in_the_users_units(
    fit_intercept: bool,
) -> None:
    X, y = table()
    noisy = y + np.random.default_rng(5).normal(0.0, 30.0, y.size)
    label = np.where(noisy > np.median(y), "high", "low")
    mine = PrivateLogisticRegression(
        5.0, bounds=BOUNDS, noise="off", solver=LONG, fit_intercept=fit_intercept
    )
    reference = LogisticRegression(C=5.0, fit_intercept=fit_intercept, tol=1e-8, max_iter=10**5)
    reference.fit(X, label)
    mine.fit(X, label)
    # As above: rounding of the features moves a logit by less than 1e-3.
    np.testing.assert_allclose(mine.predict_proba(X), reference.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(np.exp(mine.predict_log_proba(X)), mine.predict_proba(X))
    assert mine.classes_.tolist() == ["high", "low"]


@pytest.mark.parametrize("kind", [*REGRESSORS, *CLASSIFIERS], ids=lambda kind: kind.__name__)
def test_missing_bounds_are_an_error_and_not_a_guess(kind: Any) -> None:
    X, y = table()
    label = y if kind in REGRESSORS else y > 150.0
    both = "bounds and y_bounds" if kind in REGRESSORS else "bounds"
    with pytest.raises(ValueError, match=f"^{both} must be declared.*for each feature"):
        kind().fit(X, label)
    if kind in REGRESSORS:
        with pytest.raises(ValueError, match=r"^y_bounds") as refused:
            kind(bounds=BOUNDS).fit(X, label)
        assert "feature" not in str(refused.value)


@pytest.mark.parametrize(
    "bounds", [3.0, (1.0,), ([0.0, 0.0], [1.0, 1.0]), (1.0, 0.0), (0.0, math.inf), ("a", "b")]
)
def test_bounds_that_make_no_sense_are_refused(bounds: Any) -> None:
    X, y = table()
    with pytest.raises(ValueError, match="bounds"):
        PrivateRidge(bounds=bounds, y_bounds=Y_BOUNDS).fit(X, y)


def test_values_outside_the_bounds_are_clipped() -> None:
    X, y = table()
    wild = X.copy()
    wild[0, 0], wild[1, 0] = 1e9, -1e9
    tame = np.clip(wild, *BOUNDS)
    kwargs: dict[str, Any] = {"bounds": BOUNDS, "y_bounds": Y_BOUNDS, "noise": "off"}
    np.testing.assert_array_equal(
        PrivateRidge(**kwargs).fit(wild, y).coef_, PrivateRidge(**kwargs).fit(tame, y).coef_
    )


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_input_gives_the_model_of_the_dense_one(form: str, fit_intercept: bool) -> None:
    draw = np.random.default_rng(6)
    X = draw.uniform(-1.0, 1.0, (200, 4)) * (draw.random((200, 4)) < 0.4)
    y = X @ [1.0, 0.0, -1.0, 0.5] + 0.1
    kwargs: dict[str, Any] = {"bounds": (-1.0, 1.0), "y_bounds": (-3.0, 3.0), "noise": "off"}
    kwargs |= {"fit_intercept": fit_intercept}
    thin = PrivateLasso(0.01, **kwargs).fit(sparse.coo_matrix(X).asformat(form), y)
    full = PrivateLasso(0.01, **kwargs).fit(X, y)
    np.testing.assert_allclose(thin.coef_, full.coef_, rtol=1e-9)
    np.testing.assert_allclose(thin.intercept_, full.intercept_, rtol=1e-9)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), full.predict(X), rtol=1e-9)


def test_a_claim_is_what_was_asked_for_and_can_be_recomputed() -> None:
    X, y = table()
    model = PrivateRidge(bounds=BOUNDS, y_bounds=Y_BOUNDS, epsilon=2.0, delta=1e-5).fit(X, y)
    claim = model.privacy_
    assert claim.private
    assert claim.delta == 1e-5
    assert 1.99 < claim.epsilon <= 2.0
    assert claim.rho is not None
    rho = sum(
        int(release["touches"]) * int(release["l2_sensitivity2"]) / (2 * int(release["sigma2"]))
        for release in claim.releases
    )
    assert claim.rho == pytest.approx(rho, rel=1e-9)
    assert claim.epsilon == pytest.approx(epsilon_of(rho, 1e-5), rel=1e-6)
    assert "one row replaced" in str(claim)


def test_sampled_batches_are_claimed_at_their_own_price_and_a_ledgers_is_told() -> None:
    X, y = table()
    solver = StochasticDescent(passes=2, batch_size=40)
    model = PrivateRidge(bounds=BOUNDS, y_bounds=Y_BOUNDS, epsilon=2.0, solver=solver).fit(X, y)
    assert model.privacy_.rho is None
    assert 1.9 < model.privacy_.epsilon <= 2.0
    assert model.privacy_.sampling_rate <= 0.1
    assert epsilon_of(model.privacy_.charged_rho, model.privacy_.delta) > 4.0


@pytest.mark.parametrize("noise", ["fast", "off"])
def test_other_noise_is_marked_not_private(noise: Any) -> None:
    X, y = table()
    model = PrivateRidge(bounds=BOUNDS, y_bounds=Y_BOUNDS, noise=noise).fit(X, y)
    assert not model.privacy_.private
    assert "not private" in str(model.privacy_)


def test_fast_noise_repeats_by_its_seed_and_exact_noise_never() -> None:
    X, y = table()
    kwargs: dict[str, Any] = {"bounds": BOUNDS, "y_bounds": Y_BOUNDS, "random_state": 7}
    fast = [PrivateRidge(noise="fast", **kwargs).fit(X, y).coef_ for _ in range(2)]
    exact = [PrivateRidge(**kwargs).fit(X, y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(fast[0], fast[1])
    assert (exact[0] != exact[1]).all()


def test_a_private_fit_learns_what_the_budget_allows() -> None:
    # A float prototype of the same noise gives R2 above 0.69 where 0.70 is the most there is; the
    # bound leaves ten standard deviations over fits.
    draw = np.random.default_rng(0)
    X = draw.normal(size=(20_000, 10))
    signal = X @ draw.normal(size=10)
    y = signal + signal.std() * math.sqrt(3 / 7) * draw.normal(size=20_000)
    span = 4.0 * y.std()
    model = PrivateRidge(bounds=(-5.0, 5.0), y_bounds=(-span, span), epsilon=1.0).fit(X, y)
    assert model.score(X, y) > 0.6


def test_combinations_that_make_no_sense_are_refused_by_fit() -> None:
    X, y = table()
    sign = y > 150.0
    with pytest.raises(Unsuitable, match="hinge"):
        PrivateLinearSVC(bounds=BOUNDS, solver="cd").fit(X, sign)
    with pytest.raises(Unsuitable, match="intercept"):
        PrivateLinearSVC(bounds=BOUNDS, solver="dual").fit(X, sign)
    with pytest.raises(Unsuitable, match="intercept"):
        PrivateLasso(bounds=BOUNDS, y_bounds=Y_BOUNDS, solver="frank_wolfe").fit(X, y)
    with pytest.raises(ValueError, match="no solver"):
        PrivateLasso(bounds=BOUNDS, y_bounds=Y_BOUNDS, solver="newton").fit(X, y)
    with pytest.raises(ValueError, match="noise"):
        PrivateLasso(bounds=BOUNDS, y_bounds=Y_BOUNDS, noise="none").fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="C must"):
        PrivateLinearSVC(0.0, bounds=BOUNDS).fit(X, sign)


@pytest.mark.parametrize(
    "solver",
    [
        "gcd",
        Admm(iterations=5),
        DualDescent(epochs=2, batch_size=100),
        FrankWolfe(iterations=5),
        StochasticDescent(passes=2),
    ],
    ids=repr,
)
def test_every_solver_fits_without_an_intercept(solver: Any) -> None:
    X, y = table()
    alpha = 0.0 if isinstance(solver, FrankWolfe) else 1.0
    model = PrivateRidge(
        alpha, bounds=BOUNDS, y_bounds=Y_BOUNDS, solver=solver, fit_intercept=False, epsilon=50.0
    )
    assert np.isfinite(model.fit(X, y).coef_).all()
    assert model.intercept_ == 0.0


def test_it_works_at_the_end_of_a_pipeline() -> None:
    X, y = table()
    double = FunctionTransformer(lambda X: 2.0 * X)
    model = PrivateRidge(bounds=(2 * BOUNDS[0], 2 * BOUNDS[1]), y_bounds=Y_BOUNDS, epsilon=50.0)
    assert make_pipeline(double, model).fit(X, y).score(X, y) > 0.5


def test_a_search_over_private_fits_warns_that_it_spends_budget() -> None:
    X, y = table()
    model = PrivateRidge(bounds=BOUNDS, y_bounds=Y_BOUNDS, epsilon=50.0)
    pipeline = make_pipeline(FunctionTransformer(), model)
    with pytest.warns(SpendWarning, match="add up"):
        GridSearchCV(pipeline, {"privateridge__alpha": [0.1, 1.0]}, cv=2).fit(X, y)


def test_one_fit_and_one_copy_warn_of_nothing() -> None:
    X, y = table()
    model = PrivateRidge(bounds=BOUNDS, y_bounds=Y_BOUNDS)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
        clone(model).fit(X, y)
    assert [each for each in told if issubclass(each.category, SpendWarning)] == []


@pytest.mark.parametrize(
    "model",
    [
        PrivateRidge(y_bounds=Y_BOUNDS),
        PrivateElasticNet(y_bounds=Y_BOUNDS),
        PrivateElasticNet(l1_ratio=1.0, y_bounds=Y_BOUNDS),
        PrivateLogisticRegression(),
        PrivateLogisticRegression(l1_ratio=1.0),
    ],
    ids=repr,
)
def test_frank_wolfe_takes_no_penalty_that_it_would_ignore(model: Any) -> None:
    X, y = table()
    label = y if type(model) in REGRESSORS else y > 150.0
    model = clone(model).set_params(bounds=BOUNDS, solver="frank_wolfe", fit_intercept=False)
    with pytest.raises(Unsuitable, match="penalty"):
        model.fit(X, label)


def test_frank_wolfe_fits_where_there_is_no_penalty_and_in_the_lassos_place() -> None:
    X, y = table()
    given: dict[str, Any] = {"bounds": BOUNDS, "solver": "frank_wolfe", "fit_intercept": False}
    given |= {"noise": "off"}
    lasso = PrivateLasso(y_bounds=Y_BOUNDS, **given).fit(X, y)
    ridge = PrivateRidge(0.0, y_bounds=Y_BOUNDS, **given).fit(X, y)
    np.testing.assert_array_equal(lasso.coef_, ridge.coef_)
    assert PrivateLogisticRegression(math.inf, **given).fit(X, y > 150.0).coef_.any()
    with pytest.raises(Unsuitable, match="hinge"):  # the loss comes first, not the intercept
        PrivateLinearSVC(bounds=BOUNDS, solver="frank_wolfe").fit(X, y > 150.0)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_declared_classes_are_never_refused_whatever_the_labels_are(kind: Any) -> None:
    X, y = table()
    given: dict[str, Any] = {"bounds": BOUNDS, "classes": ("no", "yes"), "noise": "off"}
    answers = np.where(y > 150.0, "yes", "no").astype(object)
    model = kind(**given).fit(X, answers)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, answers.astype(str)) > 0.8
    strange = answers.copy()
    strange[np.flatnonzero(answers == "no")[:4]] = ["perhaps", None, math.nan, 7]
    np.testing.assert_array_equal(kind(**given).fit(X, strange).coef_, model.coef_)
    turned = kind(**given | {"classes": ("yes", "no")}).fit(X, answers)
    assert turned.score(X, answers.astype(str)) > 0.8
    assert turned.classes_.tolist() == ["yes", "no"]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_class_alone_is_fitted_if_both_are_declared(kind: Any) -> None:
    X, y = table()
    for value, sign in ((1, 1.0), (0, -1.0), (math.nan, -1.0)):
        label = np.full(y.size, value, float)
        model = kind(bounds=BOUNDS, classes=(0, 1), epsilon=50.0).fit(X, label)
        assert (sign * model.decision_function(X) > 0.0).mean() > 0.9
    with pytest.raises(ValueError, match=r"classes=\(negative, positive\)"):
        kind(bounds=BOUNDS).fit(X, np.ones(y.size))


@pytest.mark.parametrize("classes", [(0, 0), (1,), (0, 1, 1), 3, [(0, 1), (1, 0)]])
def test_classes_that_make_no_sense_are_refused(classes: Any) -> None:
    X, y = table()
    with pytest.raises(ValueError, match="two"):
        PrivateLogisticRegression(bounds=BOUNDS, classes=classes).fit(X, y > 150.0)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ({"epsilon": "a"}, r"epsilon .*str"),
        ({"epsilon": None}, r"epsilon .*NoneType"),
        ({"epsilon": 1e9}, r"epsilon .*1000"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": "b"}, r"delta .*str"),
        ({"delta": 1.0}, "delta"),
        ({"solver": CoordinateDescent(passes=10**7)}, r"40000001 .*10000000"),
        (
            {"solver": StochasticDescent(passes=1e9, batch_size=40)},
            "10000000",
        ),
    ],
    ids=str,
)
def test_a_promise_that_cannot_be_meant_is_refused_by_its_name(
    promise: dict[str, Any], words: str
) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=words):
        PrivateLogisticRegression(**{"bounds": BOUNDS} | promise).fit(X, y > 150.0)
