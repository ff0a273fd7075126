"""A party fits on its own table: charged to its ledger, bound to its rows, replayed for nothing."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import handle
from support.ledgers import new_ledger

from colonnade.core.errors import (
    BadInput,
    BudgetExceeded,
    JobClosed,
    LedgerBusy,
    NotBound,
    NotPrivate,
    RequestConflict,
)
from colonnade.data.model import load_model
from colonnade.data.schema import parse_schema
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.linear.penalties import ridge
from colonnade.party.data.binding import BoundRows
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.bounding.purchases import bounds_job
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.fit import fit_charged, local_job
from colonnade.party.fit_order import FitOrder, FitTable, party_table
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.iteration import Diverged
from colonnade.solvers.registry import SOLVERS

SCHEMA = """
[[feature]]
name = "age"
low = 0
high = 1000
[[feature]]
name = "dose"
low = -20
high = 60
[label]
name = "y"
low = 0
high = 400
"""


SOLVER = CoordinateDescent(passes=2, clip=1.0)
ORDER = FitOrder("test", "squared", SOLVER, epsilon=2.0, penalty=ridge(1e-6))


def run(*arguments: object) -> int:
    return handle("party", "fit", *arguments)


def make_table(folder: Path, *, seed: int = 0, n_rows: int = 2000) -> Path:
    draw = np.random.default_rng(seed)
    age, dose = draw.uniform(20, 80, n_rows), draw.uniform(-2, 6, n_rows)
    y = 20.0 + 1.5 * age + 5.0 * dose + draw.normal(0.0, 5.0, n_rows)
    lines = [f"{a},{b},{c}" for a, b, c in zip(age, dose, y, strict=True)]
    source = folder / f"rows-{seed}.csv"
    source.write_text("age,dose,y\n" + "\n".join(lines) + "\n")
    ingest(parse_schema(SCHEMA, origin="schema"), FileSource(source), out=folder / f"data-{seed}")
    return folder / f"data-{seed}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_table(tmp_path)


def table_of(folder: Path, ledger: Ledger, *, declared: bool = True) -> FitTable:
    with open_dataset(folder) as dataset:
        return party_table(dataset, ledger, declared=declared)


def memory_ledger(rho: float = 5.0) -> Ledger:
    return new_ledger("memory", None, caps={"": units_down(rho)})  # type: ignore[arg-type]


def test_the_command_charges_the_partys_ledger_once_and_replays(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(1.0)}).close()
    given = (
        "--data",
        data,
        "--ledger",
        tmp_path / "ledger",
        "--epsilon",
        2,
        "--solver",
        "cd",
        "--set",
        "passes=2",
    )
    assert run(*given, "--out", tmp_path / "one", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["ledger"]["charged_now_rho"] == pytest.approx(first["privacy"]["rho"], rel=1e-12)
    assert run(*given, "--out", tmp_path / "two") == 0
    assert "a replay" in capsys.readouterr().out
    one, two = (load_model(tmp_path / name / "model.json") for name in ("one", "two"))
    assert one == two
    assert one.private
    assert {feature.party for feature in one.features} == {"hospital"}
    assert (tmp_path / "one" / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_an_interrupted_fit_goes_on_and_costs_no_more(data: Path) -> None:
    ledger = memory_ledger()
    table = table_of(data, ledger, declared=True)

    def interrupt(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_charged(table.resolve(ORDER, charged=True), ledger, progress=interrupt)
    job = local_job(table.resolve(ORDER, charged=True).spec())
    spent, aside = ledger.budget().spent, ledger.state.left[job][""]
    assert 0 < spent < spent + aside
    made = fit_charged(table.resolve(ORDER, charged=True), ledger)
    assert ledger.budget().spent == spent + aside
    assert job not in ledger.state.left
    again = fit_charged(table.resolve(ORDER, charged=True), ledger)
    assert again.model == made.model
    assert again.charge is not None
    assert again.charge.charged_now == 0.0
    assert ledger.budget().spent == spent + aside


def test_a_fit_that_cannot_be_paid_for_as_a_whole_releases_nothing(data: Path) -> None:
    # The cap holds all but one unit of the price.
    ledger = memory_ledger()
    table = table_of(data, ledger)
    fit_charged(table.resolve(ORDER, charged=True), ledger)
    price = ledger.budget().spent
    poor = new_ledger("memory", None, caps={"": price - 1})  # type: ignore[arg-type]
    copied = replace(table, rows=replace(table.rows, folder=None))  # not where the first one paid
    with pytest.raises(BudgetExceeded):
        fit_charged(copied.resolve(ORDER, charged=True), poor)
    assert poor.budget().spent == 0
    assert poor.state.bound is None
    assert poor.state.reserved.get("", 0) == 0


def test_other_rows_are_refused_until_they_are_bound(data: Path, tmp_path: Path) -> None:
    ledger = memory_ledger()
    fit_charged(table_of(data, ledger).resolve(ORDER, charged=True), ledger)
    spent = ledger.budget().spent
    other = table_of(make_table(tmp_path, seed=1), ledger)
    with pytest.raises(NotBound):
        fit_charged(other.resolve(ORDER, charged=True), ledger)
    assert ledger.budget().spent == spent
    # Another ingest is another order: what was spent stays spent and the new fit adds to it.
    fit_charged(other.resolve(ORDER, charged=True), ledger, bind_reason="the extract of May")
    assert ledger.budget().spent == 2 * spent
    bound = ledger.state.bound
    assert bound is not None
    assert (bound.table, bound.reason) == (ledger.seal(other.rows.digest), "the extract of May")


def test_the_same_order_on_other_rows_is_never_answered_with_the_first_model(
    data: Path, tmp_path: Path
) -> None:
    # A file has no version, so its order is the same for every content.
    ledger = memory_ledger()
    one, two = (
        replace(table, rows=BoundRows(table.rows.digest, ""))
        for table in (table_of(folder, ledger) for folder in (data, make_table(tmp_path, seed=1)))
    )
    assert one.resolve(ORDER, charged=True).spec() == two.resolve(ORDER, charged=True).spec()
    fit_charged(one.resolve(ORDER, charged=True), ledger)
    spent = ledger.budget().spent
    with pytest.raises(RequestConflict):
        fit_charged(two.resolve(ORDER, charged=True), ledger, bind_reason="corrected")
    assert ledger.budget().spent == spent


def test_nothing_of_the_rows_is_in_the_order_or_in_the_ledgers_lines(data: Path) -> None:
    ledger = memory_ledger()
    table = table_of(data, ledger)
    fit_charged(table.resolve(ORDER, charged=True), ledger)
    public = table.resolve(ORDER, charged=True).spec().decode() + "".join(ledger.lines())
    assert table.rows.digest.hex() not in public
    # Nor can a reader of the lines try a table out: its digest under the order is not there.
    spec = table.resolve(ORDER, charged=True).spec()
    guess = hashlib.sha256(spec + table.rows.digest).hexdigest()
    assert guess not in public


def test_bought_bounds_are_used_unless_the_declared_ones_are_asked_for(data: Path) -> None:
    ledger = memory_ledger()
    assert table_of(data, ledger, declared=False).bounds[0].high == 1000.0
    with open_dataset(data) as dataset:
        buy_bounds(dataset, ledger, Gate(ledger, OsNoise()), units=units_down(0.5), label=True)
    spent = ledger.budget().spent
    table = table_of(data, ledger, declared=False)
    # Ages are uniform on 20 to 80: the 5 and 95 % points are 23 and 77, widened by 27 each side.
    assert table.bounds[0].low == pytest.approx(-4.0, abs=8.0)
    assert table.bounds[0].high == pytest.approx(104.0, abs=8.0)
    assert table.bounds[-1].high < 400.0
    assert ledger.budget().spent == spent
    assert table_of(data, ledger).bounds[0].high == 1000.0
    made = fit_charged(table.resolve(ORDER, charged=True), ledger)
    assert made.model.features[0].high == table.bounds[0].high
    # Tighter bounds, less noise: the slope is 1.5 within a tenth.
    assert made.model.coef[0] == pytest.approx(1.5, abs=0.15)


def test_a_coordinator_is_not_told_of_a_fit_and_cannot_close_it(data: Path) -> None:
    table = table_of(data, memory_ledger())
    assert local_job(table.resolve(ORDER, charged=True).spec()).startswith(bounds_job(""))


def test_a_fit_that_runs_away_frees_what_it_did_not_use(data: Path) -> None:
    ledger = memory_ledger()
    table = table_of(data, ledger)
    order = FitOrder("wild", "squared", CoordinateDescent(passes=4, step=1e105), epsilon=1.0)
    with pytest.raises(Diverged):
        fit_charged(table.resolve(order, charged=True), ledger)
    spent = ledger.budget().spent
    assert spent > 0  # no refunds
    assert ledger.state.reserved.get("", 0) == 0
    with pytest.raises(Diverged):  # the same again: replayed to the same end
        fit_charged(table.resolve(order, charged=True), ledger)
    assert ledger.budget().spent == spent


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_runs_as_a_party_job(name: str, data: Path) -> None:
    settings: dict[str, dict[str, Any]] = {
        "sgd": {"passes": 1, "batch_size": 500},
        "cd": {"passes": 2},
        "dual": {"epochs": 1, "batch_size": 500},
        "gram": {"refinements": 2},
    }
    solver = SOLVERS[name](**settings.get(name, {"iterations": 4}))
    l2 = 0.0 if name == "frank_wolfe" else 1e-3
    order = FitOrder("each", "squared", solver, epsilon=2.0, penalty=ridge(l2), intercept=False)
    ledger = memory_ledger()
    made = fit_charged(table_of(data, ledger).resolve(order, charged=True), ledger)
    sampled = name == "sgd"
    assert (made.claim.sampling_rate < 0.25) is sampled
    assert (made.claim.amplified_epsilon is not None) is sampled
    assert made.charge is not None
    assert made.claim.rho == pytest.approx(made.charge.charged_now, rel=1e-12)


def test_noise_that_is_not_exact_opens_no_ledger(data: Path) -> None:
    ledger = memory_ledger()
    table = table_of(data, ledger)
    order = FitOrder("fast", "squared", CoordinateDescent(), epsilon=1.0, noise="fast")
    with pytest.raises(NotPrivate):
        fit_charged(table.resolve(order, charged=True), ledger)
    assert ledger.budget().spent == 0


def damaged(data: Path, folder: Path) -> None:
    path = data / "coarse.table"
    body = bytearray(path.read_bytes())
    body[-3000] ^= 1
    path.write_bytes(bytes(body))


def unlabelled(data: Path, folder: Path) -> None:
    schema = parse_schema(SCHEMA[: SCHEMA.index("[label]")], origin="schema")
    ingest(schema, FileSource(folder / "rows-0.csv"), out=data)


def test_a_file_in_a_tables_place_is_refused_in_words(data: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(1.0)}).close()
    given = ("--data", tmp_path / "rows-0.csv", "--ledger", tmp_path / "ledger", "--epsilon", 1)
    with pytest.raises(BadInput, match=r"rows-0\.csv"):
        run(*given, "--out", tmp_path / "out")


def test_a_price_above_the_cap_is_told_as_it_was_asked_for(data: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(0.001)}).close()
    given = ("--data", data, "--ledger", tmp_path / "ledger", "--epsilon", 2)
    with pytest.raises(BudgetExceeded, match="epsilon 2"):
        run(*given, "--out", tmp_path / "out")
    with pytest.raises(BudgetExceeded, match="epsilon 2 at delta 1e-06"):
        handle("party", "bounds", *given)


@pytest.mark.parametrize(("harm", "word"), [(damaged, "damaged"), (unlabelled, "no label")])
def test_a_table_that_cannot_be_used_is_refused_in_one_line(
    harm: Callable[[Path, Path], None], word: str, data: Path, tmp_path: Path
) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(1.0)}).close()
    harm(data, tmp_path)
    given = ("--data", data, "--ledger", tmp_path / "ledger", "--epsilon", 1)
    with pytest.raises(BadInput, match=word) as refused:
        run(*given, "--out", tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_ledger_in_use_says_so(data: Path, tmp_path: Path) -> None:
    new_ledger("sqlite", tmp_path, caps={"": units_down(1.0)}).close()
    held = open_ledger(LedgerFiles(tmp_path / "ledger", None))
    try:
        given = ("--data", data, "--ledger", tmp_path / "ledger", "--epsilon", 1)
        with pytest.raises(LedgerBusy):
            run(*given, "--out", tmp_path / "out")
    finally:
        held.close()


def test_a_closed_job_is_replayed_and_never_drawn_anew(data: Path) -> None:
    ledger = memory_ledger()
    table = table_of(data, ledger)
    fit = table.resolve(ORDER, charged=True)
    ledger.close_job(local_job(fit.spec()))  # closed before anything was released
    with pytest.raises(JobClosed):
        fit_charged(fit, ledger)
    assert ledger.budget().spent == 0
