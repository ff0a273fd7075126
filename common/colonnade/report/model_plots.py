"""Plots of the fitted model: its coefficients, how they came about, how good they are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from colonnade.report.axes import (
    PALETTE,
    label_of,
    legend,
    legend_height,
    name_rows,
    set_rounds,
)
from colonnade.report.markup import Markup
from colonnade.report.schema import Report
from colonnade.report.svg import MUTED, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN = 40
"""Coefficients shown in the plot and, unfolded, in the table."""

LEAST_QUALITY = -1.0
"""Where the plot of quality ends: a first step may be far worse, and would flatten the rest."""

CENTRAL = "private, all data in one place"

_SCALES = {
    True: "coefficient for one standard deviation of the feature",
    False: "coefficient on values scaled to [-1, 1]",
}
_MAX_LABELS = 10
_LABEL_GAP = 0.072  # of the axis, between names at the end of lines

Curve: TypeAlias = tuple[str, str, list[float]]
"""Party, feature, and the coefficient after each round."""


def largest_features(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the features with a coefficient, the largest on scaled values first."""
    used = [feature for feature in model["features"] if feature["coef_scaled"]]
    return sorted(used, key=lambda feature: -abs(feature["coef_scaled"]))


def compared(report: Report) -> bool:
    """Return whether coefficients are shown per deviation, which compare, or on scaled values."""
    return bool(report.get("per_deviation"))


def features_of(report: Report) -> list[Mapping[str, Any]]:
    """Return the model's features, the largest first, each with ``deviation`` and ``size``.

    ``size`` is what plots draw: the coefficient per deviation, None where noise hides it, or the
    scaled one in a report without deviations.
    """
    features = list((report["model"] or {"features": []})["features"])
    if not (scales := report.get("per_deviation")):
        sized = [each | {"deviation": None, "size": each["coef_scaled"]} for each in features]
    else:
        pairs = zip(features, scales["features"], strict=True)
        sized = [
            each | {"deviation": scale["deviation"], "size": scale["coef"]} for each, scale in pairs
        ]
    return sorted(sized, key=lambda each: (-abs(each["size"] or 0.0), -abs(each["coef_scaled"])))


def _factors(report: Report) -> dict[tuple[str, str], float | None]:
    """Return what makes a scaled coefficient one per deviation, by feature; None if not known."""
    model, scales = report["model"], report.get("per_deviation")
    if model is None or not scales:
        return {}
    label = model["label"]
    unit = (label["high"] - label["low"]) / 2.0 if model["loss"] == "squared" else 1.0
    found: dict[tuple[str, str], float | None] = {}
    for feature, scale in zip(model["features"], scales["features"], strict=True):
        half, deviation = (feature["high"] - feature["low"]) / 2.0, scale["deviation"]
        key = feature["party"], feature["name"]
        found[key] = None if deviation is None else unit * deviation / half
    return found


def curves_of(report: Report) -> list[Curve]:
    """Return the path of each feature that ever had a coefficient, the last largest first.

    Per deviation where the report has deviations, without features whose deviation noise hides.
    """
    names: dict[str, list[str]] = {}
    factors = _factors(report)
    for feature in (report["model"] or {"features": []})["features"]:
        names.setdefault(feature["party"], []).append(feature["name"])
    curves = []
    points = report["path"]
    for party in dict.fromkeys(party for point in points for party in point["coef"]):
        blocks = [point["coef"].get(party, ()) for point in points]
        for place in range(max(len(block) for block in blocks)):
            values = [block[place] if place < len(block) else 0.0 for block in blocks]
            known = names.get(party, [])
            name = known[place] if place < len(known) else f"feature {place + 1}"
            factor = factors.get((party, name), 1.0)
            if any(values) and factor is not None:
                curves.append((party, name, [factor * value for value in values]))
    return sorted(curves, key=lambda curve: -abs(curve[2][-1]))


def first_round(report: Report) -> int:
    """Return the round that quality by round starts with: it ends where the path ends."""
    n_known = len(report["quality"]["by_round"]) if report["quality"] else 0
    return report["path"][-1]["round"] - n_known + 1 if report["path"] else 1


def line_colours(curves: Sequence[Curve], colours: Mapping[str, str]) -> list[str]:
    """Return each curve's colour: its party's, or its own where all columns are everybody's."""
    if len({party for party, _, _ in curves}) > 1:
        return [colours[party] for party, _, _ in curves]
    return [PALETTE[place % len(PALETTE)] for place in range(len(curves))]


def draw_coef(report: Report, colours: Mapping[str, str]) -> Markup | None:
    """Draw the largest coefficients, per deviation or on scaled values, coloured by party."""
    shown = [feature for feature in features_of(report) if feature["size"]][:MAX_SHOWN]
    if not shown:
        return None
    parties = [party for party in colours if any(f["party"] == party for f in shown)]
    several = len(parties) > 1

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        for party in parties:
            places = [place for place, f in enumerate(shown) if f["party"] == party]
            axes.barh(
                places,
                [shown[place]["size"] for place in places],
                0.72,
                color=colours[party],
                label=label_of(party),
            )
        axes.axvline(0.0, color=MUTED, linewidth=0.8)
        name_rows(axes, [feature["name"] for feature in shown])
        axes.margins(x=0.08)
        axes.set_xlabel(_SCALES[compared(report)])
        if several:
            legend(figure, axes)

    scale = "for one deviation" if compared(report) else "on scaled values"
    label = f"The largest coefficients {scale}{', coloured by party' if several else ''}"
    height = 0.8 + 0.185 * max(3, len(shown)) + (legend_height(len(parties)) if several else 0.0)
    return draw(paint, key="coef", label=label, height=height)


