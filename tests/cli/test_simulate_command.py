"""``colonnade simulate`` and ``plan``: the main job from one command, with real processes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from colonnade.cli.main import main
from colonnade.data.model import load_model
from colonnade.ledger.create import open_ledger
from colonnade.ledger.storage.files import LedgerFiles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fork_server")]

_NAMED = os.environ.get("COLONNADE_DATA")
_HERE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(_NAMED) if _NAMED else _HERE


def simulate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *options: str
) -> tuple[dict[str, Any], Path, Path]:
    out, keep = tmp_path / "run", tmp_path / "kept"
    folders = ("--out", str(out), "--keep", str(keep))
    assert main(["simulate", "--json", *folders, *options]) == 0
    return json.loads(capsys.readouterr().out), out, keep


def test_one_command_runs_the_job_and_writes_the_run_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("--rows", "20000", "--features", "9", "--informative", "3", "--rounds", "6")
    result, out, keep = simulate(capsys, tmp_path, *options)
    assert {path.name for path in out.iterdir()} == {"model.json", "report.json", "report.html"}
    assert result["rounds"] == 6
    uplink = result["uplink"]
    assert uplink["payload_bytes"] == uplink["predicted_bytes"] > 0
    for row in uplink["rows"]:
        assert row["payload_bytes"] == row["predicted_bytes"]
    # The joint epsilon that was asked for covers everything, and the ledgers agree.
    joint = result["privacy"]["joint"]
    assert 0.9 < joint["epsilon"] <= 1.0
    assert joint["spent"] <= joint["cap"]
    for party in result["privacy"]["parties"]:
        ledger = open_ledger(LedgerFiles(keep / party["party"] / "ledger"))
        assert ledger.budget().spent / 2**50 == pytest.approx(party["spent"], rel=1e-12)
        assert not ledger.opened.simulation
        assert ledger.state.reserved.get("", 0) == 0  # the job is closed
        ledger.close()
    # Strong signal and many rows: far better than nothing, and marked as what it is.
    quality = result["quality"]
    assert quality["note"] == "simulation only"
    assert 0.2 < quality["r2"] <= quality["nonprivate"] + 0.01
    report = json.loads((out / "report.json").read_text())
    assert len(report["quality"]["by_round"]) == 7
    model = load_model(out / "model.json")
    assert {feature.party for feature in model.features} == {"hospital", "laboratory", "insurer"}
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 5
    assert "Simulation only" in page


def test_the_seed_fixes_the_data_and_never_the_noise(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    size = ("--rows", "500", "--features", "4", "--informative", "2", "--parties", "1")
    options = (*size, "--rounds", "2", "--seed", "3")
    first, _, one = simulate(capsys, tmp_path / "1", *options)
    second, _, two = simulate(capsys, tmp_path / "2", *options)
    tables = [(keep / "hospital" / "table.parquet").read_bytes() for keep in (one, two)]
    assert tables[0] == tables[1]
    assert first["quality"]["nonprivate"] == second["quality"]["nonprivate"]
    assert first["job_id"] != second["job_id"]  # salted
    # Means are released with noise of hundreds of grid steps: equal bodies are next to impossible.
    bodies = []
    for keep in (one, two):
        ledger = open_ledger(LedgerFiles(keep / "hospital" / "ledger"))
        stored = (ledger.stored(key) for key in ledger.state.stored if key.kind == "means")
        bodies += [release.body for release in stored if release is not None]
        ledger.close()
    assert len(set(bodies)) == len(bodies) == 2


@pytest.mark.parametrize(
    "options",
    [
        ("--label-owner", "laboratory", "--scope", "party"),
        ("--loss", "logistic", "--sampling", "serial"),
    ],
    ids=" ".join,
)
def test_every_way_to_run_a_job_ends_in_a_report(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ("--rows", "1000", "--features", "6", "--informative", "2", "--rounds", "3")
    result, out, _ = simulate(capsys, tmp_path, *small, "--parties", "2", *options)
    assert (out / "report.html").exists()
    assert result["uplink"]["payload_bytes"] == result["uplink"]["predicted_bytes"]
    if "logistic" in options:
        assert 0.0 <= result["quality"]["auc"] <= 1.0
    if "party" in options:  # one for each party instead of one for all
        epsilons = [each["epsilon"] for each in result["privacy"]["parties"]]
        assert max(epsilons) <= 1.0
        assert max(epsilons) > 0.9
        assert result["privacy"]["joint"]["epsilon"] > 1.0


@pytest.mark.skipif(not DATA.exists(), reason="set COLONNADE_DATA to the folder of the data sets")
def test_a_file_is_split_over_parties_and_bounds_are_bought(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = ("--data", str(DATA / "california.csv.gz"), "--target", "target", "--epsilon", "4")
    result, out, keep = simulate(capsys, tmp_path, *data)
    assert result["quality"]["r2"] > 0.2
    assert result["privacy"]["joint"]["epsilon"] <= 4.0
    ledger = open_ledger(LedgerFiles(keep / "hospital" / "ledger"))
    bought = [key for key in ledger.state.stored if key.kind == "bounds"]
    ledger.close()
    assert len(bought) == 20
    model = load_model(out / "model.json")
    income = next(feature for feature in model.features if feature.name == "MedInc")
    assert income.high < 16.0  # the declared bound was wider


def test_a_plan_needs_no_data_and_keeps_to_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--rows", "50000", "--features", "20", "--parties", "4", "--correlation", "0.3")
    assert main(["plan", "--json", *options]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert 0.9 < plan["privacy"]["joint"]["epsilon"] <= 1.0
    assert plan["rounds"] > 1
    assert 0.0 < plan["expected"]["ours"] <= plan["expected"]["nonprivate"] + 0.01


def test_an_independent_plan_shares_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--method", "frank-wolfe", "--correlation", "0"]
    assert main(["plan", "--json", "--quick", *options]) == 0
    assert set(json.loads(capsys.readouterr().out)["shares"].values()) == {0}


def write_rows(path: Path, n_rows: int = 600) -> Path:
    """Write a table whose label is the sum of two columns; whose each row is stands beside it."""
    rows = [
        (f"p{i % 30}", i % 17, i * 7 % 23, i * 5 % 13, i % 17 + i * 7 % 23) for i in range(n_rows)
    ]
    lines = ["who,a,b,c,y", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_of_a_file_go_to_the_parties_that_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = ("--data", str(write_rows(tmp_path / "rows.csv")), "--target", "y", "--epsilon", "200")
    named = ("--parties", "bank=b,c", "--parties", "shop=a", "--label-owner", "shop")
    result, out, keep = simulate(capsys, tmp_path, *data, *named, "--bounds-share", "0")
    model = load_model(out / "model.json")
    assert {(each.party, each.name) for each in model.features} == {
        ("bank", "b"),
        ("bank", "c"),
        ("shop", "a"),
    }
    assert result["uplink"]["payload_bytes"] == result["uplink"]["predicted_bytes"]
    assert json.loads((out / "report.json").read_text())["labels"] == "sketched"
    # The other party never has the label, not even in its own file.
    assert "[label]" not in (keep / "bank" / "schema.toml").read_text()
    assert "[label]" in (keep / "shop" / "schema.toml").read_text()


def test_clients_of_a_file_each_have_an_account(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keep, out = tmp_path / "kept", tmp_path / "run"
    rows = str(write_rows(tmp_path / "rows.csv"))
    options = ("--target", "y", "--client-column", "who", "--rounds", "3", "--hosts", "2")
    folders = ("--out", str(out), "--keep", str(keep), "--json")
    assert main(["simulate", "admm", "--data", rows, *options, *folders]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["method"] == "admm"
    assert result["quality"]["n_rows"] == 120  # a fifth of the file, that no client has
    report = json.loads((out / "report.json").read_text())
    assert report["simulation"]["rows"] == 480
    accounts = 0
    for host in ("host-1", "host-2"):
        ledger = open_ledger(LedgerFiles(keep / host / "ledger"))
        accounts += len({key.account for key in ledger.state.stored})
        ledger.close()
    # Three rounds of six of thirty clients, and each of the thirty once for its own intercept.
    assert (accounts, result["answers"]) == (30, 48)
