"""Effects and paths of coefficients: what is compared, on which scale."""

from dataclasses import dataclass

from colonnade.report.plots import Scale, around_zero
from colonnade.report.schema import ModelFeature, Report


@dataclass(frozen=True, slots=True)
class Effect:
    """A feature of the model with what the page compares.

    Parameters
    ----------
    size
        With intervals the coefficient without penalty, in standard deviations of feature and label;
        otherwise the model's, per deviation of the feature where deviations were released or else
        on scaled values. None where it is not known.
    ends
        The interval of ``size``.
    per_deviation, deviation
        The model's coefficient for one deviation, and the deviation; None if noise hides it.
    """

    feature: ModelFeature
    size: float | None
    ends: tuple[float, float] | None
    deviation: float | None
    per_deviation: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval is clear of zero or, without one, there is a coefficient."""
        if self.ends is not None:
            return self.ends[0] > 0.0 or self.ends[1] < 0.0
        return bool(self.feature.coef_scaled) and self.size is not None


@dataclass(frozen=True, slots=True)
class PathCurve:
    """A feature's coefficient after each round."""

    party: str
    name: str
    values: tuple[float, ...]


def per_deviation(report: Report) -> bool:
    """Return whether the model's coefficients are compared per released deviation."""
    return report.per_deviation is not None


def has_intervals(report: Report) -> bool:
    """Return whether effects have intervals."""
    return report.moments is not None and report.moments.intervals is not None


def effects_of(report: Report) -> list[Effect]:
    """Return the model's features, the largest effect first."""
    if report.model is None:
        return []
    scales = (
        {(each.party, each.name): each for each in report.per_deviation.features}
        if report.per_deviation
        else {}
    )
    moments = report.moments
    found = moments.intervals if moments else None
    places = (
        {(each.party, each.name): place for place, each in enumerate(moments.features)}
        if moments and found
        else {}
    )
    effects = []
    for feature in report.model.features:
        key = feature.party, feature.name
        scale, place = scales.get(key), places.get(key)
        size: float | None = feature.coef_scaled
        ends = None
        if scales:
            size = scale.coef if scale else None
        if found is not None:
            size = None if place is None else found.coef[place]
            ends = None if place is None else (found.low[place], found.high[place])
        effects.append(
            Effect(
                feature,
                size,
                ends,
                scale.deviation if scale else None,
                scale.coef if scale else None,
            )
        )
    return sorted(effects, key=lambda e: (-abs(e.size or 0.0), -abs(e.feature.coef_scaled)))


def _factors(report: Report) -> dict[tuple[str, str], float | None]:
    """Return what makes a scaled coefficient one per deviation, by feature; None if not known."""
    model, scales = report.model, report.per_deviation
    if model is None or scales is None:
        return {}
    unit = (model.label.high - model.label.low) / 2.0 if model.loss == "squared" else 1.0
    found: dict[tuple[str, str], float | None] = {}
    for feature, scale in zip(model.features, scales.features, strict=True):
        half = (feature.high - feature.low) / 2.0
        key = feature.party, feature.name
        found[key] = None if scale.deviation is None else unit * scale.deviation / half
    return found


def curves_of(report: Report) -> list[PathCurve]:
    """Return the path of each feature that ever had a coefficient, the last largest first.

    Per deviation where the report has deviations, without features whose deviation noise hides.
    """
    names: dict[str, list[str]] = {}
    factors = _factors(report)
    for feature in report.model.features if report.model else ():
        names.setdefault(feature.party, []).append(feature.name)
    curves = []
    for party in dict.fromkeys(party for point in report.path for party in point.coef):
        blocks = [point.coef.get(party, ()) for point in report.path]
        known = names.get(party, [])
        for place in range(max(len(block) for block in blocks)):
            values = [block[place] if place < len(block) else 0.0 for block in blocks]
            name = known[place] if place < len(known) else f"feature {place + 1}"
            factor = factors.get((party, name), 1.0)
            if any(values) and factor is not None:
                curves.append(PathCurve(party, name, tuple(factor * value for value in values)))
    return sorted(curves, key=lambda curve: -abs(curve.values[-1]))


BEYOND = " An interval that meets an end of the scale goes on beyond it."


def effects_scale(effects: list[Effect]) -> tuple[Scale, bool]:
    """Return a scale for all estimates and the intervals that show at first; what others exceed.

    What noise hides has intervals that would leave no room for what is clear.
    """
    clear = [end for each in effects if each.clear for end in each.ends or ()]
    every = [end for each in effects for end in each.ends or ()]
    sizes = [each.size for each in effects if each.size is not None]
    scale = around_zero([*sizes, *(clear or every)])
    return scale, any(abs(end) > scale.high for end in every)
