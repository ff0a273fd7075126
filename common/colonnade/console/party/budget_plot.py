"""Budget over time as steps by purpose; x in percent, y in pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from colonnade.console.party.entries import Spending

HEIGHT = 220
MAX_PURPOSES = 3
OTHER = "other purposes"
_MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class BudgetBlock:
    """A rectangle: which purpose's, by its place."""

    x: float
    width: float
    y: float
    height: float
    purpose: int


@dataclass(frozen=True, slots=True)
class BudgetPlot:
    """Steps of spending, stacked by purpose."""

    blocks: tuple[BudgetBlock, ...]
    purposes: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    label: str


def budget_plot(history: Sequence[Spending], cap: int, now: float) -> BudgetPlot | None:
    """Return the plot of what was spent, in shares of the cap; None before the first charge."""
    if not history or not cap:
        return None
    totals = history[-1].by_purpose
    largest = sorted(totals, key=lambda each: -totals[each])[:MAX_PURPOSES]
    begin, span = history[0].time, max(now - history[0].time, 1.0)
    stride = -(-len(history) // _MAX_STEPS)
    kept = [*history[::stride][:-1], history[-1]]
    blocks = []
    for place, step in enumerate(kept):
        end = kept[place + 1].time if place + 1 < len(kept) else now
        x, width = 100.0 * (step.time - begin) / span, 100.0 * (end - step.time) / span
        base = float(HEIGHT)
        for number, units in enumerate(_stacked(step, largest)):
            height = HEIGHT * min(1.0, units / cap)
            base -= height
            if height:
                blocks.append(BudgetBlock(x, width, base, height, number + 1))
    names = tuple(each or "no stated purpose" for each in largest)
    rest = (OTHER,) if len(totals) > MAX_PURPOSES else ()
    spent = sum(totals.values()) / cap
    label = f"{100.0 * spent:.0f} percent of the budget spent in {len(history)} charges"
    return BudgetPlot(tuple(blocks), names + rest, _ticks(begin, now), label)


def _stacked(step: Spending, largest: Sequence[str]) -> list[int]:
    found = [step.by_purpose.get(each, 0) for each in largest]
    rest = sum(units for name, units in step.by_purpose.items() if name not in largest)
    return [*found, rest] if rest else found


def _ticks(begin: float, now: float) -> tuple[tuple[float, str], ...]:
    span, form = now - begin, "%H:%M"
    if span > 2 * 86400:
        form = "%d %b"
    places = (0.0, 0.5, 1.0)
    return tuple(
        (100.0 * part, datetime.fromtimestamp(begin + part * span, UTC).strftime(form))
        for part in places
    )
