"""The numbers as a file, and the table as a figure: error by passes, ours and the paper's."""

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from colonnade.bench.parts import write_numbers
from colonnade.bench.solvers.tuning import tuned_of

_SHOWN = {
    "cd": ("DP-CD", "tab:blue"),
    "cd private": ("DP-CD-P", "tab:green"),
    "sgd": ("DP-SGD, one record a step", "tab:orange"),
    "sgd batches": ("DP-SGD, batches", "k"),
    "dual": ("DP-SCD", "tab:red"),
}
_HEADING = (
    "Relative error to the optimum without privacy, mean and standard deviation over fresh seeds;"
    " in brackets what Mangold et al. (2022) print."
)


def write_figures(result: dict[str, Any], out: Path, *, tuned: bool) -> None:
    """Write ``solvers.json``; the table as text and figure; what a search found.

    Parameters
    ----------
    tuned
        Whether the settings come from a search that was made now: then ``tuned.json`` has them.
    """
    write_numbers(result, out, "solvers.json")
    if tuned:
        parts = [part for part in ("table2", "greedy", "dual") if part in result]
        write_numbers({part: tuned_of(result[part]) for part in parts}, out, "tuned.json")
    if "table2" in result:
        (out / "table2.md").write_text(_table(result["table2"]) + "\n", encoding="utf-8")
        _draw_table(result["table2"], out / "table2.png")


def _table(rows: list[dict[str, Any]]) -> str:
    """Return the table in Markdown: a line for each problem and solver, ours and the paper's."""
    passes = list(dict.fromkeys(row["passes"] for row in rows))
    lines = [
        _HEADING,
        "",
        "| problem (zero model) | solver | " + " | ".join(f"{n} passes" for n in passes) + " |",
        "|---|---|" + "---|" * len(passes),
    ]
    for name, solver in dict.fromkeys((row["data"], row["solver"]) for row in rows):
        cells = {
            row["passes"]: row for row in rows if (row["data"], row["solver"]) == (name, solver)
        }
        zero = next(iter(cells.values()))["zero_model"]
        shown = " | ".join(_cell(cells[count]) if count in cells else "" for count in passes)
        lines.append(f"| {name} ({zero:.3f}) | {solver} | {shown} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    paper = "" if row["paper"] is None else f" [{row['paper']:.4f}]"
    return f"{row['relative_error']:.4f} ± {row['spread']:.4f}{paper}"


def _draw_table(rows: list[dict[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    for place, name in enumerate(names, start=1):
        axes = figure.add_subplot(1, len(names), place)
        mine = [row for row in rows if row["data"] == name]
        for solver in dict.fromkeys(row["solver"] for row in mine):
            points = [row for row in mine if row["solver"] == solver]
            passes = [row["passes"] for row in points]
            shown, colour = _SHOWN[solver]
            axes.plot(
                passes, [row["relative_error"] for row in points], "o-", c=colour, label=shown
            )
            if points[0]["paper"] is not None:
                axes.plot(passes, [row["paper"] for row in points], "x--", c=colour, alpha=0.5)
        axes.axhline(mine[0]["zero_model"], color="grey", linewidth=0.8)
        axes.set(title=name, xlabel="passes", xscale="log", yscale="log")
        axes.set_xticks(counts := sorted({row["passes"] for row in mine}), [f"{n}" for n in counts])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    figure.axes[0].set_ylabel("relative error")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    title = "crosses: what the paper prints; grey line: the zero model"
    figure.legend(handles, labels, title=title, loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=150)
