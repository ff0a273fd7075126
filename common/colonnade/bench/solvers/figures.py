"""The numbers as a file, and the table as a figure: error by passes, ours and the paper's."""

import json
from pathlib import Path
from typing import Any

_COLOURS = {"cd": "tab:blue", "cd private": "tab:green", "sgd": "tab:orange", "sgd batches": "k"}


def write_figures(result: dict[str, Any], out: Path) -> None:
    """Write ``solvers.json``, and ``table2.png`` if the table was measured."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1)
    (out / "solvers.json").write_text(text + "\n", encoding="utf-8")
    if "table2" in result:
        _draw_table(result["table2"], out / "table2.png")


def _draw_table(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for place, name in enumerate(names, start=1):
        axes = figure.add_subplot(1, len(names), place)
        mine = [row for row in rows if row["data"] == name]
        for solver in dict.fromkeys(row["solver"] for row in mine):
            points = [row for row in mine if row["solver"] == solver]
            passes = [row["passes"] for row in points]
            colour = _COLOURS[solver]
            axes.plot(
                passes, [row["relative_error"] for row in points], "o-", c=colour, label=solver
            )
            if points[0]["paper"] is not None:
                axes.plot(passes, [row["paper"] for row in points], "x--", c=colour, alpha=0.5)
        axes.axhline(mine[0]["zero_model"], color="grey", linewidth=0.8)
        axes.set(title=name, xlabel="passes", xscale="log", yscale="log")
    figure.axes[0].set_ylabel("relative error")
    figure.axes[0].legend(title="crosses: the paper", fontsize=7)
    figure.savefig(path, dpi=150)
