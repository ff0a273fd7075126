"""Zero-concentrated differential privacy in integer units.

Everything is charged in units of ``2**-50`` rho, costs rounded up and caps rounded down, so no
sum ever drifts. Epsilon is for display and for stating a cap; it is never added up.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from colonnade.core.errors import BudgetExceeded

RHO_UNIT = 2**50
# SQLite's integers end here; it is rho = 8191.
MAX_UNITS = 2**63 - 1
_DEFAULT_DELTA, _MAX_DELTA = 1e-6, 1e-3
_SLACK = Decimal("1e-9")


def units_up(rho: Fraction) -> int:
    """Return ``rho`` in units, rounded up: for what is charged."""
    return math.ceil(rho * RHO_UNIT)


def units_down(rho: Fraction | float) -> int:
    """Return ``rho`` in units, rounded down: for what is granted."""
    return math.floor(Fraction(rho) * RHO_UNIT)


def rho_from_units(units: int) -> float:
    """Return units as a float rho, for display."""
    return units / RHO_UNIT


def _epsilon_at(order: float, rho: float, delta: float) -> float:
    excess = order - 1.0
    log_terms = -math.log(delta) + excess * math.log1p(-1.0 / order) - math.log(order)
    return rho * order + log_terms / excess


def _rounding_at(order: float, rho: float, delta: float) -> float:
    """Return more than the lines above are wrong by: a part of each term, before any cancels."""
    excess = order - 1.0
    return 1e-12 * (rho * order + (1.0 - math.log(delta) + math.log(order)) / excess)


def epsilon_of(rho: float, delta: float) -> float:
    """Return an epsilon such that ``rho``-zCDP implies (epsilon, delta)-DP.

    Privacy: the conversion of Canonne, Kamath and Steinke (2020, Corollary 13),
    ``inf over a > 1 of rho a + (ln(1/delta) + (a-1) ln(1-1/a) - ln a) / (a-1)``. It holds at every
    order ``a``, so an inexact minimum is still a bound. A rho so small that delta alone covers it
    has an epsilon of 0; it is shown as the least amount there is, so that nothing looks free.

    Examples
    --------
    >>> round(epsilon_of(0.1, 1e-6), 3)
    2.142
    """
    _check_delta(delta)
    if not (math.isfinite(rho) and rho >= 0.0):
        raise ValueError("rho must be finite and not negative")
    if rho == 0.0:
        return 0.0
    # Golden section on ln(a - 1); the minimum lies near a - 1 = sqrt(ln(1/delta) / rho).
    centre = 0.5 * math.log(-math.log(delta) / rho)
    low, high = centre - 6.0, centre + 6.0
    shrink = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = high - shrink * (high - low), low + shrink * (high - low)
        if _epsilon_at(1.0 + math.exp(left), rho, delta) < _epsilon_at(
            1.0 + math.exp(right), rho, delta
        ):
            high = right
        else:
            low = left
    order = 1.0 + math.exp(0.5 * (low + high))
    return max(1.0 / RHO_UNIT, _epsilon_at(order, rho, delta) + _rounding_at(order, rho, delta))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho whose ``epsilon_of`` is at most ``epsilon``, rounded down.

    Examples
    --------
    >>> rho = rho_of(1.0, 1e-6)
    >>> round(rho, 4), epsilon_of(rho, 1e-6) <= 1.0
    (0.0244, True)
    """
    _check_delta(delta)
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError("epsilon must be finite and positive")
    low, high = 0.0, epsilon
    while epsilon_of(high, delta) <= epsilon:  # only for a large delta
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def rounded(value: float, digits: int = 4, *, down: bool = False) -> str:
    """Return a number for people with so many significant digits, rounded up, or down.

    What is spent is rounded up and what is left is rounded down: rounding must not promise more
    than is true.

    Examples
    --------
    >>> rounded(0.55701), rounded(0.55709, down=True), rounded(0.1)
    ('0.5571', '0.557', '0.1')
    """
    if not (math.isfinite(value) and value > 0.0):
        return f"{value:g}"
    # A cap is stored a unit below what was asked for; that must not look like a digit less.
    # By its shortest text: 0.1 is a tenth, not what binary makes of it, which would round up.
    exact = Decimal(repr(value)) * (1 + _SLACK if down else 1)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    way = ROUND_FLOOR if down else ROUND_CEILING
    return f"{float(exact.quantize(step, rounding=way)):.{digits}g}"


def format_upper_bound(epsilon: float, digits: int = 4) -> str:
    """Return an epsilon for people, rounded up."""
    return rounded(epsilon, digits)


def format_units(units: int, delta: float | None = None, *, left: bool = False) -> str:
    """Return an amount for people: epsilon, with rho in brackets; what is ``left`` rounded down.

    Examples
    --------
    >>> format_units(2**46, 1e-6), format_units(2**46, 1e-6, left=True)
    ('epsilon 1.66 (rho 0.0625)', 'epsilon 1.659 (rho 0.0625)')
    """
    rho = rho_from_units(units)
    epsilon = epsilon_of(rho, default_delta() if delta is None else delta)
    shown = rho if left else rho * (1.0 - float(_SLACK))  # prices are rounded up by a unit
    return f"epsilon {rounded(epsilon, down=left)} (rho {rounded(shown, down=left)})"


