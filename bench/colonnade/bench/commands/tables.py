"""``colonnade bench tables``: alignment, partial overlap, categories, commands to a model."""

import argparse
import functools
from dataclasses import asdict
from typing import Any

from colonnade.bench.parts import BenchSetting, Measure, Text, run_parts, table, write_numbers
from colonnade.bench.scratch import add_bench_options, say
from colonnade.bench.tables import overlap
from colonnade.bench.tables.align import measure_alignment
from colonnade.bench.tables.categories import TABLES, measure_categories
from colonnade.bench.tables.commands import PAGE, count_commands

_ROW = (
    "parties",
    "ids",
    "seconds",
    "cpu_us_per_id",
    "up_bytes_per_id",
    "predicted_bytes_per_id",
    "ids_per_s_vs_x25519_floor",
    "restarts",
)
_TEXTS: dict[str, Text] = {
    "align": table(*_ROW),
    "ids_per_s_vs_x25519_floor": "ids/s against bare X25519 {:.2f} (aim 0.6)".format,
    "cpu_vs_x25519_floor": "the same in processor time {:.2f}".format,
    "overlap": table("presence", "r2", "r2_complete"),
    "categories": table("data", "auc", "auc_hand_encoded"),
    "commands": (
        "commands to a model: {0[party]} a party (aim 6), {0[operator]} for the operator (aim 4)"
    ).format,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything that a federation of real tables begins with: what an alignment costs beside "
        "bare X25519 multiplications, what partial overlap and text columns cost in accuracy, and "
        "how many commands lie between files and a model."
    )
    add_bench_options(parser, _MEASURES)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    write = functools.partial(write_numbers, name="tables.json")
    return run_parts(arguments, _MEASURES, _TEXTS, write)


def _align(given: BenchSetting) -> dict[str, Any]:
    say("align")
    sizes = [(2, 5_000), (3, 5_000)] if given.quick else [(2, 50_000), (3, 50_000), (8, 5_000)]
    found = [measure_alignment(*size) for size in sizes]
    # Of two and three parties. Among eight, half of 10,000 multiplied ids are dummies.
    ratio = min(each.ids_per_s_vs_x25519_floor for each in found[:2])
    cpu = min(each.cpu_vs_x25519_floor for each in found[:2])
    found.append(measure_alignment(3, 1_000, restarts=8))
    rows = [{name: asdict(each)[name] for name in _ROW} for each in found]
    return {"align": rows, "ids_per_s_vs_x25519_floor": ratio, "cpu_vs_x25519_floor": cpu}


def _categories(given: BenchSetting) -> dict[str, Any]:
    if given.tables is None:
        return {"categories": []}
    say("categories")
    names, seeds = (("adult",), (0,)) if given.quick else (tuple(TABLES), (0, 1, 2))
    return {"categories": [asdict(e) for e in measure_categories(given.tables, names, seeds=seeds)]}


_MEASURES: dict[str, Measure] = {
    "align": _align,
    "overlap": lambda given: {"overlap": overlap.rows(given.quick)},
    "categories": _categories,
    "commands": lambda _: {"commands": count_commands() if PAGE.is_file() else None},
}
