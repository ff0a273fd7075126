"""Plots of what else a moments job's releases tell: an L1 path, intervals, correlations."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.report.axes import label_of, legend, legend_height, name_rows
from colonnade.report.markup import Markup
from colonnade.report.model_plots import MAX_SHOWN, Curve, name_ends
from colonnade.report.schema import Moments, Report
from colonnade.report.svg import INK, LINE, MUTED, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMED = 10
_MAX_TICKS = 28  # names beside a heat map that can still be read
# Opposite correlations differ in hue for every kind of colour vision; none is the page's paper.
_POSITIVE, _NEGATIVE = (0x2B, 0x6F, 0xC8), (0xD9, 0x6A, 0x1B)


def l1_curves(moments: Moments) -> list[Curve]:
    """Return the path of each feature that ever has a coefficient, the largest first."""
    rows = moments["path"]["coefs"]
    curves = [
        (feature["party"], feature["name"], [row[place] for row in rows])
        for place, feature in enumerate(moments["features"])
    ]
    used = [curve for curve in curves if any(curve[2])]
    return sorted(used, key=lambda curve: -abs(curve[2][-1]))


def draw_l1_path(report: Report, colours: Mapping[str, str]) -> Markup | None:
    """Draw the LASSO coefficients over the penalty; the largest are named."""
    moments = report.get("moments")
    curves = l1_curves(moments) if moments else []
    if not moments or not curves:
        return None
    path, parties = moments["path"], _parties(moments)

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for place, (party, _, values) in reversed(list(enumerate(curves[:MAX_SHOWN]))):
            named = place < MAX_NAMED
            axes.plot(
                path["penalties"],
                values,
                color=colours[party] if named else MUTED,
                linewidth=1.6 if named else 0.6,
                alpha=1.0 if named else 0.55,
            )
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        _penalty_axis(axes, path["penalties"], path["chosen"])
        for party in parties:
            axes.plot([], [], color=colours[party], label=label_of(party))
        axes.set_ylabel("coefficient (standard deviations)")
        paints = [colours[party] for party, _, _ in curves[:MAX_NAMED]]
        name_ends(axes, curves[:MAX_NAMED], paints)
        legend(figure, axes)

    label = "L1 path: coefficients over the penalty, strong to weak; the largest are named"
    return draw(paint, key="l1-path", label=label, height=3.4 + legend_height(len(parties)))


def _penalty_axis(axes: "Axes", penalties: Sequence[float], chosen: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    most, least = penalties[0], penalties[-1]
    axes.set_xlim(most, least)  # from left to right, more and more features
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")  # no exponents as formulas
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("L1 penalty, strong to weak")
    axes.grid(visible=False, axis="x")
    if least < chosen < most:
        axes.axvline(chosen, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            "this job's",
            (chosen, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            color=INK,
        )


def draw_intervals(report: Report, colours: Mapping[str, str]) -> Markup | None:
    """Draw the largest coefficients without penalty and their intervals, coloured by party."""
    moments = report.get("moments")
    found = moments["intervals"] if moments else None
    if not moments or found is None:
        return None
    order = by_size(found["coef"])[:MAX_SHOWN]
    features = [moments["features"][place] for place in order]
    parties = [party for party in _parties(moments) if any(f["party"] == party for f in features)]

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for party in parties:
            rows = [row for row, feature in enumerate(features) if feature["party"] == party]
            coef = [found["coef"][order[row]] for row in rows]
            reach = [
                found["high"][order[row]] - value for row, value in zip(rows, coef, strict=True)
            ]
            axes.errorbar(
                coef,
                rows,
                xerr=reach,
                fmt="o",
                markersize=3.6,
                elinewidth=1.3,
                color=colours[party],
                label=label_of(party),
            )
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
        name_rows(axes, [feature["name"] for feature in features])
        axes.set_xlabel("coefficient without penalty (standard deviations)")
        legend(figure, axes)

    label = f"The largest coefficients with {found['level']:.0%} intervals, coloured by party"
    height = 0.8 + 0.185 * max(3, len(order)) + legend_height(len(parties))
    return draw(paint, key="intervals", label=label, height=height)


def draw_correlations(report: Report, colours: Mapping[str, str]) -> Markup | None:
    """Draw correlations of all features and the label as a heat map, parties' blocks marked."""
    moments = report.get("moments")
    if not moments:
        return None
    values = np.array(moments["correlations"])
    np.fill_diagonal(values, 0.0)  # a feature with itself says nothing
    most = max(float(np.abs(values).max()), 0.05)

    def paint(figure: "Figure") -> None:
        axes, bar = figure.subplots(2, 1, height_ratios=[40, 1])
        axes.imshow(_tinted(values / most), interpolation="none", aspect="equal")
        axes.grid(visible=False)
        _mark_blocks(axes, moments, colours)
        steps = np.linspace(-1.0, 1.0, 81)
        bar.imshow(
            _tinted(steps[None, :]), aspect="auto", extent=(-most, most, 0, 1), interpolation="none"
        )
        bar.set_yticks([])
        bar.grid(visible=False)
        bar.set_xlabel("correlation")

    label = "Correlations between features, by party, and with the label"
    return draw(paint, key="correlations", label=label, height=5.4)


def _tinted(values: Any) -> Any:
    """Return a picture: the sign gives the hue, the size how far it covers the paper."""
    colours = np.where((values >= 0.0)[..., None], _POSITIVE, _NEGATIVE)
    cover = np.rint(np.abs(values) * 255.0)[..., None]
    return np.concatenate([colours, cover], axis=-1).astype(np.uint8)


def _mark_blocks(axes: "Axes", moments: Moments, colours: Mapping[str, str]) -> None:
    """Frame each party's block and name it, or its features where there is room."""
    features = moments["features"]
    size, first = len(features) + 1, 0
    ends = []
    for party, members in groupby(features, key=lambda feature: feature["party"]):
        last = first + len(list(members))
        ends.append((party, first, last))
        corner = [first - 0.5, last - 0.5]
        axes.plot(
            [corner[0], corner[1], corner[1], corner[0], corner[0]],
            [corner[0], corner[0], corner[1], corner[1], corner[0]],
            color=colours[party],
            linewidth=1.4,
            clip_on=False,
        )
        first = last
    for side in (axes.axhline, axes.axvline):
        side(size - 1.5, color=MUTED, linewidth=0.8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.tick_params(length=0)
    middles = [(first + last - 1) / 2.0 for _, first, last in ends]
    axes.set_xticks([*middles, size - 1], [*(label_of(party) for party, _, _ in ends), "label"])
    for tick, (party, _, _) in zip(axes.get_xticklabels(), ends, strict=False):
        tick.set_color(colours[party])
    if len(ends) > 4:
        axes.tick_params(axis="x", labelrotation=45)
    if size <= _MAX_TICKS:
        axes.set_yticks(range(size), [*(label_of(f["name"]) for f in features), "label"])
        for tick, feature in zip(axes.get_yticklabels(), features, strict=False):
            tick.set_color(colours[feature["party"]])
    else:
        axes.set_yticks([size - 1], ["label"])
    axes.set_facecolor(LINE)


def by_size(coef: Sequence[float]) -> list[int]:
    """Return the places of coefficients, the largest first."""
    return sorted(range(len(coef)), key=lambda place: -abs(coef[place]))


def _parties(moments: Moments) -> list[str]:
    return list(dict.fromkeys(feature["party"] for feature in moments["features"]))
