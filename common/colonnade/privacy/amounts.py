"""Amounts of privacy for people: epsilon, with rho in brackets, rounded in one way.

What is spent or may be spent is rounded up and what is left is rounded down, so that no rounding
promises more than is true. Shares and rho add up; epsilon does not.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from colonnade.privacy.accounting import default_delta, epsilon_of, rho_from_units

_DIGITS = 4


def rounded(value: float, *, down: bool = False, digits: int = _DIGITS) -> str:
    """Return a number with so many significant digits, rounded up, or down.

    Examples
    --------
    >>> rounded(0.55701), rounded(0.55709, down=True)
    ('0.5571', '0.557')
    """
    if not (math.isfinite(value) and value > 0.0):
        return f"{value:g}"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    way = ROUND_FLOOR if down else ROUND_CEILING
    return f"{float(exact.quantize(step, rounding=way)):.{digits}g}"


def format_units(units: int, delta: float | None = None, *, left: bool = False) -> str:
    """Return an amount as ``epsilon 0.557 (rho 0.00812)``; what is ``left`` is rounded down.

    Examples
    --------
    >>> format_units(2**46, 1e-6), format_units(2**46, 1e-6, left=True)
    ('epsilon 1.66 (rho 0.0625)', 'epsilon 1.659 (rho 0.0625)')
    """
    rho = rho_from_units(units)
    epsilon = epsilon_of(rho, default_delta() if delta is None else delta)
    return f"epsilon {rounded(epsilon, down=left)} (rho {rounded(rho, down=left)})"


def format_share(units: int, cap: int, *, left: bool = False) -> str:
    """Return which part of a cap an amount is, in percent with one place."""
    if cap <= 0:
        return "0 %"
    tenths = units * 1000 // cap if left else -(-units * 1000 // cap)
    return f"{tenths / 10:.1f} %"
