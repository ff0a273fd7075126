"""``colonnade bench accuracy``: jobs beside references that are hard to beat; papers' tables."""

import argparse
import importlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from colonnade.bench.accuracy.references import reference_rows
from colonnade.bench.scratch import add_bench_options, public_tables, say
from colonnade.bench.solvers.cases import PASSES, SPARSE, case_names
from colonnade.bench.solvers.table2 import table2

PARTS = ("references", "admm", "paper")
_ADMM = "colonnade.bench.accuracy.admm"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Accuracy at equal (epsilon, delta) on rows that were not fitted: vertical jobs, the "
        "single-site solver and federated ADMM beside the best that one place can do with and "
        "without privacy; and relative errors beside those that a paper prints."
    )
    add_bench_options(parser, PARTS)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    wanted = PARTS if arguments.only is None else (arguments.only,)
    folder = arguments.data or public_tables()
    result = {part: _MEASURES[part](folder, arguments.quick) for part in wanted}
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result, indent=1) + "\n"
        (arguments.out / "accuracy.json").write_text(text, "utf-8")
    print(json.dumps(result) if arguments.json else "\n\n".join(map(_text, result.values())))
    return 0


def _references(folder: Path | None, quick: bool) -> list[dict[str, Any]]:
    return reference_rows(quick, folder, say)


def _admm(folder: Path | None, quick: bool) -> list[dict[str, Any]]:
    if importlib.util.find_spec(_ADMM) is None:
        return []
    return list(importlib.import_module(_ADMM).admm_rows(quick, folder, say))


def _paper(folder: Path | None, quick: bool) -> list[dict[str, Any]]:
    """Return rows of Table 2 of Mangold et al. (2022)."""
    names = tuple(name for name in case_names() if name == SPARSE or folder is not None)
    if quick:
        names = tuple(name for name in names if name.startswith("california"))
    return table2(
        folder,
        cases=names,
        passes=(2, 10) if quick else PASSES,
        solvers=("cd", "sgd"),
        seeds=2 if quick else 10,
        progress=say,
    )


_MEASURES: dict[str, Callable[[Path | None, bool], list[dict[str, Any]]]] = {
    "references": _references,
    "admm": _admm,
    "paper": _paper,
}


def _text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "nothing to measure here"
    keys = [key for key, value in rows[0].items() if not isinstance(value, dict)]
    lines = ["".join(f"{key:>22}" for key in keys)]
    lines += ["".join(f"{_cell(row[key]):>22}" for key in keys) for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
