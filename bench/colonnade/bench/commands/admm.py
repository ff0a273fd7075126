"""``colonnade bench admm``: utility beside its peers, throughput, ten thousand clients, growth."""

import argparse
import json
from typing import Any

from colonnade.bench.admm import paper, scale, skewed, utility
from colonnade.bench.admm.figures import write_figures
from colonnade.bench.scratch import add_bench_options, public_tables, say, scratch

PARTS = ("utility", "skewed", "paper", "scale")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Everything in one run: accuracy at equal epsilon of each client beside "
        "centralised ADMM, federated DP-SGD and no privacy; the paper's lasso with right noise; "
        "processor time of a client's answer against a plain NumPy loop; 10,000 clients at one "
        "host with memory; time of a round against its clients."
    )
    add_bench_options(parser, PARTS)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    quick, result = arguments.quick, dict[str, Any]()
    if arguments.only in (None, "utility"):
        effort = utility.QUICK if quick else utility.FULL
        tables = arguments.data or public_tables()
        result["utility"] = utility.utility(effort, tables, say)
    if arguments.only in (None, "skewed"):
        tables = arguments.data or public_tables()
        result["skewed"] = skewed.skewed_rows(quick, tables, say)
    if arguments.only in (None, "paper"):
        result["paper"] = paper.paper_rows(paper.QUICK if quick else paper.FULL, say)
    if arguments.only in (None, "scale"):
        with scratch(arguments.folder) as folder:
            result |= scale.measure(folder, scale.QUICK if quick else scale.FULL, say)
    if arguments.out is not None:
        write_figures(result, arguments.out)
    print(json.dumps(result) if arguments.json else _text(result))
    return 0


def _text(result: dict[str, Any]) -> str:
    lines: list[str] = []
    if "utility" in result:
        lines += [*_utility_lines(result["utility"]), ""]
    if "skewed" in result:
        lines += [*_skewed_lines(result["skewed"]), ""]
    if "paper" in result:
        lines += [*_paper_lines(result["paper"]), ""]
    if "throughput" in result:
        lines += _scale_lines(result)
    return "\n".join(lines).rstrip()


def _utility_lines(rows: list[dict[str, Any]]) -> list[str]:
    methods = ("nonprivate", "centralised_admm", "federated_sgd", "paper_admm", "federated_admm")
    head = "".join(f"{name:>24}" for name in methods)
    lines = [f"{'test score (objective gap), medians':<40}{head}"]
    for row in rows:
        name = f"{row['case']} ({row['metric']}), epsilon {row['epsilon']:g}"
        cells = (row[method] for method in methods)
        shown = "".join(
            f"{cell['test_score']:>13.3f} ({cell['objective_gap']:.2g})".rjust(24) for cell in cells
        )
        lines.append(f"{name:<40}{shown}")
    return lines


def _skewed_lines(rows: list[dict[str, Any]]) -> list[str]:
    names = ("federated_sgd", "alike", "different")
    head = "".join(f"{name:>16}" for name in names)
    return [
        f"{'clients sorted by label, test score':<48}{head}",
        *(
            f"{row['case']} ({row['metric']}), epsilon {row['epsilon']:g}".ljust(48)
            + "".join(f"{row[name]:>16.3f}" for name in names)
            for row in rows
        ),
    ]


def _paper_lines(rows: list[dict[str, Any]]) -> list[str]:
    first = rows[0]
    head = (
        f"the paper's lasso, {first['clients']} clients of one row, {first['rounds']} rounds of "
        f"{first['sampled']}: objective gap {first['zero_model_gap']:.2g} of the zero model, "
        f"{first['quiet_gap']:.2g} with hardly any noise"
    )
    return [
        head,
        *(
            f"  central epsilon {row['central_epsilon']:.3g} (model-based), of a client "
            f"{row['local_epsilon']:.3g} (enforced): gap {row['objective_gap']:.2g}"
            for row in rows
        ),
    ]


def _scale_lines(result: dict[str, Any]) -> list[str]:
    speed, large, growth = result["throughput"], result["clients_10k"], result["growth"]
    ours = ", ".join(f"{name} {value:.0f}" for name, value in speed["ours_us"].items())
    each = f"{large['clients']} clients, {large['sampled']} sampled, {large['features']} features"
    points = ", ".join(f"{p['sampled']}: {p['seconds_per_round']:.3f}" for p in growth["rows"])
    fraction = f"{result['throughput_fraction']:.2f} of the loop (aim 0.20)"
    host = f"host alone {speed['host_fraction']:.2f}"
    rate = f"{speed['clients_per_s_per_core']:.0f} clients a second and core"
    fixed = f"a round's own part is {growth['ms_per_round']:.0f} ms"
    powers = f"{growth['power']:.2f}, of processor time {growth['cpu_power']:.2f}"
    return [
        f"a client's answer    {ours} us of processor time; NumPy loop {speed['loop_us']:.0f} us",
        f"  fraction           {fraction}, {host}; {rate}",
        each,
        f"  a round            {large['seconds_per_round']:.3f} s",
        f"  memory             {large['peak_rss_mb']:.0f} MB in both processes (aim below 2000)",
        f"growth, s a round    {points}",
        f"  power              {powers} (linear: 1); {fixed}",
    ]
