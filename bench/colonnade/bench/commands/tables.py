"""``colonnade bench tables``: alignment, partial overlap, categories, commands to a model."""

import argparse
import importlib
import importlib.util
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from colonnade.bench.scratch import add_bench_options, public_tables, say
from colonnade.bench.tables.align import measure_alignment
from colonnade.bench.tables.categories import TABLES, measure_categories
from colonnade.bench.tables.commands import PAGE, count_commands

PARTS = ("align", "overlap", "categories", "commands")
_OVERLAP = "colonnade.bench.tables.overlap"
_ROW = (
    "parties",
    "ids",
    "seconds",
    "cpu_us_per_id",
    "up_bytes_per_id",
    "predicted_bytes_per_id",
    "restarts",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything that a federation of real tables begins with: what an alignment costs beside "
        "bare X25519 multiplications, what partial overlap and text columns cost in accuracy, and "
        "how many commands lie between files and a model."
    )
    add_bench_options(parser, PARTS)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    wanted = PARTS if arguments.only is None else (arguments.only,)
    folder = arguments.data or public_tables()
    result: dict[str, Any] = {}
    for part in wanted:
        say(part)
        result |= _MEASURES[part](folder, arguments.quick)
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "tables.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result) if arguments.json else _text(result))
    return 0


def _align(_folder: Path | None, quick: bool) -> dict[str, Any]:
    sizes = [(2, 5_000), (3, 5_000)] if quick else [(2, 50_000), (3, 50_000), (8, 5_000)]
    found = [measure_alignment(*size) for size in sizes]
    ratio = min(each.ids_per_s_vs_x25519_floor for each in found)
    found.append(measure_alignment(3, 1_000, restarts=8))
    rows = [{name: asdict(each)[name] for name in _ROW} for each in found]
    return {"align": rows, "ids_per_s_vs_x25519_floor": ratio}


def _overlap(_folder: Path | None, quick: bool) -> dict[str, Any]:
    if importlib.util.find_spec(_OVERLAP) is None:
        return {"overlap": []}
    return {"overlap": list(importlib.import_module(_OVERLAP).rows(quick))}


def _categories(folder: Path | None, quick: bool) -> dict[str, Any]:
    if folder is None:
        return {"categories": []}
    names, seeds = (("adult",), (0,)) if quick else (tuple(TABLES), (0, 1, 2))
    return {"categories": [asdict(e) for e in measure_categories(folder, names, seeds=seeds)]}


def _commands(_folder: Path | None, _quick: bool) -> dict[str, Any]:
    return {"commands": count_commands() if PAGE.is_file() else None}


_MEASURES: dict[str, Callable[[Path | None, bool], dict[str, Any]]] = {
    "align": _align,
    "overlap": _overlap,
    "categories": _categories,
    "commands": _commands,
}


def _text(result: dict[str, Any]) -> str:
    lines: list[str] = []
    if "align" in result:
        lines.append("".join(f"{name:>24}" for name in _ROW))
        lines += ["".join(f"{row[name]:>24.6g}" for name in _ROW) for row in result["align"]]
        ratio = result["ids_per_s_vs_x25519_floor"]
        lines += [f"ids/s against bare X25519 {ratio:.2f} (aim 0.6)", ""]
    for part, keys in (
        ("overlap", ("presence", "r2", "r2_complete")),
        ("categories", ("data", "auc", "auc_hand_encoded")),
    ):
        if part in result:
            lines.append("".join(f"{name:>20}" for name in keys))
            lines += ["".join(f"{row[name]:>20}" for name in keys) for row in result[part]]
            lines.append("")
    if counted := result.get("commands"):
        lines.append(
            f"commands to a model: {counted['party']} a party (aim 6), {counted['operator']} for "
            "the operator (aim 4)"
        )
    return "\n".join(lines).rstrip()
