"""``colonnade bench scale``: its fields, and a slope that a known growth has."""

import json
from pathlib import Path
from typing import Any

import pytest

from colonnade.bench.scale import clients, connections, dask, rows, simulate
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK


def test_the_slope_is_that_of_a_known_growth() -> None:
    grown = [{"n": n, "d": 2, "job_s": 3.0 * n**1.5} for n in (10, 1000, 100_000)]
    assert rows.slope(grown, "job_s") == pytest.approx(1.5)


@pytest.mark.slow
def test_the_fields_of_rows_are_a_contract(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rows, "QUICK_SIZES", ((500, 3), (1000, 3)))
    assert main(("bench", "scale", "--quick", "--json", "--only", "rows")) == EXIT_OK
    result = json.loads(capsys.readouterr().out)
    assert {*result} == {"rows", "slope", "slopes"}
    assert [(row["n"], row["d"]) for row in result["rows"]] == [(500, 3), (1000, 3)]
    named = {"n", "d", "ingest_s", "ingest_vs_duckdb", "job_s", "peak_mb", "read_over_table"}
    assert named <= {*result["rows"][0]}
    assert {*result["slopes"]} == {"ingest_s", "bounds_s", "job_s"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_is_equal_also_after_a_kill(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "_QUICK_ROWS", 20_000)
    assert main(("bench", "scale", "--quick", "--json", "--only", "dask")) == EXIT_OK
    found = json.loads(capsys.readouterr().out)["dask"]
    assert found["equal"]
    assert found["equal_after_kill"]
    assert found["overhead"] > 0.0
    assert found["workers"] >= 2


def figures(capsys: pytest.CaptureFixture[str], section: str) -> Any:
    assert main(("bench", "scale", "--quick", "--json", "--only", section)) == EXIT_OK
    return json.loads(capsys.readouterr().out)[section]


@pytest.mark.slow
def test_a_killed_owners_job_goes_on_equal_and_without_extra_charges(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = figures(capsys, "coordinators")
    if not rows:
        pytest.skip("PostgreSQL is not installed")
    assert [row["processes"] for row in rows] == [2]
    assert (rows[0]["equal"], rows[0]["extra_charges"]) == (True, 0)
    assert rows[0]["takeover_s"] > 0.0


@pytest.mark.slow
def test_connections_and_sessions_are_held_through_a_storm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "QUICK_IDLE", 20)
    monkeypatch.setattr(connections, "QUICK_ATTACHED", 4)
    found = figures(capsys, "connections")
    assert (found["idle"], found["attached"], found["job"]) == (20, 4, "finished")
    assert found["rss_mb"] > 0.0
    assert found["p99_ms"] > 0.0


@pytest.mark.slow
def test_the_fields_of_clients_and_simulate_are_a_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "QUICK_REGISTERED", (200,))
    (row,) = figures(capsys, "clients")
    assert (row["registered"], row["asked"]) == (200, 100)
    assert {"round_s", "peak_mb"} <= {*row}
    monkeypatch.setattr(simulate, "ROWS", 500)
    found = simulate.measure(tmp_path, quick=False)["simulate"]  # one run that warms up, one timed
    assert 0.0 < found["first_round_s"] < found["wall_s"]
    assert found["cpu_s"] > 0.0
