"""Bounds of the estimators: fit and predict clip alike, and names decide whose bounds they are."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support import tables

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.estimators import (
    PrivateElasticNet,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateRidge,
)
from colonnade.estimators.bounds import read_bounds
from colonnade.solvers.algorithms.coordinate import CoordinateDescent

LOW, HIGH = np.array([-2.0, 1.0, 0.0]), np.array([2.0, 5.0, 0.5])
Y_BOUNDS = (-20.0, 20.0)
LONG = CoordinateDescent(passes=300, clip=16.0)


def outliers(n_rows: int = 600) -> tuple[FloatArray, FloatArray]:
    """Return rows, a tenth far outside the bounds, and a label made of the clipped ones."""
    draw = np.random.default_rng(11)
    X = draw.uniform(LOW, HIGH, (n_rows, 3))
    X[::10] *= 50.0
    y = np.clip(X, LOW, HIGH) @ [3.0, -1.0, 8.0] + draw.normal(0.0, 0.5, n_rows)
    return X, y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [PrivateLasso, PrivateElasticNet, PrivateRidge])
def test_a_regression_predicts_from_values_clipped_as_its_fit_clipped_them(
    kind: Any, fit_intercept: bool
) -> None:
    X, y = outliers()
    model = kind(1e-3, bounds=(LOW, HIGH), y_bounds=Y_BOUNDS, noise="off", solver=LONG)
    model.set_params(fit_intercept=fit_intercept).fit(X, y)
    low, high = model.bounds_
    np.testing.assert_array_equal(model.predict(X), model.predict(np.clip(X, low, high)))
    if fit_intercept:  # bounds are as declared, and the model is that of the label
        np.testing.assert_array_equal((low, high), (LOW, HIGH))
        # The label's noise leaves 1 - .25 / var(y), above .98; plain values would give R2 < 0.
        assert model.score(X, y) > 0.95
    else:
        np.testing.assert_array_equal(low, -high)


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
def test_a_classifier_scores_values_clipped_as_its_fit_clipped_them(kind: Any) -> None:
    X, y = outliers()
    model = kind(100.0, bounds=(LOW, HIGH), noise="off").fit(X, y > np.median(y))
    tame = np.clip(X, LOW, HIGH)
    for method in ("decision_function", "predict", "predict_proba", "predict_log_proba"):
        if hasattr(model, method):
            ours, theirs = getattr(model, method)(X), getattr(model, method)(tame)
            np.testing.assert_array_equal(ours, theirs)
    assert np.abs(model.decision_function(X) - X @ model.coef_[0] - model.intercept_).max() > 1.0


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("fitted_on", ["array", "matrix"])
def test_sparse_rows_are_clipped_like_dense_ones(form: str, fitted_on: str) -> None:
    X, y = outliers()
    X[::3, 1] = 0.0  # outside the bounds of an array's fit, which begin at 1
    matrix = sparse.coo_matrix(X).asformat(form)
    model = PrivateRidge(bounds=(LOW, HIGH), y_bounds=Y_BOUNDS, noise="off")
    model.fit(X if fitted_on == "array" else matrix, y)
    kept = matrix.copy()
    np.testing.assert_allclose(model.predict(matrix), model.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(matrix.toarray(), kept.toarray())
    twice = sparse.csr_matrix(([4.0, -3.9], [0, 0], [0, 2]), shape=(1, 3))  # two entries, one value
    expected = model.predict(np.array([[4.0 - 3.9, 0.0, 0.0]]))
    np.testing.assert_allclose(model.predict(twice), expected, rtol=1e-9)


def test_california_is_predicted_as_well_as_it_was_fitted() -> None:
    header, rows = tables.read("california")
    X, y = rows[:, :-1], rows[:, -1]
    declared = {
        "MedInc": (0.0, 10.0),
        "HouseAge": (0.0, 52.0),
        "AveRooms": (1.0, 10.0),
        "AveBedrms": (0.0, 2.0),
        "Population": (0.0, 4000.0),
        "AveOccup": (1.0, 6.0),
        "Latitude": (32.5, 42.0),
        "Longitude": (-124.5, -114.0),
    }
    bounds = np.array([declared[name] for name in header[:-1]]).T
    model = PrivateRidge(bounds=tuple(bounds), y_bounds=(0.0, 5.0), epsilon=2.0, noise="fast")
    model.fit(X[::2], y[::2])
    # Least squares on clipped values has R2 .668 on the other rows, and noise at this epsilon left
    # .648 or more for each of 20 seeds. Rows with a thousand people in a house made it -.5 or less.
    assert model.score(X[1::2], y[1::2]) > 0.6


NAMES = ("a", "b", "c")
EXPECTED = tuple(Bounds(low, high) for low, high in zip(LOW.tolist(), HIGH.tolist(), strict=True))
BY_NAME = dict(zip(NAMES, zip(LOW.tolist(), HIGH.tolist(), strict=True), strict=True))
TURNED = dict(reversed(BY_NAME.items()))


@pytest.mark.parametrize(
    "bounds",
    [
        (LOW, HIGH),
        TURNED,
        ({name: low for name, (low, _) in TURNED.items()}, HIGH),
        ({name: low for name, (low, _) in TURNED.items()}, dict(zip(NAMES, HIGH, strict=True))),
        (LOW.tolist(), tuple(HIGH.tolist())),
    ],
    ids=["arrays", "dict of pairs", "dict and array", "pair of dicts", "lists"],
)
def test_named_bounds_go_to_their_names(bounds: Any) -> None:
    assert read_bounds(bounds, 3, names=NAMES) == EXPECTED


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"a": (0, 1), "b": (0, 1)}, "^bounds: none for 'c'$"),
        (BY_NAME | {"d": (0, 1)}, "'d'"),
        ({"a": (0, 1), "b": (0, 1), "C": (0, 1)}, "'c'; 'C'"),
        ((dict.fromkeys("ab", 0), 1), r"low: .*'c'"),
        ((0, dict.fromkeys("abd", 1)), r"high: .*'c'; 'd'"),
        ({0: (0, 1), 2: (0, 1), 1: (0, 1)}, "none for 'a', 'b', 'c'"),
        (BY_NAME | {"b": (2, 1)}, "'b': low"),
        (BY_NAME | {"c": (0, float("nan"))}, r"'c': .*finite"),
        (BY_NAME | {"c": (0, 1, 2)}, "pair"),
        (BY_NAME | {"c": 1}, "pair"),
        (BY_NAME | {"c": ("x", 1)}, r"low .*number"),
        ({}, "none for 'a', 'b', 'c'"),
    ],
)
def test_a_name_without_a_partner_is_an_error_that_says_which(bounds: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_bounds(bounds, 3, names=NAMES)


def test_named_bounds_are_refused_for_rows_without_names() -> None:
    with pytest.raises(ValueError, match="names"):
        read_bounds(BY_NAME, 3)
    places = {2: BY_NAME["c"], 0: BY_NAME["a"], 1: BY_NAME["b"]}
    assert read_bounds(places, 3) == EXPECTED


def test_bounds_of_pandas_are_matched_by_name_in_fit() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = outliers()
    frame = pandas.DataFrame(X, columns=NAMES)
    low, high = pandas.Series(LOW, NAMES), pandas.Series(HIGH, NAMES)
    turned = pandas.DataFrame({"high": high, "low": low}).loc[["c", "a", "b"]]
    plain = PrivateRidge(bounds=(LOW, HIGH), y_bounds=Y_BOUNDS, noise="off").fit(frame, y)
    for bounds in (
        (low, high),
        (low[::-1], high),
        (low.sort_values(), high.sort_values()),
        turned,
        BY_NAME,
        turned.T,
        (LOW, high),  # an array has no names to go by
    ):
        model = PrivateRidge(bounds=bounds, y_bounds=Y_BOUNDS, noise="off").fit(frame, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))


def test_pandas_bounds_that_cannot_be_matched_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = outliers()
    frame = pandas.DataFrame(X, columns=NAMES)
    low, high = pandas.Series(LOW, NAMES), pandas.Series(HIGH, NAMES)
    for data, bounds, told in (
        (frame, (low.rename({"a": "A"}), high), "low: none for 'a'; 'A' is no feature"),
        (frame, (low, high.iloc[:2]), "high: none for 'c'"),
        (frame, (pandas.concat([low, low]), high), "named twice"),
        (frame, pandas.DataFrame({"low": low, "top": high}), "must be a pair"),
        (frame, pandas.DataFrame({0: low, 1: high}), "must be a pair"),
        (frame[["a", "b"]], high.iloc[:2], "must be a pair"),
        (X, (low, high), "the features have no names"),
        (frame, (pandas.Series(LOW), pandas.Series(HIGH)), "none for 'a', 'b', 'c'; 0, 1, 2 are"),
    ):
        with pytest.raises(ValueError, match=told):
            PrivateRidge(bounds=bounds, y_bounds=Y_BOUNDS, noise="off").fit(data, y)
