"""Models elsewhere: SQL and ONNX compute what `predict` does, bit for bit; a card says it all."""

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from support.reports import HOSTILE, QUALITY, make_moments, make_report

from colonnade.cli.main import main
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.data.encoding import Encoding
from colonnade.data.export.onnx import to_onnx
from colonnade.data.export.sql import partial_score, score_script
from colonnade.data.integer_scores import IntegerScores
from colonnade.data.kinds import Bool, Category, Date, Ordinal
from colonnade.data.model import LinearModel, ModelEncoding, ModelFeature, ModelLabel
from colonnade.data.model_file import LossName
from colonnade.report.card import to_card

ENCODINGS = (
    Encoding("stage", Ordinal(("I", "II", "III"), unknown=True), missing_indicator=True),
    Encoding("smoker", Bool()),
    Encoding("region", Category(("n'orth", "south"), other="rest", baseline="south")),
    Encoding("birth", Date(dt.date(1950, 1, 1))),
    Encoding("visit", Date(dt.date(2020, 1, 1), "%d.%m.%Y"), column="last visit"),
)


def make_model(loss: LossName = "squared") -> LinearModel:
    draw = np.random.default_rng(3)
    bounds = {"birth": (-10_000.0, 20_000.0), "visit": (-500.0, 1500.0), "stage": (0.0, 2.0)}
    names = [name for encoding in ENCODINGS for name in encoding.names]
    features = [
        ModelFeature("hospital", name, *bounds.get(name, (0.0, 1.0)), 0.3, float(draw.normal()))
        for name in names
    ]
    features += [
        ModelFeature("lab", "a", -1.7, 3.1, 0.25, 0.5),
        ModelFeature("lab", "b", 0.1, 0.7, 0.3, -0.75),
        ModelFeature("lab", "unused", 0.0, 1.0, 0.5, 0.0),
    ]
    encodings = tuple(ModelEncoding.of("hospital", each) for each in ENCODINGS)
    label = ModelLabel("stay", 0.0, 30.0)
    return LinearModel("ab" * 32, loss, label, -0.2, tuple(features), True, encodings)


def raw_columns(n_rows: int = 300) -> dict[str, Any]:
    """Return raw values: texts with blanks around them, unknown stages, halves of grid steps."""
    draw = np.random.default_rng(4)

    def some(*values: str | None) -> list[str | None]:
        return [values[place] for place in draw.integers(0, len(values), n_rows)]

    step = 2.4 / GRID  # of a, whose bounds are 4.8 apart: halves of it are ties
    return {
        "stage": some("I", " II ", "III", "IV", "NA", None),
        "smoker": some("Yes", "no", "T", "0", "", None),
        "region": some("n'orth", "south", "west", "NA"),
        "birth": some("1960-02-29", "2001-12-31", "1900-01-01"),
        "last visit": some("01.02.2021", "31.12.2019", None),
        "a": np.where(draw.random(n_rows) < 0.1, np.nan, step / 2 * draw.integers(-9, 9, n_rows)),
        "b": draw.normal(0.4, 1.0, n_rows),
    }


def test_each_partys_sql_gives_the_integers_of_predict() -> None:
    model, columns = make_model(), raw_columns()
    integers, total = IntegerScores.of(model), np.zeros(300, np.int64)
    connection = duckdb.connect()
    kinds = {name: "DOUBLE" if name in "ab" else "VARCHAR" for name in columns}
    declared = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    connection.execute(f"CREATE TABLE t ({declared})")
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(kinds))})", rows)
    for party in ("hospital", "lab"):
        found = connection.execute(f"SELECT {partial_score(model, party)} FROM t").fetchall()
        part = np.array([row[0] for row in found], np.int64)
        assert np.unique(part).size > 10
        total += part
    assert np.array_equal(integers.score(total), model.decision_function(columns))
    script = score_script(model)
    assert script.count("AS partial_score") == 2
    assert str(integers.intercept * GRID) in script


def test_a_text_that_predict_refuses_has_no_score_in_sql() -> None:
    model, columns = make_model(), raw_columns(2) | {"smoker": ["perhaps", "no"]}
    with pytest.raises(BadInput):
        model.predict(columns)
    connection = duckdb.connect()
    values = ", ".join(
        f"(NULL, '{columns['smoker'][place]}', 'south', '1960-02-29', NULL)" for place in range(2)
    )
    names = '"stage", "smoker", "region", "birth", "last visit"'
    query = f"SELECT {partial_score(model, 'hospital')} FROM (VALUES {values}) AS t({names})"
    unknown, known = (row[0] for row in connection.execute(query).fetchall())
    assert unknown is None
    assert known is not None


