"""``colonnade bench floods`` and ``bench soak``: limits hold, and what is measured is real."""

import json
import os
from pathlib import Path

import pytest

from colonnade.bench.live.floods import FloodSizes, run_floods
from colonnade.bench.live.soak import Readings
from colonnade.bench.processes import held_by, slope
from colonnade.cli.main import main
from colonnade.core.errors import EXIT_BAD_INPUT, EXIT_OK

SMALL = FloodSizes(silent=40, storm=20, oversized=3, resets=200, pauses=1)
# Far below what the floods would take unbounded: 3 messages of 8 MiB, buffers of 60 connections.
MAX_GROWTH_MB = 64.0


@pytest.mark.slow
def test_floods_starve_nobody_and_leave_nothing_behind(tmp_path: Path) -> None:
    figures = run_floods(tmp_path, SMALL)
    counts = {name: part["count"] for name, part in figures["attacks"].items()}
    assert counts == {
        "silent_still_open": 0,  # cut off by the handshake's limit
        "storm_opened": SMALL.storm,
        "oversized_refused": SMALL.oversized,
        "streams_reset": SMALL.resets,
        "partitions": SMALL.pauses,
    }
    assert figures["live_failures"] == 0
    assert all(part["live_calls"] > 0 for part in figures["attacks"].values())
    assert figures["descriptors_after"] <= figures["descriptors_before"]
    assert figures["rss_peak_mb"] - figures["rss_before_mb"] < MAX_GROWTH_MB


@pytest.mark.slow
def test_a_short_soak_finishes_its_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "soak", "--minutes", "0.02", "--json"]) == EXIT_OK
    figures = json.loads(capsys.readouterr().out)
    assert figures["jobs_started"] == figures["jobs_finished"] >= 1
    assert figures["problems"] == []
    assert {"kills", "pauses", "slopes", "by_kind"} <= {*figures}


def test_a_soak_takes_a_sensible_time() -> None:
    assert main(["bench", "soak", "--minutes", "0"]) == EXIT_BAD_INPUT


def test_a_leak_shows_in_the_slope_and_a_peak_does_not() -> None:
    hours = [place / 100 for place in range(100)]
    assert slope(hours, [200.0 + 10.0 * hour for hour in hours]) == pytest.approx(10.0)
    peaks = [200.0 + (80.0 if place % 17 == 0 else 0.0) for place in range(100)]
    assert slope(hours, peaks) == pytest.approx(0.0)
    assert slope([0.0], [1.0]) == 0.0


def test_readings_are_of_the_process_itself() -> None:
    readings = Readings()
    before = held_by(os.getpid())
    null = Path(os.devnull)
    with null.open() as one, null.open() as two:
        assert not one.closed
        assert not two.closed
        for hour in range(10):
            readings.take(float(hour), {"me": os.getpid()})
        assert held_by(os.getpid()).descriptors == before.descriptors + 2
    assert readings.slopes()["me"]["descriptors_per_hour"] == 0.0
    assert before.rss_mb > 10.0
