"""A missing value is scored as it was trained: the declared fill, clipped to the job's bounds."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.clients import admm_job
from support.commands import handle
from support.federation import NAMES, founded, make_job, make_moments_job
from support.ledgers import spending
from support.vaults import ME, ledger_of, vault_of

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput, BadMessage
from colonnade.core.fixedpoint import Bounds
from colonnade.data.model import (
    LinearModel,
    ModelEncoding,
    ModelFeature,
    ModelLabel,
    load_model,
)
from colonnade.data.schema import parse_schema
from colonnade.data.table import COARSE_NAME, Table, open_pair
from colonnade.methods.base import Member
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec
from colonnade.methods.job import Job, job_id
from colonnade.party.data.columns import columns_for, version_of
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.privacy.accounting import units_down
from colonnade.server.engine.offers import check_offer
from colonnade.server.methods.registry import algorithm_of
from colonnade.simulate.evaluation.quality import joined
from colonnade.simulate.sites import Site, SiteColumn
from colonnade.wire.jobspec import job_to_bytes

N_ROWS = 400
SCHEMA = """
id = "person"
[[feature]]
name = "age"
low = 0
high = 110
[[feature]]
name = "glucose"
low = 40
high = 400
fill = 95
[[feature]]
name = "income"
low = 0
high = 1000000
fill = 31415.9
[label]
name = "y"
low = 0
high = 1
"""
NAMES_ = ("age", "glucose", "income")
# Declared, then tighter ones: with the fill inside, on an end, and outside.
BOUNDS = {
    "declared": (Bounds(0, 110), Bounds(40, 400), Bounds(0, 1e6)),
    "tighter": (Bounds(18.5, 97.25), Bounds(60, 180), Bounds(9_000, 90_000)),
    "elsewhere": (Bounds(60, 70), Bounds(95, 200), Bounds(40_000.5, 90_000)),
}


def raw() -> dict[str, FloatArray]:
    draw = np.random.default_rng(3)
    columns = {
        "age": np.round(draw.normal(50.0, 30.0, N_ROWS), 2),
        "glucose": np.round(draw.normal(110.0, 60.0, N_ROWS), 1),
        "income": np.round(draw.lognormal(10.3, 1.2, N_ROWS), 2),
    }
    for place, values in enumerate(columns.values()):
        values[place :: 5 + place] = np.nan
    return columns


@pytest.fixture
def data(tmp_path: Path) -> Path:
    columns = raw()
    lines = ["person,age,glucose,income,y"]
    for row, values in enumerate(zip(*columns.values(), strict=True)):
        cells = ("" if np.isnan(value) else repr(float(value)) for value in values)
        lines.append(",".join([f"p{row}", *cells, str(row % 2)]))
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    schema = parse_schema(SCHEMA, origin="s.toml")
    ingest(schema, FileSource(tmp_path / "rows.csv"), out=tmp_path / "data")
    return tmp_path


def job_of(table: Table, bounds: tuple[Bounds, ...]) -> Job:
    member = Member("hospital", version_of(table), NAMES_, bounds, table.fills, True)
    method = FrankWolfeSpec(
        n_rows=N_ROWS,
        blocks=(Block("hospital", NAMES_, 1.0, 0, True),),
        rounds=1,
        sketch_dim=8,
        sketch_entries=1,
        select_units=units_down(0.01),
        share_units=0,
        label_units=0,
    )
    return Job("j", bytes(16), 1e-6, 60, (member,), "y", Bounds(0, 1), method)


@pytest.mark.parametrize("which", sorted(BOUNDS))
def test_prediction_scales_every_value_to_the_integer_that_training_read(
    data: Path, which: str
) -> None:
    table = Table.open(data / "data" / COARSE_NAME)
    assert table.fills == (55.0, 95.0, 31415.9)
    spec = job_to_bytes(job_of(table, BOUNDS[which]))
    job = job_of(table, BOUNDS[which])
    algorithm = algorithm_of(job, job_id(spec))
    model = algorithm.model(algorithm.start())
    trained = columns_for(*open_pair(data / "data"), NAMES_, BOUNDS[which], None).features
    for feature, column, values in zip(model.features, trained, raw().values(), strict=True):
        scored = feature.quantised(values)
        assert np.isnan(values).any()
        np.testing.assert_array_equal(scored, column)


def test_a_simulations_quality_is_computed_on_the_integers_that_training_read(data: Path) -> None:
    table = Table.open(data / "data" / COARSE_NAME)
    for bounds in BOUNDS.values():
        job = job_of(table, bounds)
        columns = [
            SiteColumn(name, declared, values)
            for (name, values), declared in zip(raw().items(), BOUNDS["declared"], strict=True)
        ]
        label = SiteColumn("y", Bounds(0, 1), (np.arange(N_ROWS) % 2).astype(np.float64))
        found = joined([Site("hospital", columns, label)], job)
        np.testing.assert_array_equal(
            found.columns, columns_for(*open_pair(data / "data"), NAMES_, bounds, None).features
        )


def test_a_fit_keeps_its_fills_and_predictions_use_them(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, schema, out = data / "rows.csv", data / "schema.toml", data / "run"
    order = ("--data", rows, "--schema", schema, "--epsilon", 5, "--out", out)
    assert handle("fit", *order) == 0
    model = load_model(out / "model.json")
    assert [feature.fill for feature in model.features] == [55.0, 95.0, 31415.9]
    written = json.loads((out / "model.json").read_text())
    assert written["version"] == 3
    (data / "new.csv").write_text("age,glucose,income\n20,,\n20,95,31415.9\n,NA,9\n55,95,9\n")
    capsys.readouterr()
    files = ("--model", out / "model.json", "--data", data / "new.csv")
    assert handle("predict", *files) == 0
    _, first, same, second, again = capsys.readouterr().out.split()
    assert (first, second) == (same, again)
    assert first != second


def test_an_offer_says_the_fills_and_a_job_with_others_is_refused_and_costs_nothing() -> None:
    ledger = ledger_of(units_down(1.0))
    vault = vault_of(ledger)
    offer = vault.hello().offer
    assert [feature.fill for feature in offer.features] == list(vault.table.fills)
    assert not offer.label.HasField("fill")
    check_offer(ME, offer)
    for make in (make_job, make_moments_job):
        job = make(founded(), NAMES[:2])
        first, *others = job.members
        wrong = replace(first, fills=(*first.fills[:-1], first.fills[-1] + 0.5))
        before = spending(ledger)
        decision = vault.consider(job_to_bytes(replace(job, members=(wrong, *others))))
        assert (decision.accepted, decision.code) == (False, BadMessage.code)
        assert spending(ledger) == before
        assert vault.consider(job_to_bytes(job)).accepted


def test_a_model_of_the_old_format_is_refused(data: Path) -> None:
    document = {"format": "colonnade model", "version": 1}
    (data / "old.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match="version 3"):
        load_model(data / "old.json")


def test_all_parties_of_a_job_over_clients_need_the_same_fills() -> None:
    job = admm_job({"one": 2, "two": 3})
    first, second = job.members
    with pytest.raises(ValueError, match="fills"):
        replace(job, members=(first, replace(second, fills=(0.0, 0.0, 1.0))))


def test_a_number_that_means_no_value_is_one_for_predict_as_it_was_for_ingest(
    tmp_path: Path,
) -> None:
    values = np.array([1.0, -999.0, 3.0, -999.0])
    duckdb.execute(
        "COPY (SELECT unnest(?::DOUBLE[]) AS a, 0.5 AS y) TO ? (FORMAT parquet)",
        [values.tolist(), str(tmp_path / "t.parquet")],
    )
    text = """missing = ["", "-999"]
[[feature]]
name = "a"
low = 0
high = 10
fill = 7
[label]
name = "y"
low = 0
high = 1
"""
    schema = parse_schema(text, origin="s.toml")
    ingest(schema, FileSource(tmp_path / "t.parquet"), out=tmp_path / "data")
    bounds = (Bounds(0, 10),)
    trained = columns_for(*open_pair(tmp_path / "data"), ("a",), bounds, None).features
    model = LinearModel(
        "ab" * 32,
        "squared",
        ModelLabel("y", 0.0, 1.0),
        0.0,
        (ModelFeature("lab", "a", 0.0, 10.0, 7.0, 0.5),),
        private=True,
        encodings=(ModelEncoding.of("lab", schema.features[0].encoding(schema.missing)),),
    )
    ((_, grid),) = model.inputs[0].columns(values)
    np.testing.assert_array_equal(grid, trained[0])
    assert grid[0] != grid[1] == grid[3]
