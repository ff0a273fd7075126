"""A scaler that pays, and pipelines: what they promise together, and which steps leak."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.estimators import (
    Claim,
    DataDependentStepWarning,
    PrivatePipeline,
    PrivateRidge,
    PrivateScaler,
    compose_claims,
    data_dependent_steps,
    make_private_pipeline,
    privacy_of,
    scaling,
)
from colonnade.privacy.accounting import epsilon_of
from colonnade.solvers import StochasticDescent
from colonnade.solvers.budgets import plan_units
from colonnade.solvers.designs.dense import dense_design

LOW, HIGH = np.array([0.0, -2.0, 5.0]), np.array([100.0, 8.0, 6.0])
Y_BOUNDS = (-10.0, 10.0)


def table(n_rows: int = 5000) -> tuple[FloatArray, FloatArray]:
    draw = np.random.default_rng(12)
    X = draw.normal([40.0, 1.0, 5.4], [6.0, 0.5, 0.1], (n_rows, 3))
    return X, (X - [40.0, 1.0, 5.4]) @ [0.3, 2.0, 5.0] + draw.normal(0.0, 0.5, n_rows)


def ridge(**more: Any) -> Any:
    return PrivateRidge(**{"bounds": (-4.0, 4.0), "y_bounds": Y_BOUNDS} | more)


def scaler(**more: Any) -> Any:
    return PrivateScaler(**{"bounds": (LOW, HIGH)} | more)


def test_without_noise_the_scaler_is_scikit_learns_on_clipped_values() -> None:
    X, _ = table()
    mine = scaler(noise="off", clip=None).fit(X)
    reference = StandardScaler().fit(np.clip(X, LOW, HIGH))
    # Values are rounded to 2**-15 of their range: 1e-3 of the smallest deviation here.
    widths = HIGH - LOW
    np.testing.assert_allclose(mine.mean_, reference.mean_, atol=float(widths.max()) * 2.0**-15)
    np.testing.assert_allclose(mine.scale_, reference.scale_, rtol=2e-3)
    np.testing.assert_allclose(mine.transform(X), reference.transform(X.clip(LOW, HIGH)), atol=0.02)
    np.testing.assert_allclose(mine.var_, mine.scale_**2)
    back = mine.inverse_transform(mine.transform(X))
    np.testing.assert_allclose(back, X.clip(LOW, HIGH), rtol=1e-9)


def test_the_results_lie_within_what_the_next_step_declares() -> None:
    X, _ = table()
    X[0] = [1e9, -1e9, math.pi]
    for clip in (4.0, 2.5):
        found = scaler(clip=clip, epsilon=5.0).fit(X).transform(X)
        assert np.abs(found).max() <= clip
    plain = scaler(with_std=False).fit(X)
    assert plain.scale_ is None
    np.testing.assert_allclose(plain.transform(X), X.clip(LOW, HIGH) - plain.mean_)
    same = scaler(with_mean=False, noise="off", clip=None).fit(X)
    np.testing.assert_allclose(same.transform(X), X.clip(LOW, HIGH) / same.scale_)


def test_the_scaler_claims_what_it_spends() -> None:
    X, _ = table()
    for with_std, kinds in ((True, ["sums", "sums of squares"]), (False, ["sums"])):
        claim = scaler(with_std=with_std, epsilon=0.7, delta=1e-5).fit(X).privacy_
        assert [release["kind"] for release in claim.releases] == kinds
        rho = sum(
            int(each["l2_sensitivity2"]) / (2 * int(each["sigma2"])) for each in claim.releases
        )
        assert claim.private
        assert claim.rho == pytest.approx(rho, rel=1e-9)
        assert 0.69 < epsilon_of(rho, 1e-5) <= 0.7
    assert not scaler(noise="fast").fit(X).privacy_.private


def test_replacing_one_row_moves_the_sums_by_what_they_are_priced_for() -> None:
    bounds = [Bounds(0.0, 1.0)] * 3
    plan = plan_units(scaling._parts(3, squares=True), 2**40)
    asked: list[dict[str, Any]] = []
    rows = np.random.default_rng(0).uniform(0.0, 1.0, (50, 3))
    for corner in (0.0, 0.5, 1.0):
        rows[7] = corner
        seen: dict[str, Any] = {}

        def release(kind, round_, mechanism, compute, seen=seen):  # type: ignore[no-untyped-def]
            seen[kind] = mechanism, compute()
            return seen[kind][1]

        scaling._moments(dense_design(rows, bounds), plan, release)
        asked.append(seen)
    low, middle, high = asked
    for kind, one, two in (("sums", low, high), ("sums of squares", low, middle)):
        mechanism, first = one[kind]
        moved = (first - two[kind][1]).astype(object)
        assert int((moved**2).sum()) == mechanism.l2_sensitivity2  # the bound is attained
    assert low["sums"][0].l2_sensitivity2 == 3 * (2 * GRID) ** 2


@pytest.mark.slow
def test_the_scaler_adds_the_noise_that_it_says() -> None:
    # The deviation of 400 numbers is known to 1 / sqrt(800) = 3.5 %: 4.5 of these are allowed, and
    # half the noise would be 50 % off. The bounds, at which means are clipped, are 5 sigma away.
    X = np.full((100, 1), 0.25)
    means = [PrivateScaler(bounds=(0.0, 1.0), with_std=False).fit(X).mean_[0] for _ in range(400)]
    (release,) = PrivateScaler(bounds=(0.0, 1.0), with_std=False).fit(X).privacy_.releases
    sigma = math.sqrt(int(release["sigma2"])) / GRID / 100 * 0.5  # half of the range is GRID steps
    assert 5 * sigma < 0.25
    assert np.std(means) == pytest.approx(sigma, rel=0.16)


def test_a_deviation_that_noise_hides_is_not_taken_for_a_small_one() -> None:
    X = np.full((100, 2), 3.0)
    found = scaler(bounds=(0.0, 10.0), noise="fast").fit(X)
    assert (found.scale_ > 0.5).all()
    exact = scaler(bounds=(0.0, 10.0), noise="off").fit(X)
    assert np.isfinite(exact.transform(X)).all()
    assert (exact.scale_ > 0.0).all()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"bounds": None}, "bounds"),
        ({"with_mean": False, "with_std": False}, "nothing to do"),
        ({"clip": 0.0}, "clip must"),
        ({"clip": math.nan}, "clip must"),
        ({"noise": "none"}, "noise must"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.5}, "delta"),
    ],
    ids=str,
)
def test_a_scaler_that_makes_no_sense_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        scaler(**more).fit(table(100)[0])


def test_a_scaled_pipeline_learns_and_its_claim_is_the_sum() -> None:
    X, y = table()
    model = make_private_pipeline(scaler(epsilon=0.5), ridge(epsilon=1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    first, second = (step.privacy_ for _, step in model.steps)
    total = model.privacy_
    assert total.private
    assert total.rho == pytest.approx(first.rho + second.rho)
    assert total.epsilon == pytest.approx(epsilon_of(first.rho + second.rho, 1e-6), rel=1e-9)
    assert max(first.epsilon, second.epsilon) < total.epsilon < 1.5
    assert total.releases == (*first.releases, *second.releases)
    assert total == privacy_of(model) == privacy_of(Pipeline(model.steps))
    # Without noise R2 is 0.947; the noise at this epsilon left 0.886 or more in 20 runs.
    assert model.score(X, y) > 0.7


def claim(rho: float | None, epsilon: float, delta: float, *, private: bool = True) -> Claim:
    return Claim(private, epsilon, delta, rho, rho or 9.0, "s", 1.0 if rho else 0.1, ())


def test_claims_compose_in_zcdp_and_others_beside_it() -> None:
    known = claim(0.02, epsilon_of(0.02, 1e-6), 1e-6), claim(0.03, epsilon_of(0.03, 1e-7), 1e-7)
    both = compose_claims(known)
    assert both.rho == pytest.approx(0.05)
    assert both.delta == 1e-6
    assert both.epsilon == pytest.approx(epsilon_of(0.05, 1e-6))
    sampled = claim(None, 0.4, 1e-6)
    mixed = compose_claims([known[0], sampled, sampled])
    assert mixed.rho is None
    assert mixed.epsilon == pytest.approx(known[0].epsilon + 0.8)
    assert mixed.delta == pytest.approx(3e-6)
    assert mixed.sampling_rate == 0.1
    assert not compose_claims([*known, claim(0.1, 1.0, 1e-6, private=False)]).private
    assert compose_claims([sampled]).epsilon == 0.4
    with pytest.raises(ValueError, match="no claim"):
        compose_claims([])


def test_a_pipeline_with_secret_batches_adds_epsilons() -> None:
    X, y = table(2000)
    solver = StochasticDescent(passes=1, batch_size=100)
    model = make_private_pipeline(scaler(epsilon=0.5), ridge(epsilon=1.0, solver=solver)).fit(X, y)
    assert model.privacy_.rho is None
    assert 1.45 < model.privacy_.epsilon <= 1.5
    assert model.privacy_.delta == pytest.approx(2e-6)


LEAKS = [
    (StandardScaler(), True),
    (PCA(2), True),
    (SimpleImputer(), True),
    (OneHotEncoder(), True),
    (OrdinalEncoder(), True),
    (OneHotEncoder(categories=[[0.0, 1.0]], min_frequency=2), True),
    (OneHotEncoder(categories=[[0.0, 1.0]]), False),
    (OrdinalEncoder(categories=[[0.0, 1.0]]), False),
    (FunctionTransformer(np.log1p), False),
    (Normalizer(), False),
    (PolynomialFeatures(2), False),
    (PrivateScaler(), False),
    ("passthrough", False),
    (None, False),
    (ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]), True),
    (ColumnTransformer([("a", PrivateScaler(), [0]), ("b", "drop", [1])]), False),
    (FeatureUnion([("a", Normalizer()), ("b", PCA(1))]), True),
    (make_pipeline(Normalizer(), StandardScaler()), True),
]


@pytest.mark.parametrize(("step", "leaks"), LEAKS, ids=lambda part: repr(part)[:60])
def test_steps_that_learn_without_noise_are_found(step: Any, leaks: bool) -> None:
    assert (
        bool(data_dependent_steps(Pipeline([("first", step), ("last", PrivateRidge())]))) is leaks
    )


def test_a_leaking_step_is_named_however_deep_it_is() -> None:
    inner = ColumnTransformer([("left", make_pipeline(Normalizer(), PCA(1)), [0])])
    model = Pipeline([("prepare", inner), ("fit", LinearRegression())])
    assert data_dependent_steps(model) == ("prepare__left__pca", "fit")


def test_a_private_pipeline_warns_before_it_fits_and_promises_nothing() -> None:
    X, y = table(300)
    model = make_private_pipeline(StandardScaler(), ridge())
    with pytest.warns(DataDependentStepWarning, match="standardscaler learns"):
        model.fit(X, y)
    assert not model.privacy_.private
    assert "not private" in str(model.privacy_)
    with pytest.warns(DataDependentStepWarning), pytest.raises(ValueError, match="y_bounds"):
        make_private_pipeline(StandardScaler(), ridge(y_bounds=None)).fit(X, y)
    with pytest.warns(DataDependentStepWarning):
        make_private_pipeline(StandardScaler(), scaler(bounds=(-4.0, 4.0))).fit_transform(X)


def test_a_private_model_warns_of_the_plain_pipeline_that_fits_it_once_and_where() -> None:
    X, y = table(300)
    leaking = make_pipeline(make_pipeline(StandardScaler()), scaler(bounds=(-4.0, 4.0)), ridge())
    for model in (leaking, make_pipeline(leaking)):
        with pytest.warns(DataDependentStepWarning, match="standardscaler learns") as told:
            model.fit(X, y)
        assert told[-1].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(scaler(), ridge()).fit(X, y)
        make_pipeline(StandardScaler(), ridge(noise="off")).fit(X, y)  # it promises nothing


def test_a_plain_pipeline_is_seen_through_afterwards() -> None:
    X, y = table(300)
    with pytest.warns(DataDependentStepWarning, match="standardscaler"):
        model = make_pipeline(StandardScaler(), ridge()).fit(X, y)
    with pytest.warns(DataDependentStepWarning, match="standardscaler"):
        assert not privacy_of(model).private
    with pytest.raises(ValueError, match="step"):
        privacy_of(make_pipeline(StandardScaler(), ridge()))
    assert privacy_of(model[-1]) == model[-1].privacy_


def test_a_step_that_was_checked_may_be_declared_public() -> None:
    X, y = table(300)
    steps = [("scale", StandardScaler()), ("ridge", ridge())]
    model = PrivatePipeline(steps, public_steps=["scale"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.privacy_.private
    assert clone(model).public_steps == ["scale"]
    with pytest.warns(DataDependentStepWarning):
        model.set_params(public_steps=["ridge"]).fit(X, y)
    assert not model.privacy_.private
