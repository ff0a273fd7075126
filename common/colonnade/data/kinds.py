"""The kinds of column that a schema may name, and the numbers that each gives for a text."""

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from colonnade.core.arrays import FloatArray
from colonnade.core.config import Finite, Strict, Text

YES, NO = ("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")
"""Texts of a bool that declares none; case does not count in them."""

UNKNOWN = -math.inf
"""Stands for a text that is neither declared nor missing."""

MAX_LEVELS = 1000
Level: TypeAlias = Annotated[str, Meta(min_length=1, max_length=150)]
Levels: TypeAlias = Annotated[tuple[Level, ...], Meta(min_length=1, max_length=MAX_LEVELS)]


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

    def __post_init__(self) -> None:
        try:  # one directive twice is a broken expression, which no reader of rows expects
            dt.datetime.strptime(dt.date(2001, 2, 3).strftime(self.format), self.format)  # noqa: DTZ007
        except (ValueError, re.error):
            raise ValueError(
                f"format: {self.format!r} cannot be read back; use each directive of strptime once"
            ) from None

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
    """Map ordered levels to increasing values.

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


def _check_texts(key: str, texts: tuple[str, ...]) -> None:
    """Refuse texts that are ambiguous or not printable."""
    if len({*texts}) != len(texts):
        raise ValueError(f"{key}: a text is given twice")
    if any(text != text.strip() or not text.isprintable() for text in texts):
        raise ValueError(f"{key}: a text has white space around it, or cannot be printed")
