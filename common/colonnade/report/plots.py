"""Geometry of plots: x in percent and y in pixels, so that text never scales."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from colonnade.report.parts import Chart, Line, Mark, Square, Strip, Table
from colonnade.report.text import abbreviated, short, signed

HEIGHT = 230
MAX_NAMED = 8
"""Curves with a name at their end."""

MAX_SQUARES = 16
"""Rows of a matrix of squares."""

_NAME_GAP = 16.0  # pixels between names
_ROW = 18  # pixels of a matrix's row


@dataclass(frozen=True, slots=True)
class Curve:
    """A named curve: its colour and its values, one for each x."""

    name: str
    colour: str
    values: Sequence[float]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to a length, with ticks at round numbers."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def percent(self, value: float) -> float:
        """Return where a value lies, in percent."""
        return 100.0 * self.share(value)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers within the scale."""
        step = round_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]


def round_step(least: float) -> float:
    """Return 1, 2 or 5 times a power of ten, not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= least * 0.999)


def covering(values: Sequence[float], *, zero: bool = True, margin: float = 0.05) -> Scale:
    """Return a scale that covers all values, and zero if so asked."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = margin * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low - room * (low < 0.0 or not zero), high + room)


def around_zero(values: Sequence[float]) -> Scale:
    """Return a scale with zero in its middle."""
    half = 1.06 * max((abs(value) for value in values), default=1.0) or 1.0
    return Scale(-half, half)


def zero_ticks(scale: Scale) -> tuple[tuple[float, str], ...]:
    """Return the ticks of a strip around zero: its middle and one on either side."""
    step = round_step(scale.high / 2.5)
    return tuple(
        (scale.percent(value), signed(value, 2) if value else "0") for value in (-step, 0.0, step)
    )


def effect_strip(
    scale: Scale, size: float, ends: tuple[float, float] | None, *, colour: str, label: str
) -> Strip:
    """Return an effect around zero: a bar, or a dot with its interval."""
    marks = [Mark("axis" if text == "0" else "grid", x) for x, text in zero_ticks(scale)]
    if ends is None:
        low, high = sorted((scale.percent(0.0), scale.percent(size)))
        marks.append(Mark("bar", low, high, colour, label))
    else:
        low, high = map(scale.percent, ends)
        marks.append(Mark("interval", low, high, colour))
        marks.append(Mark("dot", scale.percent(size), 0.0, colour, label))
    return Strip(label, tuple(marks))


def share_strip(share: float, error: float | None, *, colour: str, label: str) -> Strip:
    """Return a share of one as a bar, with its interval."""
    marks = [Mark("track", 0.0, 100.0), Mark("bar", 0.0, 100.0 * max(0.0, share), colour, label)]
    if error is not None:
        ends = max(0.0, share - error), min(1.0, share + error)
        marks.append(Mark("whisker", 100.0 * ends[0], 100.0 * ends[1]))
    return Strip(label, tuple(marks))


def line_chart(
    key: str,
    x: Sequence[float],
    curves: Sequence[Curve],
    *,
    title: str,
    label: str,
    caption: str,
    axes: tuple[str, str],
    scale: Scale | None = None,
    logarithmic: bool = False,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    markers: Sequence[tuple[float, str]] = (),
    table: Table | None = None,
) -> Chart:
    """Return curves over ``x``; the first are named at their ends, thin ones are not."""
    across = Scale(x[0], x[-1])
    transform: Callable[[float], float] = math.log10 if logarithmic else float
    every = [transform(value) for curve in curves for value in curve.values]
    along = scale or covering(every, zero=not logarithmic)

    def pixel(value: float) -> float:
        return round(HEIGHT * (1.0 - along.share(transform(value))), 1)

    lines = tuple(
        Line(
            " ".join(
                f"{1000.0 * across.share(place):.0f},{pixel(value):.1f}"
                for place, value in zip(x, curve.values, strict=True)
            ),
            curve.colour,
            curve.style,
            curve.name,
        )
        for curve in reversed(curves)  # the named ones above the others
    )
    named = [curve for curve in curves if curve.name and curve.style != "thin"][:MAX_NAMED]
    heights = spread([pixel(curve.values[-1]) for curve in named])
    if logarithmic:
        y_ticks = [(10.0**each, short(10.0**each, 3)) for each in along.ticks(4) if each % 1 == 0]
        y_ticks = y_ticks or [(10.0**each, short(10.0**each, 2)) for each in along.ticks(4)]
    else:
        y_ticks = [(each, short(each + 0.0, 3).replace("-", "−")) for each in along.ticks(6)]
    found = x_ticks or [(each, short(round(each))) for each in _whole_ticks(across)]
    return Chart(
        key,
        title,
        label,
        HEIGHT,
        caption,
        x_ticks=tuple((across.percent(value), text) for value, text in found),
        y_ticks=tuple((pixel(value), text) for value, text in y_ticks),
        x_title=axes[0],
        y_title=axes[1],
        lines=lines,
        names=tuple(
            (height, abbreviated(curve.name), curve.colour)
            for height, curve in zip(heights, named, strict=True)
        ),
        markers=tuple((across.percent(value), text) for value, text in markers),
        table=table,
    )


def _whole_ticks(scale: Scale) -> list[float]:
    return [each for each in scale.ticks(5) if abs(each - round(each)) < 1e-9]


def spread(heights: Sequence[float], gap: float = _NAME_GAP, limit: float = HEIGHT) -> list[float]:
    """Move names apart that would overlap, in their order and within the plot."""
    gap = min(gap, limit / max(1, len(heights) - 1))
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    moved = list(heights)
    for below, place in pairwise(order):
        moved[place] = max(moved[place], moved[below] + gap)
    last = limit
    for place in reversed(order):  # push back what fell off the end
        moved[place] = min(moved[place], last)
        last = moved[place] - gap
    return moved


def matrix_chart(
    key: str,
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    title: str,
    label: str,
    caption: str,
    table: Table,
) -> Chart:
    """Return the lower triangle of a matrix as squares, whose areas are its entries' sizes."""
    count = len(names)
    largest = max((abs(values[a][b]) for a in range(count) for b in range(a)), default=0.0) or 1.0
    squares = tuple(
        Square(
            100.0 * (column + 0.5) / count,
            _ROW * (row + 0.5),
            round((_ROW - 5) * math.sqrt(abs(values[row][column]) / largest), 1),
            values[row][column] < 0.0,
            f"{names[row]}, {names[column]}: {signed(values[row][column])}",
        )
        for row in range(count)
        for column in range(row)
    )
    return Chart(
        key,
        title,
        label,
        _ROW * count,
        f"{caption} The largest: {short(largest, 2)}.",
        x_ticks=tuple(
            (100.0 * (each + 0.5) / count, str(each + 1))
            for each in range(count)
            if count <= 8 or (each + 1) % 5 == 0
        ),
        y_ticks=tuple(
            (_ROW * (each + 0.5), f"{abbreviated(name, 13)} {each + 1}")
            for each, name in enumerate(names)
        ),
        squares=squares,
        ruled=False,
        table=table,
    )
