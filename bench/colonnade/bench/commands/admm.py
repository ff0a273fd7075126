"""``colonnade bench admm``: utility beside its peers, throughput, ten thousand clients, growth."""

import argparse
from typing import Any

from colonnade.bench.admm import paper, scale, skewed, utility
from colonnade.bench.admm.figures import write_figures
from colonnade.bench.parts import Measure, Text, run_parts, table
from colonnade.bench.scratch import add_bench_options

_MEASURES: dict[str, Measure] = {
    "utility": lambda given: {
        "utility": utility.utility(utility.QUICK if given.quick else utility.FULL, given.tables)
    },
    "skewed": lambda given: {"skewed": skewed.skewed_rows(given.quick, given.tables)},
    "paper": lambda given: {"paper": paper.paper_rows(paper.QUICK if given.quick else paper.FULL)},
    "scale": lambda given: scale.measure(given.folder, scale.QUICK if given.quick else scale.FULL),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything in one run: accuracy at equal epsilon of each client beside "
        "centralised ADMM, federated DP-SGD and no privacy; the paper's lasso with right noise; "
        "processor time of a client's answer against a plain NumPy loop; 10,000 clients at one "
        "host with memory; time of a round against its clients."
    )
    add_bench_options(parser, _MEASURES)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    return run_parts(arguments, _MEASURES, _TEXTS, write_figures)


def _utility_text(rows: list[dict[str, Any]]) -> str:
    methods = ("nonprivate", *utility.METHODS)

    def shown(cell: dict[str, float]) -> str:
        return f"{cell['test_score']:.3f} ({cell['objective_gap']:.2g})"

    text = table("case", "metric", "epsilon", *methods, title="test score (objective gap), medians")
    return text([row | {method: shown(row[method]) for method in methods} for row in rows])


_TEXTS: dict[str, Text] = {
    "utility": _utility_text,
    "skewed": table(title="clients sorted by label, test score"),
    "paper": table(title="the paper's lasso"),
    "throughput_fraction": "a client's answer: {:.2f} of the NumPy loop (aim 0.20)".format,
    "throughput": (
        "us of processor time: {0[ours_us]}; the loop {0[loop_us]:.0f}; of the host alone "
        "{0[host_fraction]:.2f}; {0[clients_per_s_per_core]:.0f} clients a second and core"
    ).format,
    "clients_10k": (
        "{0[clients]} clients, {0[sampled]} sampled, {0[features]} features: a round "
        "{0[seconds_per_round]:.3f} s, {0[peak_rss_mb]:.0f} MB in both processes (aim below 2000)"
    ).format,
    "growth": lambda growth: table(
        title="growth",
        note=(
            f"power {growth['power']:.2f}, of processor time {growth['cpu_power']:.2f} (linear: "
            f"1); a round's own part is {growth['ms_per_round']:.0f} ms"
        ),
    )(growth["rows"]),
}