def draw_path(report: Report, colours: Mapping[str, str]) -> Markup | None:
    """Draw the coefficients after each round; the largest are named."""
    curves = curves_of(report)
    if not curves:
        return None
    rounds = [point["round"] for point in report["path"]]
    parties = [party for party in colours if any(curve[0] == party for curve in curves)]
    named = [curve for curve in curves[:_MAX_LABELS] if curve[2][-1]]
    paints, several = line_colours(named, colours), len(parties) > 1

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        marker = "o" if len(rounds) < 2 else None
        for place, (_, _, values) in reversed(list(enumerate(curves[:MAX_SHOWN]))):
            large = place < len(named)
            axes.plot(
                rounds,
                values,
                color=paints[place] if large else MUTED,
                linewidth=1.6 if large else 0.6,
                alpha=1.0 if large else 0.55,
                marker=marker,
                markersize=3,
            )
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        for party in parties if several else []:
            axes.plot([], [], color=colours[party], label=label_of(party))
        set_rounds(axes, range(rounds[0], rounds[-1] + 1))
        if len(rounds) > 1:
            axes.set_xlim(rounds[0], rounds[-1])
        axes.set_ylabel(f"coefficient ({'per deviation' if compared(report) else 'scaled'})")
        name_ends(axes, named, paints)
        if several:
            legend(figure, axes)

    label = "Coefficients after each round; the largest are named"
    height = 3.4 + (legend_height(len(parties)) if several else 0.0)
    return draw(paint, key="path", label=label, height=height)


def name_ends(axes: "Axes", curves: Sequence[Curve], paints: Sequence[str]) -> None:
    """Write the names of curves at their ends, with thin lines to where they had to move."""
    low, high = axes.get_ylim()
    ends = [(values[-1] - low) / (high - low) for _, _, values in curves]
    places = _spread(ends)
    for (_, name, _), end, place, colour in zip(curves, ends, places, paints, strict=True):
        axes.plot(
            [1.005, 1.045, 1.06],
            [end, place, place],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.6,
            clip_on=False,
        )
        axes.annotate(
            label_of(name),
            (1.07, place),
            xycoords="axes fraction",
            va="center",
            color=colour,
            annotation_clip=False,
        )


def _spread(ends: Sequence[float]) -> list[float]:
    """Move positions apart so that names do not overlap; their order stays.

    Neighbours that would overlap form a group, which is centred on the mean of its members and
    kept within the axis.
    """
    order = sorted(range(len(ends)), key=lambda place: ends[place])
    groups: list[list[int]] = []
    for place in order:
        groups.append([place])
        while len(groups) > 1 and _start(groups[-1], ends) < (
            _start(groups[-2], ends) + _LABEL_GAP * len(groups[-2])
        ):
            last = groups.pop()
            groups[-1] += last
    return [
        position
        for _, position in sorted(
            (place, _start(group, ends) + _LABEL_GAP * nth)
            for group in groups
            for nth, place in enumerate(group)
        )
    ]


def _start(group: Sequence[int], ends: Sequence[float]) -> float:
    """Return the lowest position of a group."""
    extent = _LABEL_GAP * (len(group) - 1)
    centre = sum(ends[place] for place in group) / len(group)
    return min(max(centre - extent / 2.0, 0.0), 1.0 - extent)


def draw_quality(report: Report) -> Markup | None:
    """Draw the simulation's quality by round between the two references."""
    quality = report["quality"]
    if quality is None:
        return None

    def paint(figure: "Figure") -> None:
        axes = figure.subplots()
        first = first_round(report)
        rounds = range(first, first + max(1, len(quality["by_round"])))
        for value, name, style in (
            (quality["nonprivate"], "not private", (0, (1, 2))),
            (quality["central"], CENTRAL, (0, (5, 3))),
        ):
            label = f"{name}: {value:.3f}"
            axes.axhline(value, color=MUTED, linestyle=style, linewidth=1.3, label=label)
        axes.plot(
            rounds[: len(quality["by_round"])],
            quality["by_round"],
            color="#3b7dd8",
            marker="o" if len(quality["by_round"]) <= 40 else None,
            markersize=3,
            label=f"this job: {quality['ours']:.3f}",
        )
        set_rounds(axes, rounds)
        axes.margins(y=0.12)
        if min(quality["by_round"], default=0.0) < LEAST_QUALITY:
            axes.set_ylim(LEAST_QUALITY, 1.05)
        axes.set_ylabel({"r2": "R²", "auc": "AUC"}[quality["metric"]])
        legend(figure, axes)

    label = "Simulation only: quality after each round, with two references"
    return draw(paint, key="quality", label=label, height=2.7)
