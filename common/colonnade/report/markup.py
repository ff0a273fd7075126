"""Make HTML from values: whatever is not ``Markup`` is escaped, so nothing can be forgotten."""

import html
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

# What XML cannot hold (and surrogates, which UTF-8 cannot): a name may still contain it.
_NOT_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VOID = {"meta"}
_LEAST_WHOLE, _MAX_WHOLE = 1e4, 1e7  # between them a number is shown without exponent


class Markup(str):
    """HTML that is finished and inserted as it is."""

    __slots__ = ()


def clean(text: str) -> str:
    """Replace characters that no document can hold."""
    return _NOT_TEXT.sub("\ufffd", text)


def tag(name: str, /, *children: str, **attributes: str) -> Markup:
    """Return an element; children are escaped unless they are ``Markup``.

    An attribute's trailing underscore is dropped (``class_``), others become hyphens.
    """
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(clean(value))}"'
        for key, value in attributes.items()
    )
    start = f"<{name}{''.join(pairs)}>"
    return Markup(start if name in _VOID else f"{start}{join(children)}</{name}>")


def join(children: Iterable[str]) -> Markup:
    """Return children one after the other, escaped unless they are ``Markup``."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(clean(child), quote=False)
            for child in children
        )
    )


def name_of(text: str) -> Markup:
    """Return a name that others chose, kept from reordering the text around it."""
    return tag("bdi", text)


def number(value: float, shown: str | None = None) -> Markup:
    """Return a number for reading, with its exact value in the markup."""
    return tag("data", short(value) if shown is None else shown, value=repr(value))


def short(value: float, digits: int = 4) -> str:
    """Return an integer in full, another number in a few digits."""
    if isinstance(value, int):
        return f"{value:,d}"
    if _LEAST_WHOLE <= abs(value) < _MAX_WHOLE:
        return f"{value:,.0f}"  # an amount in some unit: 10,200 reads better than 1.02e4
    shown = f"{value + 0.0:.{digits}g}"  # adding zero drops the sign of -0.0
    return re.sub(r"e([+-])0?", r"e\1", shown).replace("e+", "e")


def at_most(value: float, digits: int = 3) -> str:
    """Return a promised bound in a few digits, rounded up: rounding must not promise more."""
    exact = Decimal(repr(value))
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return short(float(exact.quantize(step, rounding=ROUND_CEILING)), digits) if value else "0"


def size(n_bytes: int) -> str:
    """Return a number of bytes in the decimal unit that suits it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.3g} {name}"
    return f"{n_bytes} B"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1, strong: int = 0
) -> Markup:
    """Return a table that scrolls by itself on a narrow screen.

    Parameters
    ----------
    texts
        How many leading columns hold text; the others hold numbers and are set to the right.
    strong
        How many of the last rows are totals.
    """
    lines = list(rows)
    kinds = ["text" if place < texts else "figure" for place in range(len(head))]

    def row(cells: Sequence[str], kind: str = "") -> Markup:
        columns = zip(cells, kinds, strict=True)
        return tag("tr", *(tag("td", cell, class_=name) for cell, name in columns), class_=kind)

    top = tag("tr", *(tag("th", cell, class_=k) for cell, k in zip(head, kinds, strict=True)))
    cut = len(lines) - strong
    body = [row(cells, "total" if place >= cut else "plain") for place, cells in enumerate(lines)]
    return tag("div", tag("table", tag("thead", top), tag("tbody", *body)), class_="scroll")


def folded(summary: str, *children: str) -> Markup:
    """Return content behind a line to click."""
    return tag("details", tag("summary", summary), *children)
