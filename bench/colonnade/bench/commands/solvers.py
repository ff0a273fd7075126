"""``colonnade bench solvers``: the papers' table, speed, growth and peers of the solvers."""

import argparse
import functools
from typing import Any

from colonnade.bench.parts import BenchSetting, Measure, Text, run_parts, table
from colonnade.bench.scratch import add_bench_options
from colonnade.bench.solvers import table2
from colonnade.bench.solvers.cases import PASSES, case_names
from colonnade.bench.solvers.figures import write_figures
from colonnade.bench.solvers.memory import FORMS, measure_memory
from colonnade.bench.solvers.others import dual_rows, greedy_rows
from colonnade.bench.solvers.peers import measure_peers
from colonnade.bench.solvers.speed import SIZES, measure_growth, measure_speed
from colonnade.cli.parser import WrongUsage

_PAPERS = {"dpcd": "table2", "dpscd": "dpscd"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Relative errors of private coordinate descent and SGD beside the ones that "
        "Mangold et al. (2022) print, tuned beforehand and run on fresh noise; time against the "
        "same loop in C; growth in rows and columns; accuracy beside other libraries."
    )
    add_bench_options(parser, PARTS)
    parser.add_argument("--paper", choices=("dpcd", "dpscd"), help="only this paper's comparison")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="search the grids again (two hours for all) and write tuned.json to --out",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    if arguments.tune and arguments.out is None:
        raise WrongUsage("--tune needs --out, for what it finds")
    arguments.only = arguments.only or _PAPERS.get(arguments.paper)
    write = functools.partial(write_figures, tuned=arguments.tune)
    return run_parts(arguments, _measures(again=arguments.tune), _TEXTS, write)


def _measures(*, again: bool) -> dict[str, Measure]:
    """Return how each part is measured; ``again`` searches the grids of settings anew."""
    return {
        "table2": lambda given: {"table2": _table2(given, again=again)},
        "greedy": lambda given: {
            "greedy": greedy_rows(given.tables, seeds=2 if given.quick else 10, again=again)
        },
        "dual": lambda given: {"dual": dual_rows(given.tables, again=again, **_effort(given))},
        "speed": lambda given: {
            "speed": measure_speed(given.tables, given.folder, rounds=9 if given.quick else 21)
        },
        "growth": lambda given: {"growth": measure_growth(SIZES[: 3 if given.quick else None])},
        "memory": lambda given: {
            "memory": (
                measure_memory(2 * 10**5, 50, forms=FORMS[:1])
                if given.quick
                else measure_memory(10**6, 100)
            )
        },
        # Opacus takes most of a minute for a fit of the whole problem.
        "peers": lambda given: {
            "peers": measure_peers(fits=1, n_rows=20_000) if given.quick else measure_peers(fits=10)
        },
        "dpscd": _dpscd,
    }


def _table2(given: BenchSetting, *, again: bool) -> list[dict[str, Any]]:
    quick = given.quick
    return table2.table2(
        given.tables,
        cases=tuple(name for name in case_names() if not quick or name != "sparse lasso"),
        passes=(2, 10) if quick else PASSES,
        solvers=("cd", "sgd") if quick else table2.SOLVERS,
        again=again,
        seeds=2 if quick else 10,
    )


def _dpscd(given: BenchSetting) -> dict[str, Any]:
    from colonnade.bench.solvers.dpscd import dpscd_rows  # noqa: PLC0415 (dp-accounting)

    return {"dpscd": dpscd_rows(given.tables, **_effort(given))}


def _effort(given: BenchSetting) -> dict[str, Any]:
    return (
        {"names": ("phishing",), "epsilons": (1.0,), "seeds": 1} if given.quick else {"seeds": 10}
    )


PARTS = tuple(_measures(again=False))
_TEXTS: dict[str, Text] = {
    "table2": table(
        *("data", "solver", "passes", "relative_error", "paper", "zero_model"),
        note="constants, standardisation and tuning are not charged, as in the paper",
    ),
    "greedy": table("data", "solver", "relative_error", "zero_model"),
    "dual": table("data", "loss", "epsilon", "solver", "accuracy", "majority"),
    "speed": table("data", "seconds_50_passes", "vs_reference", note="aim 1.2 times the C loop's"),
    "growth": table(),
    "memory": table("form", "solver", "peak_vs_data", "data_mb", note="aim 1.5"),
    "peers": table("library", "r2", "seconds", "note"),
    "dpscd": table(
        "data", "loss", "epsilon", "solver", "accounting", "noise", "accuracy", "promise"
    ),
}
