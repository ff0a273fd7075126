"""``colonnade bench vertical``: utility, scaling, uplink, speed and memory of the vertical job."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from colonnade.bench.scratch import add_bench_options, public_tables, say, scratch
from colonnade.bench.vertical.coverage import coverage
from colonnade.bench.vertical.figures import write_figures
from colonnade.bench.vertical.memory import party_memory
from colonnade.bench.vertical.methods import methods
from colonnade.bench.vertical.prediction import prediction, prediction_lines
from colonnade.bench.vertical.sealed import sealed_rows
from colonnade.bench.vertical.speed import FULL, QUICK, measure_speed
from colonnade.bench.vertical.uplink import uplink_ratios
from colonnade.bench.vertical.utility import scaling, utility

PARTS = (
    "utility",
    "methods",
    "sealed",
    "intervals",
    "scaling",
    "uplink",
    "prediction",
    "speed",
    "memory",
    "first_round",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything in one run: accuracy at equal epsilon and delta, both kinds of job "
        "side by side with bounds bought and charged, sealed jobs beside sketched ones, how often "
        "intervals cover, how error and uplink scale, uplink against other ways to send, people "
        "scored without a joined table, rounds per second against a floor of bare messages and "
        "syncs, a party's memory, and the time to a simulation's first round."
    )
    add_bench_options(parser, PARTS)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    wanted = PARTS if arguments.only is None else (arguments.only,)
    with scratch(arguments.folder) as folder:
        tables = arguments.data or public_tables()
        result = _measure(wanted, folder, tables=tables, quick=arguments.quick)
    if arguments.out is not None:
        write_figures(result, arguments.out)
    print(json.dumps(result) if arguments.json else _text(result))
    return 0


def _measure(
    wanted: tuple[str, ...], folder: Path, *, tables: Path | None, quick: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if "utility" in wanted:
        result["utility"] = utility(quick=quick, progress=say, folder=tables)
    if "methods" in wanted:
        result["methods"] = methods(quick=quick, progress=say, folder=tables)
    if "sealed" in wanted:
        result["sealed"] = sealed_rows(quick=quick, progress=say, folder=tables)
    if "intervals" in wanted:
        result["intervals"] = coverage(quick=quick, progress=say)
    if "scaling" in wanted:
        result["scaling"] = scaling(quick=quick, progress=say)
    if "uplink" in wanted:
        result["uplink"] = uplink_ratios()
    if "prediction" in wanted:
        result["prediction"] = prediction(folder, quick=quick, progress=say)
    if "speed" in wanted:
        effort = QUICK if quick else FULL
        result["speed"] = measure_speed(folder, effort=effort, progress=say)
    if "memory" in wanted:
        memory = party_memory(folder, 50_000 if quick else 1_000_000, 100, progress=say)
        result["memory_mb"], result["memory"] = memory["memory_mb"], memory
    if "first_round" in wanted:
        say("a simulation's first round")
        result["first_round_s"] = _first_round(folder)
    return result


def _first_round(folder: Path) -> float:
    """Run a simulation as a user would and return the seconds to its first round."""
    options = ("--rows", "20000", "--rounds", "3", "--json", "--out", str(folder / "first"))
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(float(json.loads(done.stdout)["first_round_s"]), 2)


def _text(result: dict[str, Any]) -> str:
    lines: list[str] = []
    tables: dict[str, Callable[[Any], list[str]]] = {
        "utility": _utility_lines,
        "methods": _methods_lines,
        "sealed": _sealed_lines,
        "intervals": _interval_lines,
        "scaling": _scaling_lines,
        "uplink": _uplink_lines,
        "prediction": prediction_lines,
        "speed": _speed_lines,
    }
    for name, write in tables.items():
        if name in result:
            lines += [*write(result[name]), ""]
    if "memory" in result:
        memory = result["memory"]
        lines.append(
            f"party memory        {memory['memory_mb']:.0f} MB beside a mapped table of "
            f"{memory['mapped_mb']:.0f} MB (aim below 400)"
        )
    if "first_round_s" in result:
        lines.append(f"first round         {result['first_round_s']:.1f} s (aim below 5)")
    return "\n".join(lines).rstrip()


def _utility_lines(rows: list[dict[str, Any]]) -> list[str]:
    columns = ("nonprivate", "central", "ours", "no_sharing", "sketched_labels", "paper")
    head = f"{'R2 or AUC, medians':<34}" + "".join(f"{name:>16}" for name in columns)
    lines = [head]
    for row in rows:
        case = f"{row['case']} ({row['metric']})"
        cells = (row.get(name) for name in columns)
        shown = "".join(f"{'-':>16}" if cell is None else f"{cell:>16.3f}" for cell in cells)
        lines.append(f"{case:<34}{shown}")
    return lines


def _methods_lines(rows: list[dict[str, Any]]) -> list[str]:
    names = ("central", "frank_wolfe", "moments", "frank_wolfe_sketched", "moments_sketched")
    heads = ("central", "FW", "moments", "FW, sketched", "moments, sk.")
    head = f"{'bounds charged, medians':<34}" + "".join(f"{name:>14}" for name in heads)
    lines = [f"{head}{'bytes FW':>12}{'moments':>9}{'s FW':>8}{'moments':>9}  plan"]
    for row in rows:
        shown = "".join(
            f"{'-':>14}" if row[name] is None else f"{row[name]:>14.3f}" for name in names
        )
        cost = f"{row['frank_wolfe_bytes']:>12}{row['moments_bytes']:>9}"
        time = f"{row['frank_wolfe_s']:>8.2f}{row['moments_s']:>9.2f}"
        lines.append(
            f"{row['case'] + ' (' + row['metric'] + ')':<34}{shown}{cost}{time}  {row['chosen']}"
        )
    return lines


def _sealed_lines(rows: list[dict[str, Any]]) -> list[str]:
    scores = ("nonprivate", "central", "sketched", "sealed", "sealed_worst")
    costs = ("payload_mb", "predicted_mb", "seconds", "seconds_sketched")
    head = "".join(f"{name:>14}" for name in scores) + "".join(f"{name:>18}" for name in costs)
    lines = [f"{'label at one party, medians':<34}{head}"]
    for row in rows:
        shown = "".join(f"{row[name]:>14.3f}" for name in scores)
        cost = "".join(f"{row[name]:>18.2f}" for name in costs)
        lines.append(f"{row['case'] + ' (' + row['metric'] + ')':<34}{shown}{cost}")
    return lines


def _interval_lines(rows: list[dict[str, Any]]) -> list[str]:
    names = ("nonzero", "zero", "error", "shares", "odds")
    lines = [f"{'95 % intervals, coverage':<42}" + "".join(f"{name:>10}" for name in names)]
    for row in rows:
        cells = "".join(
            f"{'-':>10}" if row[name] is None else f"{row[name]:>10.3f}" for name in names
        )
        lines.append(f"{row['case'] + ', ' + row['labels'] + ' labels':<42}{cells}")
    return lines


def _scaling_lines(scaling: dict[str, Any]) -> list[str]:
    lines = [f"{'n':>10}{'excess error':>16}{'payload bytes':>16}"]
    for n, error, size in zip(
        scaling["n"], scaling["error"], scaling["payload_bytes"], strict=True
    ):
        lines.append(f"{n:>10}{error:>16.4f}{size:>16}")
    slopes = f"{'slope':>10}{scaling['error_slope']:>16.2f}{scaling['payload_slope']:>16.2f}"
    return [*lines, f"{slopes}   (the paper's: -0.67 and 0.67)"]


def _uplink_lines(rows: list[dict[str, Any]]) -> list[str]:
    names = ("vs_columns", "vs_one_shot", "vs_float64")
    lines = [f"{'uplink, times less':<20}" + "".join(f"{name:>14}" for name in names)]
    for row in rows:
        cells = "".join(f"{row[name]:>14.1f}" for name in names)
        lines.append(f"n = {row['n']:<16}{cells}   ({row['payload_bytes']} bytes)")
    return lines


def _speed_lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = [f"{'parties':<10}{'rounds/s':>12}{'floor':>12}{'ratio':>10}   aim 3"]
    for row in rows:
        ours, floor = row["rounds_per_s"], row["floor_rounds_per_s"]
        lines.append(f"{row['parties']:<10}{ours:>12.1f}{floor:>12.1f}{row['ratio']:>10.2f}")
    return lines
