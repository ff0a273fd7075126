"""What the plots share: colours, units, and the parts of an axis."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from colonnade.report.markup import clean
from colonnade.report.schema import Report
from colonnade.report.svg import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = (
    *("#3b7dd8", "#e07b39", "#2f9e6e", "#b657c4", "#d64550", "#8a8f2a", "#1fa3b5", "#a0704c"),
    *("#8fb4ea", "#efb48d", "#86cbae", "#d7a1df", "#ea949b", "#bfc27c", "#82cdd7", "#cdab91"),
)
_KIND_COLOURS = ("#5a6f9e", "#dfa53c", "#79b3a0", "#a4607e", "#9aa0a8", "#c97f5d")
_NAME_CHARS = 26
_LEGEND_COLUMNS = 4
_LEGEND_ROW = 0.17  # inches


def party_colours(report: Report) -> dict[str, str]:
    """Give each party one colour for all plots."""
    names = [party["party"] for party in report["privacy"]["parties"]]
    names += [row["party"] for row in report["uplink"]["rows"]]
    names += [feature["party"] for feature in (report["model"] or {"features": []})["features"]]
    names += [party for point in report["path"] for party in point["coef"]]
    return {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(ordered(names))}


def kind_colour(kind: str, kinds: Sequence[str]) -> str:
    """Return the colour of a kind of release."""
    return _KIND_COLOURS[kinds.index(kind) % len(_KIND_COLOURS)]


def ordered(names: Iterable[str]) -> list[str]:
    """Return different names in the order in which they first come."""
    return list(dict.fromkeys(names))


def byte_unit(largest: float) -> tuple[float, str]:
    """Return the decimal unit for sizes up to ``largest``."""
    return (1e6, "MB") if largest >= 2e6 else (1e3, "kB") if largest >= 2e3 else (1.0, "bytes")


def label_of(name: str) -> str:
    """Return a name that fits beside an axis; tables have it in full."""
    line = " ".join(clean(name).split())
    # Matplotlib keeps labels that start with an underscore out of legends.
    line = f"\u200b{line}" if line.startswith("_") else line
    if len(line) <= _NAME_CHARS:
        return line
    return f"{line[: _NAME_CHARS - 10]}…{line[-9:]}"  # names often differ at their end


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Name horizontal bars, the first at the top."""
    axes.set_yticks(range(len(names)), [label_of(name) for name in names])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.grid(visible=False, axis="y")
    room = max(0.0, (2 - len(names)) / 2.0)  # on both sides of a bar that is alone
    axes.set_ylim(len(names) - 0.4 + room, -0.6 - room)


def set_rounds(axes: "Axes", rounds: range) -> None:
    """Lay out an axis of rounds."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("round")


def stairs(
    axes: "Axes",
    rounds: range,
    between: tuple[Sequence[float], Sequence[float]],
    *,
    colour: str,
    name: str,
) -> None:
    """Fill one layer of a stack over rounds."""
    edges = [rounds[0] - 0.5, *(round_ + 0.5 for round_ in rounds)]
    low, high = between
    axes.stairs(high, edges, baseline=low, fill=True, color=colour, label=label_of(name))


def legend(figure: "Figure", axes: "Axes") -> None:
    """Put the legend under the plot."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=_LEGEND_COLUMNS)


def legend_height(n_entries: int) -> float:
    """Return the inches that a legend takes."""
    return _LEGEND_ROW * math.ceil(n_entries / _LEGEND_COLUMNS)
