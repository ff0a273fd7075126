"""``colonnade bench accuracy``: jobs beside references that are hard to beat; papers' tables."""

import argparse
import functools
from typing import Any

from colonnade.bench.accuracy.admm import admm_rows
from colonnade.bench.accuracy.references import reference_rows
from colonnade.bench.parts import BenchSetting, Measure, run_parts, table, write_numbers
from colonnade.bench.scratch import add_bench_options
from colonnade.bench.solvers.cases import PASSES, SPARSE, case_names
from colonnade.bench.solvers.table2 import table2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Accuracy at equal (epsilon, delta) on rows that were not fitted: vertical jobs, the "
        "single-site solver and federated ADMM beside the best that one place can do with and "
        "without privacy; and relative errors beside those that a paper prints."
    )
    add_bench_options(parser, _MEASURES)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    write = functools.partial(write_numbers, name="accuracy.json")
    return run_parts(arguments, _MEASURES, dict.fromkeys(_MEASURES, table()), write)


def _paper(given: BenchSetting) -> list[dict[str, Any]]:
    """Return rows of Table 2 of Mangold et al. (2022)."""
    names = tuple(name for name in case_names() if name == SPARSE or given.tables is not None)
    if given.quick:
        names = tuple(name for name in names if name.startswith("california"))
    return table2(
        given.tables,
        cases=names,
        passes=(2, 10) if given.quick else PASSES,
        solvers=("cd", "sgd"),
        seeds=2 if given.quick else 10,
    )


_MEASURES: dict[str, Measure] = {
    "references": lambda given: {"references": reference_rows(given.quick, given.tables)},
    "admm": lambda given: {"admm": admm_rows(given.quick, given.tables)},
    "paper": lambda given: {"paper": _paper(given)},
}
