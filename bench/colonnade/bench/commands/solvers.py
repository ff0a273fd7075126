"""``colonnade bench solvers``: the papers' table, speed, growth and peers of the solvers."""

import argparse
import json
from pathlib import Path
from typing import Any

from colonnade.bench.scratch import add_folder_option, public_tables, say, scratch
from colonnade.bench.solvers import table2
from colonnade.bench.solvers.cases import PASSES, case_names
from colonnade.bench.solvers.figures import write_figures
from colonnade.bench.solvers.memory import FORMS, measure_memory
from colonnade.bench.solvers.others import dual_rows, greedy_rows
from colonnade.bench.solvers.peers import measure_peers
from colonnade.bench.solvers.speed import measure_growth, measure_speed
from colonnade.cli.parser import WrongUsage

_PAPERS = {"dpcd": "table2", "dpscd": "dpscd"}
PARTS = ("table2", "greedy", "dual", "speed", "growth", "memory", "peers", "dpscd")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Relative errors of private coordinate descent and SGD beside the ones that "
        "Mangold et al. (2022) print, tuned beforehand and run on fresh noise; time against the "
        "same loop in C; growth in rows and columns; accuracy beside other libraries."
    )
    parser.add_argument("--quick", action="store_true", help="less of each, under 50 s")
    parser.add_argument("--paper", choices=("dpcd", "dpscd"), help="only this paper's comparison")
    parser.add_argument("--only", choices=PARTS, help=f"one of {', '.join(PARTS)}")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="search the grids again (two hours for all) and write tuned.json to --out",
    )
    parser.add_argument("--out", type=Path, help="folder for the figure (PNG) and numbers (JSON)")
    parser.add_argument(
        "--data", type=Path, help="folder of the public tables; default COLONNADE_DATA"
    )
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    if arguments.tune and arguments.out is None:
        raise WrongUsage("--tune needs --out, for what it finds")
    wanted = PARTS if arguments.paper is None else (_PAPERS[arguments.paper],)
    if arguments.only is not None:
        wanted = (arguments.only,)
    with scratch(arguments.folder) as folder:
        result = _measure(wanted, arguments, folder)
    if arguments.out is not None:
        write_figures(result, arguments.out, tuned=arguments.tune)
    print(json.dumps(result) if arguments.json else _text(result))
    return 0


def _measure(
    wanted: tuple[str, ...], arguments: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    tables, quick = arguments.data or public_tables(), arguments.quick
    result: dict[str, Any] = {}
    if "table2" in wanted:
        result["table2"] = table2.table2(
            tables,
            cases=tuple(name for name in case_names() if not quick or name != "sparse lasso"),
            passes=(2, 10) if quick else PASSES,
            solvers=("cd", "sgd") if quick else table2.SOLVERS,
            again=arguments.tune,
            seeds=2 if quick else 10,
            progress=say,
        )
    if "greedy" in wanted:
        seeds = 2 if quick else 10
        result["greedy"] = greedy_rows(tables, seeds=seeds, again=arguments.tune, progress=say)
    if "dual" in wanted:
        some: dict[str, Any] = {"names": ("phishing",), "epsilons": (1.0,)} if quick else {}
        seeds = 1 if quick else 10
        result["dual"] = dual_rows(tables, seeds=seeds, again=arguments.tune, progress=say, **some)
    if "dpscd" in wanted:
        from colonnade.bench.solvers.dpscd import dpscd_rows  # noqa: PLC0415 (dp-accounting)

        some = {"names": ("phishing",), "epsilons": (1.0,)} if quick else {}
        seeds = 1 if quick else 10
        result["dpscd"] = dpscd_rows(tables, seeds=seeds, progress=say, **some)
    if "speed" in wanted:
        rounds = 9 if quick else 21
        result["speed"] = measure_speed(tables, folder, rounds=rounds, progress=say)
    if "growth" in wanted:
        small = ((10**4, 10), (10**5, 10), (10**5, 100))
        sizes = small if quick else (*small, (10**6, 10), (10**6, 100))
        result["growth"] = measure_growth(sizes, progress=say)
    if "memory" in wanted:
        n_rows, n_features = (2 * 10**5, 50) if quick else (10**6, 100)
        forms = FORMS[:1] if quick else FORMS
        result["memory"] = measure_memory(n_rows, n_features, forms=forms, progress=say)
    if "peers" in wanted:
        # Opacus takes most of a minute for a fit of the whole problem.
        some = {"fits": 1, "n_rows": 20_000} if quick else {"fits": 10}
        result["peers"] = measure_peers(**some, progress=say)
    return result


def _text(result: dict[str, Any]) -> str:
    lines: list[str] = []
    if "table2" in result:
        lines += [
            f"{'relative error':<28}{'solver':<14}{'passes':>7}{'ours':>10}{'paper':>10}  zero"
        ]
        for row in result["table2"]:
            paper = "-" if row["paper"] is None else f"{row['paper']:.4f}"
            lines.append(
                f"{row['data']:<28}{row['solver']:<14}{row['passes']:>7}"
                f"{row['relative_error']:>10.4f}{paper:>10}  {row['zero_model']:.4f}"
            )
        lines.append("constants, standardisation and tuning are not charged, as in the paper")
    for row in result.get("greedy", ()):
        error, zero = row["relative_error"], row["zero_model"]
        lines.append(f"{row['data']:<28}{row['solver']:<14}{error:>10.4f}  zero {zero:.4f}")
    for row in result.get("dual", ()):
        case = f"{row['data']} {row['loss']} epsilon {row['epsilon']:g}"
        told = f"accuracy {row['accuracy']:.3f}, the larger class {row['majority']:.3f}"
        lines.append(f"{case:<32}{row['solver']:<18}{told}")
    for row in result.get("dpscd", ()):
        case = f"{row['data']} {row['loss']} epsilon {row['epsilon']:g}"
        whose = f"{row['solver']}, {row['accounting']}"
        told = f"noise {row['noise']:>8.3f}  accuracy {row['accuracy']:.3f}"
        lines.append(f"{case:<32}{whose:<14}{told}{'' if row['promise'] else '  no promise'}")
    for row in result.get("speed", ()):
        ratio = "no C compiler" if row["vs_reference"] is None else f"{row['vs_reference']:.2f}"
        lines.append(
            f"{row['data']}: 50 passes in {row['seconds_50_passes']:.4f} s, "
            f"{ratio} times the same loop in C (aim 1.2)"
        )
    for row in result.get("growth", ()):
        lines.append(
            f"n {row['n']:>8}  p {row['p']:>4}  {row['seconds_per_pass']:.4f} s a pass, "
            f"{row['ns_per_value']:.2f} ns a value"
        )
    for row in result.get("memory", ()):
        lines.append(
            f"{row['form']}, {row['solver']}: at its peak {row['peak_vs_data']:.2f} times "
            f"the data's {row['data_mb']:.0f} MB (aim 1.5)"
        )
    for row in result.get("peers", ()):
        told = row["note"] if row["r2"] is None else f"R2 {row['r2']:.3f} in {row['seconds']:.2f} s"
        lines.append(f"{row['library']:<28}{told}")
    return "\n".join(lines)
