"""Numbers and names as people read them: costs round up, what is left rounds down."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from colonnade.privacy.accounting import rounded

NORMAL_95 = 1.959963984540054
"""Standard errors in half a 95 % interval."""

# What no document can hold, and marks that would reorder the text around a name.
_NOT_TEXT = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_MIN_GROUPED, _MAX_GROUPED = 999.5, 1e7  # between them a number is shown without exponent
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NAME_CHARS = 16


def clean(text: str) -> str:
    """Replace characters that no document can hold or that would reorder its text."""
    return _NOT_TEXT.sub("\ufffd", text)


def short(value: float, digits: int = 4) -> str:
    """Return an integer in full, another number in a few digits."""
    if isinstance(value, int):
        return f"{value:,d}"
    if min(_MIN_GROUPED, 10.0**digits - 0.5) <= abs(value) < _MAX_GROUPED:
        return f"{value:,.0f}"  # an amount in some unit: 10,200 reads better than 1.02e4
    shown = f"{value + 0.0:.{digits}g}"  # adding zero drops the sign of -0.0
    return re.sub(r"e([+-])0?", r"e\1", shown).replace("e+", "e")


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign, as wide as a minus."""
    shown = short(abs(value), digits)
    if value == 0.0:
        return "0"
    return f"+{shown}" if value > 0.0 else f"−{shown}"


def per_unit(value: float, digits: int = 3) -> str:
    """Return a signed coefficient in a column's own unit, without exponent.

    Examples
    --------
    >>> per_unit(-2.0213e-5), per_unit(1234.5)
    ('−0.0000202', '+1,234')
    """
    if not value or 1e-4 <= abs(value) < _MAX_GROUPED:
        return signed(value, digits)
    return f"{'+' if value > 0.0 else '−'}{Decimal(f'{abs(value):.{digits - 1}e}'):,f}"


def at_most(value: float) -> str:
    """Return a promised bound as ledgers show it, rounded up: rounding must not promise more."""
    return rounded(_told(value))


def epsilon_up(value: float) -> str:
    """Return a cost in epsilon as ledgers and the command line show it, rounded up."""
    return f"ε\u00a0{at_most(value)}"


def epsilon_down(value: float) -> str:
    """Return what is left in epsilon, rounded down."""
    return f"ε\u00a0{rounded(_told(value), down=True)}"


def _told(value: float) -> float:
    """Return an amount without what floating-point sums add to it: 1.0000000000000002 is 1."""
    return float(f"{value:.12g}")


def percent_up(share: float) -> str:
    """Return a share that was used, in percent with one place, rounded up."""
    return f"{_places(100.0 * share, 1, up=True)}\u00a0%"


def percent_down(share: float) -> str:
    """Return a share that is left, in percent with one place, rounded down."""
    return f"{_places(100.0 * share, 1, up=False)}\u00a0%"


def _places(value: float, places: int, *, up: bool) -> str:
    # Nine further places: 1.0000000000000002 is a rounding error of the sum, not a cost.
    exact = Decimal(f"{value:.{places + 9}f}")
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return f"{exact.quantize(Decimal(1).scaleb(-places), rounding=rounding):,}"


def odds(epsilon: float) -> str:
    """Return what a guess of 50 : 50 can become, by Bayes' rule."""
    raised = math.ceil(100.0 / (1.0 + math.exp(-epsilon)) - 1e-9)
    return f"at most about {raised} : {100 - raised}" if raised < 100 else "more than 99 : 1"


def size(n_bytes: int) -> str:
    """Return a number of bytes in the decimal unit that suits it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {name}"
    return f"{n_bytes} B"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things; small numbers are words."""
    return f"{in_words(number)} {one if number == 1 else many or one + 's'}"


def in_words(number: int) -> str:
    """Return a small number as a word."""
    return _WORDS[number] if number < len(_WORDS) else f"{number:,d}"


def of_all(part: int, total: int, one: str = "column") -> str:
    """Return how many of all things, at the start of a sentence or in one."""
    if part == total:
        return {1: f"the only {one}", 2: f"both {one}s"}.get(total, f"all {count(total, one)}")
    return f"{in_words(part) if part else 'none'} of {total:,d} {one}s"


def seconds(value: float, digits: int = 4) -> str:
    """Return a duration in seconds."""
    shown = short(value, digits)
    return f"{shown} second{'' if shown == '1' else 's'}"


def moment(text: str) -> str:
    """Return an ISO 8601 time as people write it."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:.0f}\u00a0%"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capital(text: str) -> str:
    """Return a sentence that starts with a capital letter."""
    return text[:1].upper() + text[1:]


def readable(name: str) -> str:
    """Return a column's name for a sentence."""
    return " ".join(name.replace("_", " ").split())


def abbreviated(name: str, chars: int = _NAME_CHARS) -> str:
    """Return a name that fits beside an axis; names often differ at their end."""
    line = " ".join(clean(name).split())
    tail = chars // 3
    return line if len(line) <= chars else f"{line[: chars - tail - 1]}…{line[-tail:]}"
