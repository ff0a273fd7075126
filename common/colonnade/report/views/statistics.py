"""The statistician's columns: errors, p-values, variance inflation, odds ratios."""

from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.report.parts import Cell
from colonnade.report.schema import Report
from colonnade.report.text import short
from colonnade.report.views.cells import number

_ERROR = " Error: the standard error of the effect."
_P_VALUE = (
    " p: how probable an estimate at least as far from zero is without an effect, noise for privacy"
    " included; not adjusted for the number of columns."
)
_VIF = (
    " VIF: how much other columns inflate the sampling variance, as far as is known; what parties"
    " share outside the directions that were bought is not."
)
_ODDS = (
    " Odds ratio: for one deviation more, by linear discriminant analysis without penalty, with its"
    " 95 % interval."
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Further columns of the table of coefficients: their names, cells by feature, what they are.

    Parameters
    ----------
    values
        By party and name; for each column a number, or three: a value between two ends.
    """

    head: tuple[str, ...]
    values: dict[tuple[str, str], tuple[float | tuple[float, float, float], ...]]
    about: str

    def cells(self, party: str, name: str) -> list[Cell]:
        """Return the cells of a feature; empty ones if nothing is known of it."""
        found = self.values.get((party, name), (None,) * len(self.head))
        return [_cell(each) for each in found]


def _cell(value: float | tuple[float, float, float] | None) -> Cell:
    if not isinstance(value, tuple):
        return number(value, 3)
    middle, low, high = value
    return Cell(short(middle, 3), middle, aside=f"{short(low, 3)} to {short(high, 3)}")


def statistics_of(report: Report) -> Statistics:
    """Return what a report's intervals say of each column, besides the interval."""
    moments = report.moments
    found = moments.intervals if moments else None
    if moments is None or found is None:
        return Statistics((), {}, "")
    head, about = ["error"], _ERROR
    lists: list[Sequence[float | tuple[float, float, float]]] = [found.error]
    if found.p_value:
        head.append("p")
        lists.append(found.p_value)
        about += _P_VALUE
    if found.vif:
        head.append("VIF")
        lists.append(found.vif)
        about += _VIF
    if found.odds_ratio:
        head.append("odds ratio")
        ends = zip(found.odds_ratio, found.odds_low, found.odds_high, strict=True)
        lists.append(tuple(ends))
        about += _ODDS
    names = [(each.party, each.name) for each in moments.features]
    rows = zip(*lists, strict=True)
    return Statistics(tuple(head), dict(zip(names, rows, strict=True)), about)
