"""A fitted model: its algebra, its file, its predictions."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.data.integer_scores import IntegerScores, add_products, model_digest
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel, load_model
from colonnade.data.model_file import LossName

MODEL = LinearModel(
    job_id="ab" * 32,
    loss="squared",
    label=ModelLabel("stay", 0.0, 30.0),
    intercept_scaled=-0.25,
    features=(
        ModelFeature("hospital", "age", 0.0, 110.0, 44.0, 0.5),
        ModelFeature("hospital", "visits", 0.0, 50.0, 0.0, 0.0),
        ModelFeature("lab", "age", -1.0, 3.0, 1.0, -0.125),
        ModelFeature("lab", "glucose", 40.0, 400.0, 500.0, 0.3),
    ),
    private=True,
)


def random_model(seed: int, loss: LossName) -> LinearModel:
    draw = np.random.default_rng(seed)
    lows = draw.normal(0.0, 50.0, 6)
    features = tuple(
        ModelFeature(f"p{place % 2}", f"f{place}", float(low), float(low + width), 0.0, float(coef))
        for place, (low, width, coef) in enumerate(
            zip(lows, draw.exponential(20.0, 6) + 0.1, draw.normal(0.0, 0.5, 6), strict=True)
        )
    )
    return LinearModel("cd" * 32, loss, ModelLabel("y", -3.0, 8.0), 0.1, features, private=True)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_both_units_give_the_same_predictions(loss: LossName) -> None:
    model = random_model(1, loss)
    draw = np.random.default_rng(2)
    columns = {f.full_name: draw.uniform(f.low, f.high, 200) for f in model.features}
    linear = model.intercept + sum(
        coef * columns[f.full_name] for coef, f in zip(model.coef, model.features, strict=True)
    )
    expected = linear if loss == "squared" else 1.0 / (1.0 + np.exp(-linear))
    # Half a grid step for each feature, in the label's unit; a logistic function is no steeper.
    step = 5.5 * sum(abs(f.coef_scaled) for f in model.features) / (2 * GRID)
    np.testing.assert_allclose(model.predict(columns), expected, rtol=0, atol=1.01 * step)


def test_a_hinge_model_predicts_the_labels_two_values() -> None:
    model = random_model(1, "hinge")
    assert LinearModel.from_json(model.to_json()) == model
    draw = np.random.default_rng(2)
    columns = {f.full_name: draw.uniform(f.low, f.high, 200) for f in model.features}
    linear = model.intercept + sum(
        coef * columns[f.full_name] for coef, f in zip(model.coef, model.features, strict=True)
    )
    predicted = model.predict(columns)
    np.testing.assert_array_equal(predicted, np.where(linear > 0.0, 8.0, -3.0))
    assert {*predicted} == {8.0, -3.0}


def test_coefficients_follow_the_stated_algebra() -> None:
    assert MODEL.coef == pytest.approx((15 * 0.5 / 55, 0.0, 15 * -0.125 / 2, 15 * 0.3 / 180))
    shift = 0.5 * 55 / 55 - 0.125 * 1 / 2 + 0.3 * 220 / 180
    assert MODEL.intercept == pytest.approx(15 + 15 * (-0.25 - shift))
    logit = replace(MODEL, loss="logistic")
    assert logit.coef == pytest.approx((0.5 / 55, 0.0, -0.125 / 2, 0.3 / 180))
    assert logit.intercept == pytest.approx(-0.25 - shift)


def test_prediction_sees_what_training_saw() -> None:
    model = random_model(3, "squared")
    draw = np.random.default_rng(4)
    columns = {f.full_name: draw.normal(f.low, 2 * (f.high - f.low), 500) for f in model.features}
    trained = model.intercept_scaled + sum(
        f.coef_scaled * quantise(columns[f.full_name], f.bounds, grid=GRID) / GRID
        for f in model.features
    )
    # Coefficients are rounded to 2**-36 or finer here: far below half a grid step, 2**-15.
    np.testing.assert_allclose(model.decision_function(columns), trained, rtol=0, atol=2e-10)


def test_a_score_has_the_same_bits_however_its_columns_are_split() -> None:
    model = random_model(5, "logistic")
    draw = np.random.default_rng(6)
    columns = {
        f.full_name: draw.normal(f.low, 2 * (f.high - f.low), 70_000) for f in model.features
    }
    integers = IntegerScores.of(model)
    parts = []
    for chosen in ([4], [5, 0, 2], [1, 3]):
        total = np.zeros(70_000, np.int64)
        held = np.array([model.features[at].quantised(columns[NAMES[at]]) for at in chosen])
        add_products(total, held, [integers.coef[at] for at in chosen])
        parts.append(total)
    whole = integers.score(sum(parts[::-1], np.zeros(70_000, np.int64)))
    assert whole.tobytes() == model.decision_function(columns).tobytes()
    assert model.from_score(whole).tobytes() == model.predict(columns).tobytes()


NAMES = [f.full_name for f in random_model(5, "logistic").features]


@given(
    st.lists(st.floats(-1e300, 1e300, allow_subnormal=False), min_size=1, max_size=40),
    st.floats(-1e300, 1e300),
)
def test_no_part_of_256_overflows_whatever_the_coefficients(
    coef: list[float], intercept: float
) -> None:
    features = tuple(
        ModelFeature("p", f"f{at}", -1.0, 1.0, 0.0, each) for at, each in enumerate(coef)
    )
    integers = IntegerScores.of(replace(MODEL, features=features, intercept_scaled=intercept))
    extreme = GRID * sum(map(abs, (integers.intercept, *integers.coef)))
    assert extreme < 2**62 // 256


def test_models_that_differ_in_one_bit_have_other_digests() -> None:
    first = MODEL.features[0]
    nudged = msgspec.structs.replace(first, coef_scaled=float(np.nextafter(0.5, 1.0)))
    others = [
        replace(MODEL, features=(nudged, *MODEL.features[1:])),
        replace(MODEL, intercept_scaled=float(np.nextafter(-0.25, 0.0))),
        replace(MODEL, features=(msgspec.structs.replace(first, fill=45.0), *MODEL.features[1:])),
        replace(MODEL, loss="logistic"),
        replace(MODEL, job_id="cd" * 32),
    ]
    assert len({model_digest(each) for each in (MODEL, *others)}) == 6
    assert model_digest(replace(MODEL, private=False)) == model_digest(MODEL)
    assert model_digest(LinearModel.from_json(MODEL.to_json())) == model_digest(MODEL)


def test_values_are_clipped_and_missing_ones_become_the_fill_clipped_too() -> None:
    columns = {
        "hospital.age": np.array([200.0, -np.inf, 55.0, np.nan]),
        "lab.age": np.array([1.0, 1.0, np.inf, 1.0]),
        "glucose": np.array([220.0, 220.0, 220.0, np.nan]),
    }
    found = (MODEL.predict(columns) - 15.0) / 15.0
    missing = -0.25 + 0.5 * (44.0 - 55.0) / 55.0 + 0.3  # a fill of 500 is drawn to 400
    step = (0.5 + 0.125 + 0.3) / (2 * GRID)  # half a grid step for each feature
    np.testing.assert_allclose(found, [0.25, -0.75, -0.375, missing], atol=step)
    assert columns["hospital.age"][0] == 200.0  # the caller's arrays stay as they are


def test_values_next_to_the_largest_float_are_only_clipped() -> None:
    wide = replace(MODEL, features=(ModelFeature("p", "x", -1e120, 0.0, 0.0, 1.0),))
    found = wide.predict({"x": np.array([1.7e308, -1.7e308])})  # warnings are errors
    np.testing.assert_allclose(found, [15.0 + 15.0 * 0.75, 15.0 - 15.0 * 1.25])


def test_probabilities_do_not_overflow() -> None:
    feature = ModelFeature("p", "x", -1.0, 1.0, 0.0, 5000.0)
    model = LinearModel("j", "logistic", ModelLabel("y", 0.0, 1.0), 0.0, (feature,), private=True)
    found = model.predict({"x": np.array([-1.0, 0.0, 1.0])})
    assert found.tolist() == [0.0, 0.5, 1.0]


def test_a_name_that_two_parties_use_must_be_told_apart() -> None:
    names = ["age", "glucose"]
    with pytest.raises(BadInput, match=r"^t\.csv.*'hospital\.age', 'lab\.age'$"):
        MODEL.match(names, origin="t.csv")
    found = MODEL.match(["hospital.age", "lab.age", *names])
    assert [each.full_names[0] for each in found.values()] == [
        "hospital.age",
        "lab.age",
        "lab.glucose",
    ]
    assert list(found) == ["hospital.age", "lab.age", "glucose"]


def test_a_plain_name_never_stands_for_another_feature() -> None:
    features = (
        ModelFeature("a", "b", 0.0, 1.0, 0.5, 1.0),
        ModelFeature("p", "a.b", 0.0, 1.0, 0.5, 2.0),  # its plain name is the other's full name
    )
    model = replace(MODEL, features=features)
    with pytest.raises(BadInput, match=r"'p\.a\.b'$"):
        model.match(["a.b"])
    found = model.match(["a.b", "p.a.b"])
    assert {name: each.features for name, each in found.items()} == {
        "a.b": (features[0],),
        "p.a.b": (features[1],),
    }


def test_features_without_a_coefficient_are_not_needed() -> None:
    columns = {name: np.ones(3) for name in ("hospital.age", "lab.age", "glucose")}
    assert MODEL.predict(columns).shape == (3,)
    empty = replace(MODEL, features=(MODEL.features[1],))
    assert empty.predict({}, n_rows=2).tolist() == [11.25, 11.25]
    with pytest.raises(ValueError, match="one length"):
        empty.predict({})


def test_a_frames_column_may_have_a_name_that_cannot_be_printed() -> None:
    feature = ModelFeature("p", "a\u2028b", 0.0, 2.0, 1.0, 0.5)
    model = LinearModel("j", "squared", ModelLabel("y", -1, 1), 0.0, (feature,), private=True)
    assert model.predict({"a\u2028b": [2.0]}).tolist() == [0.5]


def test_columns_of_different_lengths_are_refused() -> None:
    columns = {"hospital.age": np.ones(3), "lab.age": np.ones(2), "glucose": np.ones(3)}
    with pytest.raises(ValueError, match="one length"):
        MODEL.predict(columns)


finite = st.floats(-1e6, 1e6)
ends = finite.map(lambda end: round(end, 9))  # bounds are no smaller than 1e-120


@given(intercept=finite, coef=finite, low=ends, width=st.floats(1e-3, 1e6), private=st.booleans())
def test_the_file_reads_back_exactly(
    intercept: float, coef: float, low: float, width: float, private: bool
) -> None:
    features = (
        ModelFeature("p", 'naïve "x"\u2028', low, low + width, low, coef),
        ModelFeature("q", "x", 0, 1, intercept, -coef),
    )
    model = LinearModel("j", "logistic", ModelLabel("y", 0, 1), intercept, features, private)
    text = model.to_json()
    again = LinearModel.from_json(text)
    assert again == model
    assert again.to_json() == text
    assert math.copysign(1.0, again.intercept_scaled) == math.copysign(1.0, intercept)


def test_the_file_names_format_parties_and_both_units() -> None:
    document = json.loads(MODEL.to_json())
    assert (document["format"], document["version"]) == ("colonnade model", 3)
    assert document["intercept"] == MODEL.intercept
    assert document["features"][3] == {
        "party": "lab",
        "name": "glucose",
        "low": 40.0,
        "high": 400.0,
        "fill": 500.0,
        "coef_scaled": 0.3,
        "group": "",
        "coef": MODEL.coef[3],
    }
    assert document["encodings"] == []


def test_models_from_before_there_were_encodings_are_read() -> None:
    old = MODEL.to_object() | {"version": 2}
    del old["encodings"], old["label"]["levels"]
    for feature in old["features"]:
        del feature["group"]
    assert LinearModel.from_object(old) == MODEL


def edited(**changes: Any) -> str:
    return json.dumps(MODEL.to_object() | changes)


def edited_feature(**changes: Any) -> str:
    features = MODEL.to_object()["features"]
    return edited(features=[features[0] | changes, *features[1:]])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a Colonnade model"),
        (edited(format="colonnade report"), "not a Colonnade model"),
        (edited(version=1), "not of version 3"),
        (edited(version=True), "not of version 3"),
        (edited(extra=1), "unknown key 'extra'"),
        (edited(**{"\ud800": 1}), ""),
        (edited(loss="\ud800"), ""),
        (edited_feature(weight=1), "[features 1 'age'] unknown key 'weight'"),
        (edited(label={"name": "y", "low": 0}), "[label 'y'] high: "),
        (edited(label=[]), "[label] "),
        (edited(features={}), "features: "),
        (edited(features=[3]), "[features 1] "),
        (edited(private="yes"), "private: "),
        (edited(private=1), "private: "),
        (edited(job_id=""), "job_id: "),
        (edited(loss="huber"), "loss: must be one of hinge, logistic, squared"),
        (edited(intercept=0.5), "'intercept' and the rest disagree"),
        (edited(intercept_scaled=10**400), "intercept_scaled: "),
        (edited(intercept_scaled=math.nan), "not valid JSON"),
        (edited(intercept_scaled=0.5).replace("0.5", "1e999"), "intercept_scaled: "),
        (edited_feature(coef=0.2), "feature 'hospital.age': 'coef' and 'coef_scaled' disagree"),
        (edited_feature(coef_scaled=0.6), "feature 'hospital.age': "),
        (edited_feature(low=110.0), "'age': low must be less than high"),
        (edited_feature(fill=None), "[features 1 'age'] fill: "),
        (edited_feature(fill=True), "[features 1 'age'] fill: "),
        (edited_feature(name=7), "[features 1] name: "),
        (edited_feature(party="lab", low=-1, high=3), "two features are called 'lab.age'"),
        (MODEL.to_json().replace('"loss"', '"loss": "squared",\n"loss"'), "not valid JSON"),
    ],
)
def test_a_file_with_a_fault_is_refused_in_one_line(text: str, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        LinearModel.from_json(text, origin="m.json")
    assert refused.value.code == "bad_input"
    assert str(refused.value).startswith(f"m.json: {where}")
    assert "\n" not in str(refused.value)


def test_coefficients_that_no_float_holds_are_refused() -> None:
    narrow = ModelFeature("p", "x", 0.0, 1e-80, 0.0, 1e300)
    with pytest.raises(ValueError, match="not finite"):
        replace(MODEL, features=(narrow,))
    with pytest.raises(ValueError, match="not finite"):
        replace(MODEL, intercept_scaled=math.nan)
    with pytest.raises(ValueError, match="fill"):
        replace(MODEL, features=(ModelFeature("p", "x", 0.0, 1.0, math.nan, 1.0),))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "absent.json", tmp_path / "m.json", tmp_path):
        with pytest.raises(BadInput) as refused:
            load_model(path)
        assert refused.value.code == "bad_input"
        assert str(refused.value).startswith(f"{path}: ")
    (tmp_path / "m.json").write_text(MODEL.to_json(), encoding="utf-8")
    assert load_model(tmp_path / "m.json") == MODEL


def test_bounds_are_those_of_the_fixed_point() -> None:
    assert MODEL.features[3].bounds == Bounds(40.0, 400.0)
    assert MODEL.label.bounds == Bounds(0.0, 30.0)
