"""From raw columns to the numbers that training sees, by public declarations alone.

A raw column has a kind, which says what its values mean. Reading turns values into numbers, and
spreading turns these into one or more columns within public bounds:

number     itself
bool       1 for the texts that mean yes, 0 for those that mean no
date       days since a reference date
ordinal    the value of a level, which are equally spaced unless the values are given
category   one column a level, 1 in that of the row's level and 0 in all others; a baseline has none

Nothing is learned from rows, so a model that carries its encodings is applied to raw columns
exactly as it was fitted. The columns of a category are a group: at most one of them is 1, so
replacing a row moves at most two of them, however many levels there are.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from colonnade.core.arrays import FloatArray
from colonnade.core.config import Finite, Strict, Text

DEFAULT_MISSING = ("", "NA", "NaN", "null")

YES, NO = ("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")
"""Texts of a bool that declares none; case does not count in them."""

UNKNOWN = -math.inf
"""Stands for a text that is neither declared nor missing."""

MAX_LEVELS = 1000
MISSING_SUFFIX = "=missing"

Level: TypeAlias = Annotated[str, Meta(min_length=1, max_length=150)]
Levels: TypeAlias = Annotated[tuple[Level, ...], Meta(min_length=1, max_length=MAX_LEVELS)]
Texts: TypeAlias = Iterable[str | None]


class Number(Strict, frozen=True, tag="number"):
    """Take numbers as they are."""


class Bool(Strict, frozen=True, tag="bool"):
    """Read two sets of texts as 1 and 0; the default ones in any case."""

    yes: tuple[Text, ...] = ()
    no: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.yes) != bool(self.no):
            raise ValueError("yes, no: declare the texts of both, or of neither")
        _check_texts("yes, no", (*self.yes, *self.no))

    def read(self, text: str) -> float:
        """Return 1, 0, or `UNKNOWN`."""
        if not self.yes:
            folded = text.casefold()
            return 1.0 if folded in YES else 0.0 if folded in NO else UNKNOWN
        return 1.0 if text in self.yes else 0.0 if text in self.no else UNKNOWN


class Date(Strict, frozen=True, tag="date"):
    """Count the days since a reference date.

    Parameters
    ----------
    format
        As in ``strptime``; empty for ISO 8601, whose time of day is left out.
    """

    reference: dt.date
    format: str = ""

    def read(self, text: str) -> float:
        """Return the days from the reference to a date, or `UNKNOWN`."""
        try:
            if self.format:
                found = dt.datetime.strptime(text, self.format)  # noqa: DTZ007 (days only)
            else:
                found = dt.datetime.fromisoformat(text)
        except ValueError:
            return UNKNOWN
        return self.days(found.date())

    def days(self, date: dt.date) -> float:
        """Return the days from the reference to ``date``."""
        return float((date - self.reference).days)


class Ordinal(Strict, frozen=True, tag="ordinal"):
    """Give ordered levels increasing values.

    Parameters
    ----------
    values
        Of the levels; empty for 0, 1, 2 and so on.
    unknown
        Whether texts that are no level count as missing; else they are refused.
    """

    levels: Levels
    values: tuple[Finite, ...] = ()
    unknown: bool = False

    def __post_init__(self) -> None:
        _check_texts("levels", self.levels)
        if len(self.levels) < 2:
            raise ValueError("levels: an ordinal has at least two")
        if self.values and len(self.values) != len(self.levels):
            raise ValueError("values: must be as many as the levels")
        if any(low >= high for low, high in zip(self.scale, self.scale[1:], strict=False)):
            raise ValueError("values: must increase")

    @property
    def scale(self) -> tuple[float, ...]:
        """The values of the levels."""
        return self.values or tuple(map(float, range(len(self.levels))))

    def read(self, text: str) -> float:
        """Return the value of a level, NaN or `UNKNOWN`."""
        if text in self.levels:
            return self.scale[self.levels.index(text)]
        return math.nan if self.unknown else UNKNOWN


class Category(Strict, frozen=True, tag="category"):
    """Spread levels over columns of 0 and 1.

    Parameters
    ----------
    other
        Name of the level of all texts that are no other level; empty for none.
    baseline
        Level that has no column, so that others are compared with it; empty for none.
    fill
        Level that stands for a missing value; empty for none, so that all columns are 0.
    unknown
        Whether, without ``other``, texts that are no level count as missing; else they are refused.
    """

    levels: Levels
    other: str = ""
    baseline: str = ""
    fill: str = ""
    unknown: bool = False

    def __post_init__(self) -> None:
        _check_texts("levels", self.all_levels)
        if self.other and self.unknown:
            raise ValueError("unknown: there is a level for the rest, which is other; remove one")
        if self.baseline and self.baseline not in self.all_levels:
            raise ValueError("baseline: must be one of the levels, or other")
        if self.fill and self.fill not in self.all_levels:
            raise ValueError("fill: must be one of the levels, or other")
        if not self.shown:
            raise ValueError("levels: there is none besides the baseline")

    @property
    def all_levels(self) -> tuple[str, ...]:
        """The levels, then that of all other texts if there is one."""
        return (*self.levels, self.other) if self.other else self.levels

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that have a column."""
        return tuple(level for level in self.all_levels if level != self.baseline)

    def read(self, text: str) -> float:
        """Return the place of a level, NaN or `UNKNOWN`."""
        if text in self.levels:
            return float(self.levels.index(text))
        if self.other:
            return float(len(self.levels))
        return math.nan if self.unknown else UNKNOWN

    def spread(self, places: FloatArray) -> Iterator[FloatArray]:
        """Yield a column for each level that is shown; NaN where the place is."""
        missing = np.isnan(places)
        for level in self.shown:
            column = (places == self.all_levels.index(level)).astype(np.float64)
            column[missing] = np.nan
            yield column


