"""Cells that all tables share."""

from collections.abc import Iterable, Sequence

from colonnade.report.parts import Cell, Column, Row, Table, colour_of
from colonnade.report.schema import Report
from colonnade.report.schema_parts import Amount
from colonnade.report.text import at_most, epsilon_up, short

MAX_LINES = 400
"""Rows of a table; the rest is in ``report.json``."""

NONE = Cell("–")


def colours(report: Report) -> dict[str, str]:
    """Return each party's colour: a number from 1, 0 for grey."""
    return {party: str(colour_of(place)) for place, party in enumerate(report.parties)}


def party_cell(report: Report, party: str, *, aside: str = "") -> Cell:
    """Return a party's name with its colour and shape."""
    return Cell(party, aside=aside, party=int(colours(report).get(party, "0")))


def number(value: float | None, digits: int = 4, *, note: str = "") -> Cell:
    """Return a number for reading, with its exact value."""
    if value is None:
        return NONE
    return Cell(short(value, digits).replace("-", "−"), value, note=note)


def priced(value: float) -> Cell:
    """Return an amount of privacy, rounded up as everywhere, with its exact value."""
    return Cell(at_most(value), value)


def cost(amount: Amount | None) -> Cell:
    """Return an amount as epsilon, rounded up, with its rho beneath."""
    if amount is None:
        return NONE
    return Cell(epsilon_up(amount.epsilon), amount.epsilon, note=f"ρ {at_most(amount.rho)}")


def plain_table(
    key: str,
    title: str,
    head: Sequence[str],
    lines: Iterable[Sequence[Cell]],
    *,
    texts: int = 1,
    about: str = "",
    layout: str = "",
) -> Table:
    """Return a table of text and numbers that scrolls on a phone by default, cut at its limit."""
    rows = tuple(Row(tuple(line)) for line in lines)
    more = len(rows) - MAX_LINES
    return Table(
        key,
        title,
        tuple(Column(name, number=place >= texts) for place, name in enumerate(head)),
        rows[:MAX_LINES],
        about=about,
        layout=layout,
        more=f"{more:,d} more lines are in report.json." if more > 0 else "",
    )