def format_share(units: int, cap: int, *, left: bool = False) -> str:
    """Return which part of a cap an amount is, in percent with one place."""
    tenths = units * 1000 // max(cap, 1) if left else -(-units * 1000 // max(cap, 1))
    return f"{tenths / 10:.1f} %"


def bounded_range_rho(epsilon: float) -> float:
    """Return the exact zCDP parameter of the worst ``epsilon``-bounded-range mechanism.

    Privacy: ``e/(exp(e)-1) - 1 + ln((exp(e)-1)/e)``, at most ``epsilon**2 / 8`` (Cesar and Rogers
    2021 for the latter; the exact form is derived in docs/concepts/privacy-accounting.md and
    checked numerically in the tests). The ledger charges ``epsilon**2 / 8``, which an auditor can
    recompute in rational arithmetic; this form is for plans and reports.

    Examples
    --------
    >>> bounded_range_rho(1.0) <= 1.0 / 8.0
    True
    """
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError("epsilon must be finite and positive")
    with localcontext() as context:
        context.prec = 60  # the terms cancel down to epsilon**2 / 8
        e = Decimal(epsilon)
        growth = e.exp() - 1
        return float(e / growth - 1 + (growth / e).ln())


def default_delta(n_rows: int | None = None) -> float:
    """Return the delta of a promise that names none: ``min(1e-6, 1 / (10 n))``.

    ``n_rows`` counts what the promise protects, rows or clients; None where that is not known.

    Examples
    --------
    >>> default_delta(), default_delta(1_000_000)
    (1e-06, 1e-07)
    """
    return _DEFAULT_DELTA if n_rows is None else min(_DEFAULT_DELTA, 1.0 / (10.0 * n_rows))


def delta_for(delta: float | None, n_rows: int | None = None) -> float:
    """Return ``delta``, or the default of a promise to ``n_rows``; `ValueError` if it is too large.

    Privacy: a mechanism that publishes one of ``n`` rows, drawn at random, as it is, is
    (0, 1/n)-DP (Dwork and Roth 2014, section 2.3). So a delta above ``1 / n`` protects nobody. It
    ends at 1e-3 where there are fewer rows, and where nobody knows yet how many there are: beyond
    that a promise fails altogether too often to be one, and rho is bought with delta alone
    (epsilon 1 at delta 0.999 is epsilon 27 at delta 1e-6).

    Examples
    --------
    >>> delta_for(None, 5000), delta_for(1e-5, 5000)
    (1e-06, 1e-05)
    """
    if delta is None:
        return default_delta(n_rows)
    most = _MAX_DELTA if n_rows is None else min(_MAX_DELTA, 1.0 / n_rows)
    if not 0.0 < delta <= most:
        why = "" if most == _MAX_DELTA else f" (one in {n_rows})"
        raise ValueError(
            f"delta must lie above 0 and not above {most:.3g}{why}: a larger one would let rows be "
            f"published as they are; {default_delta(n_rows):.3g} is usual"
        )
    return float(delta)


@dataclass(frozen=True, slots=True)
class Budget:
    """A cap and what was spent under it, in units: a zCDP privacy filter.

    Privacy: if every release is ``rho_t``-zCDP given all that came before, ``rho_t`` itself being
    a function of what came before, and the sum never exceeds the cap, then the whole interaction
    is cap-zCDP (Feldman and Zrnic 2021; Whitehouse et al. 2023). The check precedes the release.
    The guarantee to report is the cap; the sum spent is a reading, not a guarantee.

    Examples
    --------
    >>> budget = Budget(cap=units_down(0.5)).charge(units_up(Fraction(1, 10)))
    >>> round(rho_from_units(budget.remaining), 6)
    0.4
    """

    cap: int
    spent: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.spent <= self.cap <= MAX_UNITS:
            raise ValueError("a budget needs 0 <= spent <= cap <= 2**63 - 1")

    @property
    def remaining(self) -> int:
        """Units that can still be charged."""
        return self.cap - self.spent

    def charge(self, cost: int) -> "Budget":
        """Return the budget after a release of ``cost`` units, or refuse."""
        if cost <= 0:
            raise ValueError("a cost is at least one unit")
        if cost > self.remaining:
            raise BudgetExceeded(
                f"the release costs {format_units(min(cost, MAX_UNITS))} but "
                f"{format_units(self.remaining, left=True)} is left under the cap of "
                f"{format_units(self.cap, left=True)}; plan a cheaper job or raise the cap"
            )
        return Budget(self.cap, self.spent + cost)


def _check_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise ValueError("delta must lie strictly between 0 and 1")