NUMBER = Number()

Kind: TypeAlias = Number | Bool | Date | Ordinal | Category
TextKind: TypeAlias = Bool | Date | Ordinal | Category


class Encoding(Strict, frozen=True):
    """Say how a raw column becomes columns of numbers.

    Parameters
    ----------
    name
        Public name of the raw column.
    column
        Its name in the source; empty for the same.
    missing
        Texts that mean "no value", unless they are levels.
    missing_indicator
        Whether one more column says where there was no value.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    kind: Kind = NUMBER
    column: Annotated[str, Meta(max_length=1000)] = ""
    missing: tuple[str, ...] = DEFAULT_MISSING
    missing_indicator: bool = False

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            raise ValueError("name: must be printable")
        # Two columns of a group would be 1 in a row without a value.
        if self.missing_indicator and isinstance(self.kind, Category) and self.kind.fill:
            raise ValueError("fill: a category with a missing_indicator has none; remove one")

    @property
    def plain(self) -> bool:
        """Whether it says nothing but a name."""
        return self == Encoding(self.name)

    @property
    def source(self) -> str:
        """The name in the source."""
        return self.column or self.name

    @property
    def group(self) -> str:
        """The name of the group that the columns are; empty if they are none."""
        return self.name if isinstance(self.kind, Category) else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        own = (
            tuple(f"{self.name}={level}" for level in self.kind.shown)
            if isinstance(self.kind, Category)
            else (self.name,)
        )
        return (*own, self.name + MISSING_SUFFIX) if self.missing_indicator else own

    @property
    def classes(self) -> tuple[str, ...]:
        """Texts that 0 and 1 stand for, of a kind that has two values; else none."""
        if isinstance(self.kind, Bool):
            return (self.kind.no or NO)[0], (self.kind.yes or YES)[0]
        if isinstance(self.kind, Ordinal) and len(self.kind.levels) == 2:
            return self.kind.levels
        return ()

    def read(self, texts: Texts, count: int) -> FloatArray:
        """Return a number for each of ``count`` texts; NaN if missing, `UNKNOWN` if not known.

        White space around a text does not count. None is missing.
        """
        if isinstance(self.kind, Number):
            return np.fromiter(map(self._number, texts), np.float64, count)
        # Few texts differ: each is read once.
        known = _Memo(self._reader(self.kind))
        return np.fromiter(map(known.__getitem__, texts), np.float64, count)

    def spread(self, numbers: FloatArray) -> tuple[FloatArray, ...]:
        """Return the columns that read values become, in the order of ``names``.

        NaN is left for the caller, who replaces it by each column's fill.
        """
        own = self.kind.spread(numbers) if isinstance(self.kind, Category) else (numbers,)
        indicator = (np.isnan(numbers).astype(np.float64),) if self.missing_indicator else ()
        return (*own, *indicator)

    def _reader(self, kind: TextKind) -> Callable[[str | None], float]:
        def read(text: str | None) -> float:
            if text is None:
                return math.nan
            stripped = text.strip()
            levels = getattr(kind, "levels", ())
            # A declared level is one, whatever else the text may mean: "NA" may be a continent.
            if stripped in self.missing and stripped not in levels:
                return math.nan
            return kind.read(stripped)

        return read

    def _number(self, text: str | None) -> float:
        if text is None or text.strip() in self.missing:
            return math.nan
        try:
            return float(text)
        except ValueError:
            return UNKNOWN


class _Memo(dict[str | None, float]):
    """Remember what a function returned."""

    def __init__(self, function: Callable[[str | None], float]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: str | None) -> float:
        found = self[key] = self._function(key)
        return found


def _check_texts(key: str, texts: tuple[str, ...]) -> None:
    """Refuse texts that could not be told apart or shown."""
    if len({*texts}) != len(texts):
        raise ValueError(f"{key}: a text is given twice")
    if any(text != text.strip() or not text.isprintable() for text in texts):
        raise ValueError(f"{key}: a text has white space around it, or cannot be printed")
