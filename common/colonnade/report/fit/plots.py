"""The plots of a fit's report, from releases and public numbers alone."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from colonnade.report.axes import label_of
from colonnade.report.markup import Markup
from colonnade.report.model_plots import draw_coef
from colonnade.report.schema import Report
from colonnade.report.svg import MUTED, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (
    *("#3b7dd8", "#e07b39", "#2f9e6e", "#b657c4", "#d64550"),
    *("#8a8f2a", "#1fa3b5", "#a0704c", "#8fb4ea", "#efb48d"),
)

_LEGEND_CHARS = 72
_LEGEND_ROW = 0.17  # inches


def draw_plots(report: Mapping[str, Any]) -> dict[str, Markup] | None:
    """Return the plots that there are numbers for; None if Matplotlib is not installed."""
    parties = {feature["party"]: _COLOURS[0] for feature in report["model"]["features"]}
    try:
        plots = {
            "path": _draw_path(report["path"]),
            "distance": _draw_distance(report["path"]),
            "coef": draw_coef(cast("Report", report), parties),
        }
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return None
    return {key: plot for key, plot in plots.items() if plot is not None}


def distances(path: Mapping[str, Any]) -> list[float]:
    """Return how far the coefficients after each step are from the last, relative to its size."""
    last = path["coef"][-1]
    size = math.hypot(*last)
    return [math.dist(coef, last) / size if size else 0.0 for coef in path["coef"]]


def named_features(path: Mapping[str, Any]) -> list[str]:
    """Return whose path gets a colour and a name: the largest at the end, if not zero."""
    used = [name for name, coef in zip(path["features"], path["coef"][-1], strict=True) if coef]
    return used[: len(_COLOURS)]


def legend_columns(labels: list[str]) -> int:
    """Return how many names fit side by side under a plot."""
    return max(1, min(4, _LEGEND_CHARS // (max(map(len, labels)) + 4)))


def _draw_path(path: Mapping[str, Any]) -> Markup | None:
    """Draw the coefficients by step; the largest at the end are named."""
    if not (named := named_features(path)):
        return None
    labels = [label_of(name) for name in named]
    columns = legend_columns(labels)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for j in reversed(range(len(path["features"]))):
            values = [coef[j] for coef in path["coef"]]
            if j < len(named):
                axes.plot(path["steps"], values, color=_COLOURS[j], **_dots(path))
            else:
                axes.plot(path["steps"], values, color=MUTED, linewidth=0.6, alpha=0.55)
        for j, label in enumerate(labels):
            axes.plot([], [], color=_COLOURS[j], label=label)
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        _name_steps(axes)
        axes.set_ylabel("coefficient (scaled)")
        shown, told = axes.get_legend_handles_labels()
        figure.legend(shown, told, loc="outside lower left", ncols=columns)

    height = 2.8 + _LEGEND_ROW * math.ceil(len(named) / columns)
    return draw(paint, key="path", label="Coefficients after each step", height=height)


def _draw_distance(path: Mapping[str, Any]) -> Markup | None:
    """Draw how far the model still moved, on a logarithmic axis."""
    points = [
        (step, far) for step, far in zip(path["steps"], distances(path), strict=True) if far > 0.0
    ]
    if len(points) < 2:
        return None

    def paint(figure: "Figure") -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axes = figure.subplots()
        steps, far = zip(*points, strict=True)
        axes.plot(steps, far, color=_COLOURS[0], **_dots(path))
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        _name_steps(axes)
        axes.set_ylabel("distance to the final model")

    return draw(paint, key="distance", label="Distance to the final model by step", height=2.8)


def _dots(path: Mapping[str, Any]) -> dict[str, Any]:
    return {"marker": "o" if len(path["steps"]) <= 40 else None, "markersize": 3}


def _name_steps(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set_xlabel("step")
