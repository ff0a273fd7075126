"""Raw columns end to end: prediction sees what training saw, and a category moves by two."""

import csv
import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import handle
from support.vaults import HUB

from colonnade.client.builder import build_job
from colonnade.client.options import JobOptions
from colonnade.client.views import PartyOffer
from colonnade.core.errors import BadInput, BadMessage
from colonnade.core.fixedpoint import GRID
from colonnade.data.model import (
    Input,
    LinearModel,
    ModelEncoding,
    ModelFeature,
    ModelLabel,
    load_model,
)
from colonnade.data.schema import parse_schema
from colonnade.data.table import Table
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.linear.sums import sums
from colonnade.methods.base import Part
from colonnade.methods.frank_wolfe.plan import recommend as recommend_frank_wolfe
from colonnade.methods.groups import moved_columns
from colonnade.methods.job import Job
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.spec import MEANS
from colonnade.methods.problem import Problem
from colonnade.methods.sealed.plan import recommend as recommend_sealed
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import Dataset, open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.policy_file import load_policy
from colonnade.party.vault.vault import Vault
from colonnade.privacy.accounting import RHO_UNIT, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.simulation import SeededNoise
from colonnade.wire.jobspec import feature_from_proto

N_ROWS = 600
SCHEMA = """
delimiter = ";"
decimal = ","
missing = ["", "?"]

[[feature]]
name = "age"
column = "Age (years)"
low = 0
high = 110
fill = 40
missing_indicator = true

[[feature]]
name = "ward"
type = "category"
levels = ["north", "south", "NA"]
other = "rest"
baseline = "south"

[[feature]]
name = "job"
type = "category"
levels = ["none", "some"]
unknown = "missing"
missing_indicator = true

[[feature]]
name = "smoker"
type = "bool"
yes = ["ja"]
no = ["nein"]

[[feature]]
name = "admitted"
type = "date"
low = 2020-01-01
high = 2020-12-31
reference = 2000-01-01
format = "%d.%m.%Y"

[[feature]]
name = "pain"
type = "ordinal"
levels = ["low", "mid", "high"]
values = [0, 1, 4]

[label]
name = "outcome"
type = "category"
levels = ["dead", "alive"]
baseline = "alive"
"""
NAMES = (
    "age",
    "age=missing",
    "ward=north",
    "ward=NA",
    "ward=rest",
    "job=none",
    "job=some",
    "job=missing",
    "smoker",
    "admitted",
    "pain",
)
GROUPS = ("", "", "ward", "ward", "ward", "job", "job", "job", "", "", "")
EXACT = [name for name in NAMES if name not in ("age", "admitted")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("text")
    draw = np.random.default_rng(5)
    header = ["Age (years)", "ward", "job", "smoker", "admitted", "pain", "outcome"]
    choices = {
        "ward": ["north", "south", " NA", "east", "west", "?"],
        "job": ["none", "some", "many", ""],
        "smoker": ["ja", "nein", "nein ", "?"],
        "pain": ["low", "mid", "high", ""],
        "outcome": ["alive", "dead"],
    }
    with (made / "raw.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(header)
        for row in range(N_ROWS):
            cells = {name: str(draw.choice(texts)) for name, texts in choices.items()}
            age = "" if row % 7 == 0 else f"{draw.normal(50, 40):.2f}".replace(".", ",")
            day = "?" if row % 11 == 0 else f"{1 + row % 28:02}.{1 + row % 12:02}.2020"
            named = {"Age (years)": age, "admitted": day} | cells
            writer.writerow([named[name] for name in header])
    (made / "schema.toml").write_text(SCHEMA)
    schema = parse_schema(SCHEMA, origin="s")
    ingest(schema, FileSource(made / "raw.csv"), out=made / "data")
    return made


@pytest.fixture
def dataset(folder: Path) -> Dataset:
    with open_dataset(folder / "data") as opened:
        return opened


def test_prediction_from_the_raw_file_sees_what_training_saw(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table.open(folder / "data" / "coarse.table")
    assert (table.names, table.groups) == (NAMES, GROUPS)
    order = ("--data", folder / "raw.csv", "--schema", folder / "schema.toml", "--epsilon", 8)
    assert handle("fit", *order, "--loss", "logistic", "--out", tmp_path / "run") == 0
    model = load_model(tmp_path / "run" / "model.json")
    assert tuple(each.name for each in model.features) == NAMES
    assert tuple(each.group for each in model.features) == GROUPS
    assert model.label.levels == ("alive", "dead")
    assert all(each.coef_scaled for each in model.features)
    raw = ("--model", tmp_path / "run" / "model.json", "--data", folder / "raw.csv")
    options = ("--delimiter", ";", "--decimal", ",", "--out", tmp_path / "p.csv")
    assert handle("predict", *raw, *options) == 0
    with (tmp_path / "p.csv").open() as file:
        found = np.array([float(row["prediction"]) for row in csv.DictReader(file)])
    coef = np.array([each.coef_scaled for each in model.features])
    score = model.intercept_scaled + coef @ (table.columns / GRID)
    # Training rounds ages and dates to the grid, by at most half a step; nothing else is rounded.
    off = sum(abs(each.coef_scaled) for each in model.features if each.name not in EXACT) / GRID
    np.testing.assert_allclose(np.log(found / (1 - found)), score, rtol=0, atol=off / 2 + 1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_columns_of_levels_are_scored_bit_for_bit(folder: Path, name: str) -> None:
    """A model of one column with coefficient 1 predicts the very integers, over the grid."""
    table = Table.open(folder / "data" / "coarse.table")
    place = table.names.index(name)
    fitted = _model(table, {name: 1.0})
    with (folder / "raw.csv").open() as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    raw = {key: np.array([row[key] for row in rows], dtype=object) for key in rows[0]}
    raw["Age (years)"] = np.array([text.replace(",", ".") for text in raw["Age (years)"]], object)
    found = fitted.predict({f"here.{key}": values for key, values in raw.items()})
    np.testing.assert_array_equal(found * GRID, table.columns[place])


def _model(table: Table, coef: dict[str, float]) -> LinearModel:
    features = tuple(
        ModelFeature("here", name, bounds.low, bounds.high, fill, coef.get(name, 0.0), group)
        for name, bounds, fill, group in zip(
            table.names, table.bounds, table.fills, table.groups, strict=True
        )
    )
    encodings = tuple(
        ModelEncoding.of("here", each) for each in table.header.encodings if each.name != "outcome"
    )
    return LinearModel(
        "j", "squared", ModelLabel("y", -1.0, 1.0), 0.0, features, private=True, encodings=encodings
    )


def test_a_model_with_encodings_reads_back_the_same(folder: Path) -> None:
    fitted = _model(Table.open(folder / "data" / "coarse.table"), {"pain": 1.0})
    assert LinearModel.from_json(fitted.to_json()) == fitted
    document = json.loads(fitted.to_json())
    assert document["encodings"][1]["kind"] == {
        "type": "category",
        "levels": ["north", "south", "NA"],
        "other": "rest",
        "baseline": "south",
        "fill": "",
        "unknown": False,
    }
    document["encodings"][1]["kind"]["levels"].append("north")
    with pytest.raises(BadInput, match="twice"):
        LinearModel.from_object(document)


def test_a_text_that_training_would_have_refused_is_refused(folder: Path, tmp_path: Path) -> None:
    fitted = _model(Table.open(folder / "data" / "coarse.table"), {"pain": 1.0, "ward=NA": 1.0})
    (tmp_path / "model.json").write_text(fitted.to_json())
    (tmp_path / "new.csv").write_text("ward,pain\nnowhere,low\nnorth,canary7e57\n")
    with pytest.raises(BadInput, match=r"'pain'.*row 2") as refused:
        handle("predict", "--model", tmp_path / "model.json", "--data", tmp_path / "new.csv")
    assert "canary" not in str(refused.value)
    with pytest.raises(BadInput, match="'pain'"):
        fitted.predict({"ward": np.array(["x"], object), "pain": np.array(["y"], object)})


def test_a_level_that_looks_like_a_number_may_come_as_one() -> None:
    schema = parse_schema(
        "[[feature]]\nname = 'sex'\ntype = 'category'\nlevels = [1, 2]\n", origin="s"
    )
    encoding = schema.encodings[0]
    feature = ModelFeature("p", "sex=2", 0.0, 1.0, 0.0, 1.0, "sex")
    needed = Input("p", encoding, (None, feature))
    for values in (["1", "2", None], [1, 2, None], [1.0, 2.0, np.nan]):
        given = np.array(values, dtype=object)
        assert [column.tolist() for _, column in needed.columns(given)] == [[-GRID, GRID, -GRID]]
    ((_, column),) = needed.columns(np.array([1.0, 2.0, np.nan]))
    assert column.tolist() == [-GRID, GRID, -GRID]


# -- sensitivity --------------------------------------------------------------------------------


def test_sums_move_by_no_more_than_the_noise_is_made_for(folder: Path) -> None:
    """Over every pair of rows of the table, and every subset of columns that a job may name."""
    table = Table.open(folder / "data" / "coarse.table")
    rows = np.unique(table.columns.T, axis=0)
    draw = np.random.default_rng(1)
    seen = []
    for chosen in [np.arange(len(NAMES)), *(draw.random((20, len(NAMES))) < 0.5)]:
        columns = np.arange(len(NAMES))[chosen]
        if not columns.size:
            continue
        groups = [GROUPS[place] for place in columns]
        allowed = moved_columns([NAMES[place] for place in columns], groups) * (2 * GRID) ** 2
        released = np.array(
            [[part for place in columns for part in sums(row[place : place + 1])] for row in rows]
        )
        gaps = ((released[:, None, :] - released[None, :, :]) ** 2).sum(axis=2)
        assert gaps.max() <= allowed
        seen.append(gaps.max() / allowed)
    assert max(seen) > 0.5  # the bound is no idle one


def test_a_wide_category_costs_as_much_as_two_columns() -> None:
    features = tuple(f"country={k}" for k in range(40))
    assert moved_columns(features, ()) == 40
    assert moved_columns(features, ("country",) * 40) == 2
    assert moved_columns(features, ("",) * 39 + ("country",)) == 40
    assert moved_columns((*features, "age"), (*("country",) * 40, "")) == 3


def test_noise_of_means_follows_from_groups() -> None:
    problem = Problem(10**5, {"p": [f"x{i}" for i in range(40)]}, units_down(0.1))
    plain = recommend(problem).spec
    part = plain.parts[0]
    grouped = replace(plain, parts=(replace(part, groups=("g",) * 40), *plain.parts[1:]))
    assert isinstance(part, Part)
    before, after = (spec.made(spec.parts[0], MEANS)[0] for spec in (plain, grouped))
    assert before.cost >= after.cost  # the price is the same, but for rounding
    assert 13 < before.sigma2 / after.sigma2 < 15  # 41 columns with the label, against 3


@pytest.mark.parametrize("kind", ["moments", "frank-wolfe", "sealed"])
@pytest.mark.parametrize("holds_label", [True, False])
def test_every_method_makes_the_noise_of_a_category_for_two_columns(
    kind: str, holds_label: bool
) -> None:
    """Half of the noise, or that of one column, is caught in each method by itself."""
    features = {"q": ["y0", "y1"], "p": [f"ward={i}" for i in range(12)] + ["age"]}
    groups = {"p": ["ward"] * 12 + [""]}
    owner = "p" if holds_label else "q"
    problem = Problem(10**5, features, units_down(0.1), label_owner=owner, groups=groups)
    noise = means_noise(kind, problem)
    # Two columns of the ward, one of the age and, where it is held, the label.
    assert noise.l2_sensitivity2 == (3 + holds_label) * (2 * GRID) ** 2
    assert noise.sigma2 * 2 * noise.cost >= noise.l2_sensitivity2 * RHO_UNIT  # pays for all of it


def means_noise(kind: str, problem: Problem) -> DiscreteGaussian:
    """Return the noise that party p adds to its means."""
    if kind == "frank-wolfe":
        spec = recommend_frank_wolfe(problem).spec
        return spec.means(next(each for each in spec.blocks if each.party == "p"))[0]
    plan = recommend(problem) if kind == "moments" else recommend_sealed(problem)
    part = next(each for each in plan.spec.parts if each.party == "p")
    noise = plan.spec.made(part, MEANS)[0]
    assert isinstance(noise, DiscreteGaussian)
    return noise


# -- the party ----------------------------------------------------------------------------------


POLICY = f"""
[[allow]]
coordinator = "{HUB.uri}"
kinds = ["moments", "frank-wolfe"]
features = FEATURES
max_rho = 1.0
max_rounds = 100
"""


def vault_on(dataset: Dataset, ledger: Ledger, tmp_path: Path, allowed: str) -> Vault:
    (tmp_path / "policy.toml").write_text(POLICY.replace("FEATURES", allowed))
    return Vault(
        dataset,
        ledger,
        SeededNoise(1),
        policy=load_policy(tmp_path / "policy.toml"),
        coordinator=HUB,
        today=lambda: dt.date(2026, 1, 1),
    )


def test_a_policy_names_raw_columns_and_an_offer_hides_the_others(
    dataset: Dataset, tmp_path: Path
) -> None:
    ledger = memory_ledger(LedgerConfig("lab", {"": 2**50}, simulation=True))
    vault = vault_on(dataset, ledger, tmp_path, '["age", "ward", "job=none"]')
    offer = vault.hello().offer
    assert [(each.name, each.group) for each in offer.features] == [
        ("age", ""),
        ("age=missing", ""),
        ("ward=north", "ward"),
        ("ward=NA", "ward"),
        ("ward=rest", "ward"),
        ("job=none", "job"),
    ]
    # Of a category that is offered in part, other levels are nobody's business.
    assert [each.name for each in offer.encodings] == ["age", "ward"]
    assert b"some" not in offer.SerializeToString()


def test_bounds_are_not_bought_for_columns_of_levels(dataset: Dataset) -> None:
    ledger = memory_ledger(LedgerConfig("lab", {"": 2**60}, simulation=True))
    gate = Gate(ledger, SeededNoise(1))
    bought = buy_bounds(dataset, ledger, gate, units=units_down(50.0))
    assert [each.name for each in bought.columns] == ["age", "admitted"]
    for name in EXACT:
        with pytest.raises(BadInput, match="tighter"):
            buy_bounds(dataset, ledger, gate, units=units_down(50.0), columns=[name])
    with pytest.raises(BadInput, match="tighter"):
        buy_bounds(dataset, ledger, gate, units=units_down(50.0), columns=["age"], label=True)


def job_on(vault: Vault, method: Any = "moments") -> Job:
    """Return a job on all that a party offers."""
    told = vault.hello().offer
    offer = PartyOffer(
        party="lab",
        attached=True,
        dataset=told.dataset,
        population=told.population,
        features=dict(map(feature_from_proto, told.features)),
        fills={each.name: each.fill for each in told.features},
        label=feature_from_proto(told.label),
        cap_units=told.cap_units,
        used_units=0,
        groups={each.name: each.group for each in told.features if each.group},
        encodings=vault.table.header.encodings,
    )
    return build_job([offer], JobOptions(method=method), target="outcome", parties=["lab"])


def test_a_job_that_names_other_groups_or_encodings_is_refused(
    dataset: Dataset, tmp_path: Path
) -> None:
    ledger = memory_ledger(LedgerConfig("lab", {"": 2**60}, simulation=True))
    vault = vault_on(dataset, ledger, tmp_path, '["*"]\nlabel = true')
    job = job_on(vault)
    member = job.members[0]
    assert (member.groups, len(member.encodings)) == (GROUPS, 7)
    check = vault._over_columns.check_table
    check(job)
    wrong = [
        ("", *member.groups[1:-1], "all"),
        ("everything",) * len(NAMES),  # would make the noise of all columns that of two
        (),
    ]
    for groups in wrong:
        with pytest.raises(BadMessage, match="group"):
            check(replace_groups(job, groups))
    with pytest.raises(BadMessage, match="another order"):
        check(replace(job, members=(replace(member, alignment="ab" * 32),)))
    other = replace(member, encodings=(*member.encodings[1:],))
    check(replace(job, members=(other,)))  # saying less is allowed
    changed = parse_schema(SCHEMA.replace("north", "nord"), origin="s").encodings[1]
    other = replace(member, encodings=(changed,))
    with pytest.raises(BadMessage, match="another way"):
        check(replace(job, members=(other,)))


@pytest.mark.parametrize(("method", "field"), [("moments", "parts"), ("frank-wolfe", "blocks")])
def test_a_methods_groups_are_those_of_the_members_which_a_party_compares(
    dataset: Dataset, tmp_path: Path, method: Any, field: str
) -> None:
    ledger = memory_ledger(LedgerConfig("lab", {"": 2**60}, simulation=True))
    vault = vault_on(dataset, ledger, tmp_path, '["*"]\nlabel = true')
    job = job_on(vault, method)
    (part,) = getattr(job.method, field)
    assert part.groups == GROUPS
    # The noise is made for the method's groups; were only these forged, no party would notice.
    forged = replace(part, groups=("everything",) * len(NAMES))
    with pytest.raises(ValueError, match="groups"):
        replace(job, method=replace(job.method, **{field: (forged,)}))  # type: ignore[type-var]


def replace_groups(job: Job, groups: tuple[str, ...]) -> Job:
    """Return the job with other groups, in the member and in the method's part."""
    member = replace(job.members[0], groups=groups)
    part = replace(job.method.parts[0], groups=groups)  # type: ignore[type-var]
    return replace(job, members=(member,), method=replace(job.method, parts=(part,)))  # type: ignore[type-var]


# -- a federation -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_federation_fits_texts_and_its_model_takes_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ("--data", folder / "raw.csv", "--schema", folder / "schema.toml")
    run = ("--target", "outcome", "--loss", "logistic", "--parties", 2, "--epsilon", 20)
    out = ("--out", tmp_path / "run", "--keep", tmp_path / "kept", "--json")
    assert handle("simulate", *data, *run, *out, "--holdout", 0) == 0
    model = load_model(tmp_path / "run" / "model.json")
    assert {(each.name, each.group) for each in model.features} == {
        *zip(NAMES, GROUPS, strict=True)
    }
    assert {each.name for each in model.encodings} == {
        "age",
        "ward",
        "job",
        "smoker",
        "admitted",
        "pain",
    }
    assert model.label.levels == ("alive", "dead")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["model"]["features"][2]["group"] == "ward"
    with (folder / "raw.csv").open() as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    raw = {key: np.array([row[key] for row in rows], dtype=object) for key in rows[0]}
    raw["age"] = np.array([row.replace(",", ".") for row in raw.pop("Age (years)")], dtype=object)
    for values in raw.values():
        values[np.isin(values, ["", "?"])] = None
    found = model.decision_function(raw)
    expected = np.full(N_ROWS, model.intercept_scaled)
    for party in {each.party for each in model.features}:
        table = Table.open(tmp_path / "kept" / party / "data" / "coarse.table")
        coef = {each.name: each for each in model.features if each.party == party}
        for name, bounds, column in zip(table.names, table.bounds, table.columns, strict=True):
            if coef[name].bounds == bounds:  # not bought
                expected += coef[name].coef_scaled * column / GRID
            else:
                assert name in ("age", "admitted")
                key = name
                encoding = next(each for each in model.encodings if each.name == key)
                numbers = encoding.read(raw[key], N_ROWS)
                expected += coef[name].coef_scaled * coef[name].quantised(numbers) / GRID
    off = sum(abs(each.coef_scaled) for each in model.features) / GRID
    np.testing.assert_allclose(found, expected, rtol=0, atol=off)
