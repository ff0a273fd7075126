"""Figures of the benchmark of jobs over clients, for people."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from colonnade.bench.parts import write_numbers

_METHODS = {
    "nonprivate": ("non-private", "#9aa0a6"),
    "centralised_admm": ("centralised ADMM", "#5f6368"),
    "federated_sgd": ("federated DP-SGD, tuned", "#e07b39"),
    "paper_admm": ("the paper's ADMM, tuned", "#8ab4f8"),
    "federated_admm": ("federated ADMM", "#3b7ddd"),
}


def write_figures(result: dict[str, Any], folder: Path) -> None:
    """Write ``bench.json`` and a PNG for each part that has a picture."""
    write_numbers(result, folder)
    for part, draw in (("utility", _utility), ("paper", _paper), ("growth", _growth)):
        if part in result:
            draw(result[part], folder / f"{part}.png")


def _utility(rows: list[dict[str, Any]], path: Path) -> None:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    figure = Figure(figsize=(3.4 * len(cases), 3.4), layout="constrained")
    for place, case in enumerate(cases):
        axes = figure.add_subplot(1, len(cases), place + 1)
        mine = [row for row in rows if row["case"] == case]
        epsilons = [row["epsilon"] for row in mine]
        for method, (name, colour) in _METHODS.items():
            scores = [row[method]["test_score"] for row in mine]
            axes.plot(epsilons, scores, marker="o", color=colour, label=name)
        axes.set_xscale("log")
        axes.set_title(case, fontsize=10)
        axes.set_xlabel("epsilon of each client")
        axes.set_ylabel(f"{mine[0]['metric']} on held-out rows")
        axes.grid(color="#e8eaed")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def _paper(rows: list[dict[str, Any]], path: Path) -> None:
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    axes = figure.add_subplot()
    epsilons = [row["central_epsilon"] for row in rows]
    gaps = [row["objective_gap"] for row in rows]
    axes.plot(epsilons, gaps, "o-", color="#3b7ddd", label="federated ADMM")
    for row in rows:
        enforced = f"{row['local_epsilon']:.3g}"
        place = row["central_epsilon"], row["objective_gap"]
        axes.annotate(
            enforced, place, (-4, -12), textcoords="offset points", fontsize=8, ha="right"
        )
    axes.axhline(rows[0]["zero_model_gap"], color="#9aa0a6", ls="--", label="zero model")
    axes.axhline(rows[0]["quiet_gap"], color="#9aa0a6", ls=":", label="hardly any noise")
    axes.set(xscale="log", yscale="log", ylabel="objective gap")
    axes.set_xlabel("central epsilon, model-based\n(at the points: a client's own, enforced)")
    axes.margins(x=0.15, y=0.1)
    axes.grid(color="#e8eaed")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def _growth(growth: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(4.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    rows = growth["rows"]
    sampled = [row["sampled"] for row in rows]
    axes.plot(sampled, [row["seconds_per_round"] for row in rows], "o", color="#3b7ddd")
    fitted = [(growth["ms_per_round"] + growth["ms_per_client"] * n) / 1e3 for n in sampled]
    axes.plot(sampled, fitted, color="#9aa0a6", label="straight line")
    axes.set_xlabel("clients of a round")
    axes.set_ylabel("seconds a round")
    axes.set_ylim(bottom=0.0)
    axes.grid(color="#e8eaed")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
