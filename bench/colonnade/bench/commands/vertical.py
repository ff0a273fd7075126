"""``colonnade bench vertical``: utility, scaling, uplink, speed and memory of the vertical job."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from colonnade.bench.parts import BenchSetting, Measure, Text, run_parts, table
from colonnade.bench.scratch import add_bench_options, say
from colonnade.bench.vertical.coverage import coverage
from colonnade.bench.vertical.figures import write_figures
from colonnade.bench.vertical.memory import party_memory
from colonnade.bench.vertical.methods import methods
from colonnade.bench.vertical.prediction import prediction, prediction_text
from colonnade.bench.vertical.sealed import sealed_rows
from colonnade.bench.vertical.speed import FULL, QUICK, measure_speed
from colonnade.bench.vertical.uplink import uplink_ratios
from colonnade.bench.vertical.utility import METHODS, scaling, utility


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything in one run: accuracy at equal epsilon and delta, both kinds of job "
        "side by side with bounds bought and charged, sealed jobs beside sketched ones, how often "
        "intervals cover, how error and uplink scale, uplink against other ways to send, people "
        "scored without a joined table, rounds per second against a floor of bare messages and "
        "syncs, a party's memory, and the time to a simulation's first round."
    )
    add_bench_options(parser, _MEASURES)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    return run_parts(arguments, _MEASURES, _TEXTS, write_figures)


def _memory(given: BenchSetting) -> dict[str, Any]:
    memory = party_memory(given.folder, 50_000 if given.quick else 1_000_000, 100)
    return {"memory_mb": memory["memory_mb"], "memory": memory}


def _first_round(folder: Path) -> float:
    """Run a simulation as a user would and return the seconds to its first round."""
    say("a simulation's first round")
    options = ("--rows", "20000", "--rounds", "3", "--json", "--out", str(folder / "first"))
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(float(json.loads(done.stdout)["first_round_s"]), 2)


_MEASURES: dict[str, Measure] = {
    "utility": lambda given: {"utility": utility(given.quick, given.tables)},
    "methods": lambda given: {"methods": methods(given.quick, given.tables)},
    "sealed": lambda given: {"sealed": sealed_rows(given.quick, given.tables)},
    "intervals": lambda given: {"intervals": coverage(given.quick)},
    "scaling": lambda given: {"scaling": scaling(given.quick)},
    "uplink": lambda _: {"uplink": uplink_ratios()},
    "prediction": lambda given: {"prediction": prediction(given.folder, quick=given.quick)},
    "speed": lambda given: {
        "speed": measure_speed(given.folder, effort=QUICK if given.quick else FULL)
    },
    "memory": _memory,
    "first_round": lambda given: {"first_round_s": _first_round(given.folder)},
}


def _scaling_text(scaling: dict[str, Any]) -> str:
    names = ("n", "error", "payload_bytes")
    points = zip(*(scaling[name] for name in names), strict=True)
    slopes = f"slopes {scaling['error_slope']:.2f} and {scaling['payload_slope']:.2f}"
    text = table(*names, note=f"{slopes} (the paper's: -0.67 and 0.67)")
    return text([dict(zip(names, point, strict=True)) for point in points])


_TEXTS: dict[str, Text] = {
    "utility": table("case", "metric", *METHODS, title="medians"),
    "methods": table(title="medians, bounds charged"),
    "sealed": table(title="medians, label at one party"),
    "intervals": table(title="coverage of 95 % intervals"),
    "scaling": _scaling_text,
    "uplink": table(title="uplink, times less"),
    "prediction": prediction_text,
    "speed": table("parties", "rounds_per_s", "floor_rounds_per_s", "ratio", note="aim 3"),
    "memory": (
        "party memory {0[memory_mb]:.0f} MB beside a mapped table of {0[mapped_mb]:.0f} MB "
        "(aim below 400)"
    ).format,
    "first_round_s": "first round {:.1f} s (aim below 5)".format,
}
