"""A picture of a simulation: whose columns matter, and how the score compares."""

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from colonnade.simulate.result import Simulation

_MAX_BARS = 30
_REFERENCES = {"this job": "ours", "private,\none place": "central", "not private": "nonprivate"}


def draw(simulation: Simulation) -> Figure:
    """Return a figure with coefficients on the left and scores on the right."""
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    _coefficients(left, simulation)
    _scores(right, simulation)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _coefficients(axes: Axes, simulation: Simulation) -> None:
    """Draw a bar for each feature, the largest ones if there are many."""
    features = simulation.model.features
    largest = sorted(features, key=lambda each: -abs(each.coef_scaled))[:_MAX_BARS]
    shown = [each for each in features if each in largest]
    parties = list(dict.fromkeys(each.party for each in features))
    colours = dict(zip(parties, mpl.color_sequences["tab10"] * len(parties), strict=False))
    for party in parties:
        own = [each for each in shown if each.party == party]
        places = [shown.index(each) for each in own]
        axes.barh(places, [each.coef_scaled for each in own], color=colours[party], label=party)
    axes.set_yticks(range(len(shown)), [each.name for each in shown])
    axes.invert_yaxis()
    axes.axvline(0.0, color="#666", linewidth=0.8)
    axes.set_xlabel("coefficient, features and label scaled by their bounds")
    if len(parties) > 1:
        axes.legend(frameon=False, fontsize="small")


def _scores(axes: Axes, simulation: Simulation) -> None:
    """Draw medians as bars, and each run as a point."""
    quality = simulation.quality
    axes.bar(
        list(_REFERENCES),
        [getattr(quality, field) for field in _REFERENCES.values()],
        color="#9fa8da",
    )
    if len(simulation.runs) > 1:
        for place, field in enumerate(_REFERENCES.values()):
            scores = [getattr(run.quality, field) for run in simulation.runs]
            axes.plot([place] * len(scores), scores, "o", color="#3949ab", markersize=3)
    names = {"r2": "R2", "auc": "area under the ROC curve"}
    axes.set_ylabel(f"{names[quality.metric]}, {quality.rows} rows")
    axes.tick_params("x", labelsize="small")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.0), max(high, 1.0))
