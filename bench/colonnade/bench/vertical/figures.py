"""Figures of the vertical benchmark, for people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from colonnade.bench.parts import write_numbers

_METHODS = {
    "nonprivate": "non-private",
    "central": "centralised private",
    "ours": "ours",
    "no_sharing": "ours, no sharing",
    "sketched_labels": "ours, label sketched",
    "paper": "paper's calibration",
}
_COLOURS = ("#9aa0a6", "#5f6368", "#3b7ddd", "#8ab4f0", "#2a9d6f", "#e07b39")
_JOBS = {
    "central": "centralised private",
    "frank_wolfe": "Frank-Wolfe",
    "moments": "moments",
    "frank_wolfe_sketched": "Frank-Wolfe, label at one party",
    "moments_sketched": "moments, label at one party",
}
_JOB_COLOURS = ("#5f6368", "#8ab4f0", "#3b7ddd", "#a8d5c2", "#2a9d6f")


def write_figures(result: dict[str, Any], folder: Path) -> None:
    """Write ``bench.json`` and a PNG for each part that has a picture."""
    write_numbers(result, folder)
    if "utility" in result:
        _save(_bars(result["utility"], _METHODS, _COLOURS, 1.9), folder / "utility.png")
    if "methods" in result:
        _save(_bars(result["methods"], _JOBS, _JOB_COLOURS, 1.3), folder / "methods.png")
    if "scaling" in result:
        _save(_scaling(result["scaling"]), folder / "scaling.png")


def _figure(width: float, height: float, panels: int) -> "tuple[Figure, list[Axes]]":
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(1, panels, place + 1) for place in range(panels)]
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e8eaed", linewidth=0.8)
        panel.set_axisbelow(True)
    return figure, axes


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=150)


def _bars(
    rows: list[dict[str, Any]], titles: dict[str, str], colours: Sequence[str], each: float
) -> Figure:
    """Draw a bar for each of ``titles`` in every row; a row takes ``each`` inches."""
    figure, (panel,) = _figure(max(6.0, each * len(rows) + 2.0), 4.2, 1)
    width = 0.8 / len(titles)
    for place, (name, title) in enumerate(titles.items()):
        found = [(k, row[name]) for k, row in enumerate(rows) if row.get(name) is not None]
        panel.bar(
            [k + (place - (len(titles) - 1) / 2) * width for k, _ in found],
            [max(value, 0.0) for _, value in found],
            width * 0.92,
            label=title,
            color=colours[place],
        )
    names = [f"{row['case'].replace(' ', chr(10))}\n({row['metric']})" for row in rows]
    panel.set_xticks(range(len(rows)), names, fontsize=8)
    panel.set_ylim(0.0, 1.0)
    panel.set_ylabel("R² or AUC, median (below 0 drawn as 0)")
    panel.legend(ncols=3, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    return figure


def _scaling(scaling: dict[str, Any]) -> Figure:
    figure, (left, right) = _figure(9.0, 3.8, 2)
    parts = (
        (left, "error", "excess error", scaling["error_slope"], -2 / 3),
        (right, "payload_bytes", "payload (bytes)", scaling["payload_slope"], 2 / 3),
    )
    for panel, name, title, slope, rate in parts:
        n, values = scaling["n"], scaling[name]
        panel.loglog(n, values, "o-", color=_COLOURS[2], label=f"measured, slope {slope:.2f}")
        line = [values[0] * (each / n[0]) ** rate for each in n]
        panel.loglog(n, line, "--", color=_COLOURS[5], label=f"paper's rate, slope {rate:.2f}")
        panel.set_xlabel("people")
        panel.set_ylabel(title)
        panel.legend(frameon=False)
    return figure