@pytest.mark.parametrize(
    "rows",
    ["('1'), ('-999'), (' NA '), ('-999.0'), (NULL)", "(1.0), (-999.0), ('nan'::DOUBLE), (-999)"],
)
def test_numbers_that_mean_no_value_are_filled_in_sql_as_in_predict(rows: str) -> None:
    feature = ModelFeature("lab", "a", low=0.0, high=10.0, fill=7.0, coef_scaled=0.5)
    encoding = ModelEncoding.of("lab", Encoding("a", missing=("", "NA", "-999")))
    label = ModelLabel("y", 0.0, 1.0)
    model = LinearModel("ab" * 32, "squared", label, 0.0, (feature,), True, (encoding,))
    table = duckdb.connect().execute(f"CREATE TABLE t AS FROM (VALUES {rows}) AS t(a)")
    found = table.execute(f"SELECT {partial_score(model, 'lab')} FROM t").fetchnumpy()
    part = next(iter(found.values()))
    raw = table.execute("SELECT a FROM t").fetchall()
    known, filled = model.decision_function({"a": [1.0, 7.0]})
    assert np.array_equal(IntegerScores.of(model).score(part)[1:], [filled] * (len(raw) - 1))
    assert IntegerScores.of(model).score(part)[0] == known != filled
    assert np.array_equal(
        model.decision_function({"a": np.array([row[0] for row in raw], object)}),
        IntegerScores.of(model).score(part),
    )


def test_a_text_that_is_no_number_has_no_score_in_sql() -> None:
    query = f"SELECT {partial_score(make_model(), 'lab')} FROM (VALUES ('x', '0.2')) AS t(a, b)"
    assert duckdb.connect().execute(query).fetchall() == [(None,)]


def test_sql_refuses_what_it_cannot_write() -> None:
    with pytest.raises(BadInput, match="feature"):
        partial_score(make_model(), "insurer")
    with pytest.raises(BadInput, match="dialect"):
        partial_score(make_model(), "lab", "ansi")
    with pytest.raises(BadInput, match="format"):
        partial_score(make_model(), "hospital", "postgresql")
    assert "round(" in partial_score(make_model(), "lab", "postgresql")


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_an_onnx_graph_predicts_as_the_model_does(loss: LossName) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    features = make_model(loss).features[-3:]
    model = LinearModel("ab" * 32, loss, ModelLabel("y", -3.0, 8.0), 0.1, features, private=True)
    columns = {name: raw_columns()[name] for name in "ab"}
    graph = to_onnx(model)
    onnx.checker.check_model(graph, full_check=True)
    inputs = {f"lab.{name}": column[:, None] for name, column in columns.items()}
    score, prediction = map(np.asarray, ReferenceEvaluator(graph).run(None, inputs))
    assert np.array_equal(score[:, 0], model.decision_function(columns))
    assert np.array_equal(prediction[:, 0], model.predict(columns))


def test_a_card_has_the_reports_numbers_and_shows_names_as_they_are() -> None:
    contribution = {name: {"alone": 0.3, "without": 0.5} for name in ("a|b", "x", "y")}
    report = make_report(
        parties=["a|b", "x", "y"],
        method="moments",
        moments=make_moments(["a|b", "x", "y"]),
        contribution=contribution,
        quality=QUALITY,
    )
    card = to_card(report)
    assert "R² 0.732 ± 0.120" in card
    assert "a\\|b: alone 0.30" in card
    assert "auc 0.712" in card
    assert report["privacy"]["statement"].replace("|", "\\|") in card
    assert card.count("| a\\|b |") == 1 + 4  # its price, its columns
    hostile = to_card(make_report(parties=[HOSTILE, "x", "y"], feature=HOSTILE))
    assert "<" not in hostile.replace("\\<", "")


def test_the_command_writes_all_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    (tmp_path / "model.json").write_text(make_model().to_json())
    run = str(tmp_path)
    assert main(["export", run, "--format", "sql", "--party", "lab"]) == 0
    assert capsys.readouterr().out == partial_score(make_model(), "lab") + "\n"
    out = tmp_path / "model.onnx"
    assert main(["export", run, "--format", "onnx", "--out", str(out)]) == 0
    assert out.read_bytes() == to_onnx(make_model()).SerializeToString()
    assert main(["export", run, "--format", "onnx", "--out", str(out)]) == 3  # it exists
    assert main(["export", run, "--format", "onnx"]) == 2  # no file is named
    assert main(["export", run, "--format", "card"]) == 3  # there is no report
