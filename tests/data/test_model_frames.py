"""A model reads tables of any library by column names, and predicts the same in scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.data.frames import columns_of, is_frame
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel

FEATURES = (
    ModelFeature("hospital", "age", low=0.0, high=100.0, fill=40.0, coef_scaled=0.5),
    ModelFeature("hospital", "visits", low=0.0, high=10.0, fill=1.0, coef_scaled=-0.25),
    ModelFeature("laboratory", "iron", low=-5.0, high=5.0, fill=0.0, coef_scaled=0.125),
)
# The second row is clipped, the third has missing values; the columns are in another order.
ROWS = {
    "iron": [1.0, 50.0, None],
    "note": ["a", None, "c"],
    "visits": [3, 4, None],
    "age": [50.0, -7.0, 61.0],
}
# (2 x - low - high) / (high - low), clipped, with the fills: each row's scaled values.
SCALED = np.array([[0.0, -0.4, 0.2], [-1.0, -0.2, 1.0], [0.22, -0.8, 0.0]])


class Stream:
    """Only the Arrow C stream interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def arrow(_columns: dict[str, Any]) -> Any:
    import duckdb

    values = "(1.0, 'a', 3, 50.0), (50.0, NULL, 4, -7.0), (NULL, 'c', NULL, 61.0)"
    return Stream(duckdb.sql(f"SELECT * FROM (VALUES {values}) AS t(iron, note, visits, age)"))


def library(name: str, make: str) -> Callable[[dict[str, Any]], Any]:
    def made(columns: dict[str, Any]) -> Any:
        return getattr(pytest.importorskip(name), make)(columns)

    return made


def nullable(columns: dict[str, Any]) -> Any:
    frame = pd.DataFrame(columns, index=[7, 7, 9]).astype({"visits": "Int64"})
    return frame.assign(note=frame["note"].astype("category"))


TABLES = {
    "mapping": lambda columns: {
        name: np.array(values, dtype=object if name == "note" else float)
        for name, values in columns.items()
    },
    "pandas": pd.DataFrame,
    "pandas with nullable columns": nullable,
    "arrow stream": arrow,
    "polars": library("polars", "DataFrame"),
    "pyarrow": library("pyarrow", "table"),
}


def model(loss: Any = "squared", label: ModelLabel | None = None) -> LinearModel:
    label = label or ModelLabel("cost", low=0.0, high=1000.0)
    return LinearModel("ab", loss, label, 0.1, FEATURES, private=True)


def expected() -> Any:
    return 0.1 + (np.rint(SCALED * GRID) / GRID) @ np.array([0.5, -0.25, 0.125])


@pytest.mark.parametrize("table", TABLES)
def test_every_kind_of_table_is_read_by_column_names(table: str) -> None:
    frame = TABLES[table](ROWS)
    assert is_frame(frame)
    found = model().predict(frame)
    np.testing.assert_allclose(found, 500.0 + 500.0 * expected(), rtol=1e-12)


@pytest.mark.parametrize("table", TABLES)
def test_missing_texts_are_none_and_missing_numbers_are_nan(table: str) -> None:
    columns = columns_of(TABLES[table](ROWS))
    assert set(columns) == set(ROWS)
    assert columns["note"].tolist() == ["a", None, "c"]
    assert np.isnan(columns["visits"].astype(float)).tolist() == [False, False, True]


def test_what_is_no_number_or_no_table_is_refused_without_showing_it() -> None:
    with pytest.raises(BadInput, match="'age'") as refused:
        model().predict({"age": ["kept secret"], "visits": [1], "iron": [1]})
    assert "secret" not in str(refused.value)
    with pytest.raises(BadInput, match="'age'"):
        model().predict(
            {"age": np.array(["2020-01-01"], "datetime64[D]"), "visits": [1], "iron": [1]}
        )
    with pytest.raises(BadInput, match="'laboratory"):
        model().predict(pd.DataFrame({"age": [1.0], "visits": [2.0]}))
    with pytest.raises(BadInput, match="list"):
        model().predict([[1.0, 2.0, 3.0]])
    twice = pd.DataFrame([[1.0, 2.0]], columns=["age", "age"])
    with pytest.raises(BadInput, match="names"):
        model().predict(twice)


def test_a_model_that_needs_no_column_still_predicts_every_row() -> None:
    empty = LinearModel("ab", "squared", ModelLabel("y", 0.0, 2.0), 0.5, (), private=True)
    assert empty.predict(pd.DataFrame({"other": range(3)})).tolist() == [1.5, 1.5, 1.5]
    with pytest.raises(ValueError, match="n_rows"):
        empty.predict({"other": [1, 2]})


def test_only_a_logistic_model_has_probabilities() -> None:
    probabilities = model("logistic").predict_proba(ROWS | {"visits": [3.0, 4.0, np.nan]})
    assert probabilities.shape == (3, 2)
    np.testing.assert_allclose(probabilities[:, 1], 1.0 / (1.0 + np.exp(-expected())))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    with pytest.raises(BadInput, match="squared loss"):
        model().predict_proba(ROWS)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_the_estimator_predicts_exactly_what_the_model_does(loss: str) -> None:
    fitted = model(loss, ModelLabel("late", low=-1.0, high=3.0))
    estimator = fitted.to_sklearn()
    frame = pd.DataFrame(ROWS)
    array = frame[[name.partition(".")[2] for name in estimator.feature_names_in_]].to_numpy(float)
    for given in (frame, array):
        if loss == "logistic":
            assert (estimator.predict_proba(given) == fitted.predict_proba(frame)).all()
            chosen = np.where(fitted.predict(frame) > 0.5, 3.0, -1.0)
            assert (estimator.predict(given) == chosen).all()
        else:
            assert (estimator.predict(given) == fitted.predict(frame)).all()
    assert estimator.n_features_in_ == 3
    with pytest.raises(BadInput, match="3 columns"):
        estimator.predict(array[:, :2])


def test_the_estimator_ends_a_pipeline_that_is_fitted_scored_and_cloned() -> None:
    months = pd.DataFrame(ROWS).assign(age=lambda frame: frame["age"] * 12)
    in_years = FunctionTransformer(lambda frame: frame.assign(age=frame["age"] / 12))
    pipeline = make_pipeline(in_years, model().to_sklearn())
    wanted = model().predict(pd.DataFrame(ROWS).assign(age=lambda frame: frame["age"] * 12 / 12))
    assert (pipeline.predict(months) == wanted).all()  # without fitting
    cost = np.array([400.0, 100.0, 600.0])
    refitted = clone(pipeline).fit(months, cost)
    assert (refitted.predict(months) == wanted).all()  # fitting changes nothing
    assert refitted.score(months, cost) == r2_score(cost, wanted)


def test_coefficients_are_a_frame_and_without_pandas_a_dict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = model().coefficients()
    assert list(frame["feature"]) == ["age", "visits", "iron"]
    # In the users' units: half of the label's width times the scaled one over the half width.
    np.testing.assert_allclose(frame["coef"], [500 * 0.5 / 50, 500 * -0.25 / 5, 500 * 0.125 / 5])
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    columns = model().coefficients()
    assert isinstance(columns, dict)
    assert columns["coef"] == list(frame["coef"])
    assert columns["party"] == ["hospital", "hospital", "laboratory"]
