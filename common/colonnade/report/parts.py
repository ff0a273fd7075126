"""What a page is made of: values that the templates lay out, without a line of HTML."""

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

MAX_COLOURS = 6
"""Parties with a colour and a shape of their own; further ones are grey, with their names."""


def colour_of(place: int) -> int:
    """Return the number of a party's colour and shape; 0 is grey."""
    return place + 1 if place < MAX_COLOURS else 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a strip; x in percent of its width."""

    shape: str  # track, bar, whisker, interval, dot, tick, grid, axis
    x: float = 0.0
    x2: float = 0.0
    colour: str = "ink"  # ink, spent, or a party's number
    title: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """A plot in a table's cell; ``label`` says the same to those who cannot see it."""

    label: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: text, its exact value for sorting and CSV, and what stands beside or beneath it."""

    text: str = ""
    value: float | str | None = None
    aside: str = ""
    note: str = ""
    party: int | None = None  # colour, for a party's name
    strip: Strip | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; ``ticks`` (percent, text) are those of its strips."""

    title: str
    number: bool = True
    plot: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    parties: tuple[tuple[int, str], ...] = ()  # a key of the strips' colours


@dataclass(frozen=True, slots=True)
class Row:
    """A table's row; its first cell names it."""

    cells: tuple[Cell, ...]
    party: str = ""
    clear: bool = True  # whether it shows before somebody asks for all
    total: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """What narrows a table: the parties to choose from, and the words for rows that are unclear."""

    parties: tuple[str, ...]
    unclear: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; it can be sorted and downloaded, and so can its strips."""

    kind: ClassVar[str] = "table"
    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    about: str = ""
    layout: str = "stack"  # on a phone: stack, "stack pair", or empty to scroll
    filter: Filter | None = None
    sorted_by: int | None = None  # column by which rows already descend
    more: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve through points in thousandths of the width and in pixels."""

    points: str
    colour: str = "ink"
    style: str = ""  # thin, dashed
    title: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its interval: x in percent, the rest in pixels."""

    x: float
    y: float
    low: float
    high: float
    title: str


@dataclass(frozen=True, slots=True)
class Square:
    """A square whose area is a size; hollow if negative. x in percent, the rest in pixels."""

    x: float
    y: float
    side: float
    hollow: bool
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot of its own, with the numbers behind it; x in percent and y in pixels."""

    kind: ClassVar[str] = "chart"
    key: str
    title: str
    label: str
    height: int
    caption: str
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    x_title: str = ""
    y_title: str = ""
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = ()
    squares: tuple[Square, ...] = ()
    names: tuple[tuple[float, str, str], ...] = ()  # pixels, text, colour: at the lines' ends
    markers: tuple[tuple[float, str], ...] = ()  # upright lines: percent, text
    ruled: bool = True
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a list of facts."""

    name: str
    text: str
    value: float | str | None = None
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """A list of facts under a heading."""

    kind: ClassVar[str] = "facts"
    facts: tuple[Fact, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A box that speaks up; ``state`` is good, warn, bad, or empty."""

    kind: ClassVar[str] = "note"
    text: str
    title: str = ""
    state: str = ""
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Content behind a line to open."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks side by side where there is room."""

    kind: ClassVar[str] = "grid"
    blocks: tuple["Block", ...]


Block: TypeAlias = Table | Chart | Facts | Note | Fold | Grid


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; ``nav`` is its name in the bar at the top."""

    key: str
    title: str
    nav: str
    lead: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of the board, a figure, a sentence, and where to read on."""

    question: str
    figure: str
    small: str
    text: str
    link: str
    link_text: str
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    headline: str
    lead: str
    chips: tuple[tuple[str, str], ...]  # state, text
    meta: tuple[tuple[str, str], ...]
    footer: str
    alerts: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    answers: tuple[Answer, ...] = ()
    sections: tuple[Section, ...] = field(default=())
