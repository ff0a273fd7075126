"""What scikit-learn users expect of attributes, names and weights, and of several classes."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.validation import has_fit_parameter

from colonnade.core.arrays import AnyArray, FloatArray
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
from colonnade.solvers import CoordinateDescent, StochasticDescent
from colonnade.solvers.budgets import sampled_epsilon

BOUNDS, Y_BOUNDS = (-1.0, 1.0), (-5.0, 5.0)
REGRESSIONS = [PrivateLasso, PrivateElasticNet, PrivateRidge, PrivateLinearRegressor]
CLASSIFIERS = [PrivateLogisticRegression, PrivateLinearSVC, PrivateLinearClassifier]
ALL = [*REGRESSIONS, *CLASSIFIERS, PrivateScaler]


def table(n_rows: int = 3000) -> tuple[FloatArray, AnyArray]:
    """Return rows and the third of the plane that each lies in."""
    draw = np.random.default_rng(9)
    X = draw.uniform(-1.0, 1.0, (n_rows, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + draw.normal(0.0, 0.2, n_rows)
    return X, np.array(["east", "north", "south"])[np.digitize(angle, [-math.pi / 3, math.pi / 3])]


def made(kind: Any, **more: Any) -> Any:
    y_bounds = {"y_bounds": Y_BOUNDS} if kind in REGRESSIONS else {}
    return kind(**{"bounds": BOUNDS, "noise": "off"} | y_bounds | more)


def label_for(kind: Any, X: FloatArray) -> AnyArray:
    total: AnyArray = X.sum(axis=1)
    return total if kind in REGRESSIONS else total > 0.0


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_weights_are_refused_with_the_reason_and_not_advertised(kind: Any) -> None:
    X, _ = table(200)
    y = label_for(kind, X)
    model = made(kind)
    with pytest.raises(ValueError, match="weight"):
        model.fit(X, y, sample_weight=np.ones(200))
    with pytest.raises(TypeError, match="'groups'"):
        model.fit(X, y, groups=np.ones(200))
    assert not has_fit_parameter(model, "sample_weight")  # so that none is routed here
    model.fit(X, y, sample_weight=None)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_names_of_features_are_kept_and_checked(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = table(200)
    frame = pandas.DataFrame(X, columns=["dose", "age"])
    model = made(kind, bounds={"age": (-1.0, 1.0), "dose": (-1.0, 0.5)}).fit(
        frame, label_for(kind, X)
    )
    assert model.feature_names_in_.tolist() == ["dose", "age"]
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.bounds_[1], [0.5, 1.0])
    use = model.transform if kind is PrivateScaler else model.predict
    with pytest.raises(ValueError, match="names"):
        use(frame[["age", "dose"]])
    if kind is PrivateScaler:
        assert model.get_feature_names_out().tolist() == ["dose", "age"]


@pytest.mark.parametrize("kind", [*REGRESSIONS, *CLASSIFIERS], ids=lambda kind: kind.__name__)
def test_the_number_of_steps_is_told(kind: Any) -> None:
    X, _ = table(200)
    model = made(kind, solver=StochasticDescent(passes=7, batch_size="full"))
    assert model.fit(X, label_for(kind, X)).n_iter_ == 7


@pytest.mark.parametrize("declared", [None, ["south", "east", "north"]], ids=["found", "declared"])
def test_without_noise_several_classes_are_scikit_learns_one_versus_rest(declared: Any) -> None:
    X, y = table(600)
    solver = CoordinateDescent(passes=1500, clip=16.0)
    model = PrivateLogisticRegression(
        5.0, bounds=BOUNDS, noise="off", solver=solver, classes=declared
    ).fit(X, y)
    reference = OneVsRestClassifier(LogisticRegression(C=5.0, tol=1e-8, max_iter=10**5)).fit(X, y)
    place = np.argsort(model.classes_)  # columns in the order of the reference
    # Rounding of the features to 2**-15 moves a probability by less than 1e-3.
    found = model.predict_proba(X)[:, place]
    np.testing.assert_allclose(found, reference.predict_proba(X), atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.classes_.tolist() == (declared or ["east", "north", "south"])
    assert model.decision_function(X).shape == (600, 3)
    assert (model.coef_.shape, model.intercept_.shape) == ((3, 2), (3,))


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_several_classes_are_learned_privately(kind: Any) -> None:
    X, y = table(6000)
    model = made(kind, noise="fast", epsilon=8.0, classes=["east", "north", "south"]).fit(X, y)
    # Without noise 0.94 are right, and by chance 1/3; of 20 seeds none was below 0.93.
    assert model.score(X, y) > 0.8


def test_the_claim_of_several_classes_is_that_of_all_problems_together() -> None:
    X, y = table()
    given: dict[str, Any] = {"bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5}
    given["solver"] = CoordinateDescent(passes=6)
    one = PrivateLogisticRegression(**given).fit(X, y == "east").privacy_
    all_ = PrivateLogisticRegression(**given).fit(X, y).privacy_
    for claim, problems in ((one, 1), (all_, 3)):
        by_kind = {release["kind"]: release for release in claim.releases}
        # Two features and the intercept, six passes, for each class; the smoothness once a class.
        assert by_kind["step"]["count"] == by_kind["step"]["touches"] == problems * 18
        assert by_kind["smoothness"]["touches"] == problems
        rho = sum(
            int(each["touches"]) * int(each["l2_sensitivity2"]) / (2 * int(each["sigma2"]))
            for each in claim.releases
        )
        assert claim.rho == pytest.approx(rho, rel=1e-9)
        assert 1.99 < epsilon_of(rho, 1e-5) <= 2.0
    noise = [next(r for r in c.releases if r["kind"] == "step")["sigma2"] for c in (one, all_)]
    assert int(noise[1]) / int(noise[0]) == pytest.approx(3.0, rel=1e-6)


def test_sampled_releases_of_several_classes_are_one_longer_sequence() -> None:
    X, y = table()
    solver = StochasticDescent(passes=1, batch_size=100)
    model = PrivateLogisticRegression(bounds=BOUNDS, epsilon=2.0, solver=solver).fit(X, y)
    (release,) = model.privacy_.releases
    assert release["count"] == 3 * model.n_iter_
    multiplier = math.sqrt(4 * int(release["sigma2"]) / int(release["l2_sensitivity2"]))
    told = sampled_epsilon(
        rate=model.privacy_.sampling_rate,
        steps=int(release["count"]),
        multiplier=multiplier,
        delta=model.privacy_.delta,
    )
    assert model.privacy_.epsilon == pytest.approx(told, rel=1e-6)
    assert model.privacy_.epsilon <= 2.0


def test_every_class_gets_noise_of_its_own() -> None:
    # With equal labels in two problems the models would be equal if they shared their noise.
    X, _ = table(300)
    strange = np.full(300, "elsewhere", dtype=object)
    for noise in ("exact", "fast"):
        model = PrivateLogisticRegression(
            bounds=BOUNDS,
            classes=["a", "b", "c"],
            noise=noise,
        ).fit(X, strange)
        for first, second in ((0, 1), (1, 2), (0, 2)):
            assert (model.coef_[first] != model.coef_[second]).all()


def test_an_undeclared_class_counts_as_the_rest_and_is_refused_nowhere() -> None:
    X, y = table(600)
    labels = y.astype(object)
    labels[:5] = [None, math.nan, 7, "west", ""]
    known = labels.copy()
    known[:5] = "west"
    given: dict[str, Any] = {"classes": ["east", "north", "south"]}
    one = made(PrivateLogisticRegression, **given).fit(X, labels)
    two = made(PrivateLogisticRegression, **given).fit(X, known)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_a_loss_of_the_wrong_kind_is_refused() -> None:
    X, y = table(100)
    with pytest.raises(ValueError, match="for classes, not for numbers"):
        made(PrivateLinearRegressor, loss="logistic").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="for numbers, not for classes"):
        made(PrivateLinearClassifier, loss="squared").fit(X, y)
    assert hasattr(made(PrivateLinearClassifier, loss="logistic"), "predict_proba")
    assert not hasattr(made(PrivateLinearClassifier, loss="hinge"), "predict_proba")


def test_a_scaler_that_is_copied_warns_of_its_budget_too() -> None:
    from sklearn.pipeline import make_pipeline

    X, _ = table(200)
    scaler = PrivateScaler(bounds=BOUNDS)
    model = make_pipeline(scaler, PrivateRidge(bounds=(-4.0, 4.0), y_bounds=Y_BOUNDS, noise="off"))
    with pytest.warns(SpendWarning, match="copy 2 of one PrivateScaler"):
        cross_val_score(model, X, X.sum(axis=1), cv=2)
