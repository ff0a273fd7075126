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

import math
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from colonnade.core.arrays import FloatArray
from colonnade.core.config import Strict
from colonnade.data.kinds import (
    NO,
    NUMBER,
    UNKNOWN,
    YES,
    Bool,
    Category,
    Kind,
    Number,
    Ordinal,
    TextKind,
)

DEFAULT_MISSING = ("", "NA", "NaN", "null")

MISSING_SUFFIX = "=missing"

Texts: TypeAlias = Iterable[str | None]


class Encoding(Strict, frozen=True):
    """Describe how a raw column becomes columns of numbers.

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
        if not self.plain and not self.name.isprintable():  # a plain one may name a frame's column
            raise ValueError("name: must be printable")
        # Two columns of a group would be 1 in a row without a value.
        if self.missing_indicator and isinstance(self.kind, Category) and self.kind.fill:
            raise ValueError("fill: a category with a missing_indicator has none; remove one")

    @property
    def plain(self) -> bool:
        """Whether it says nothing but a name."""
        own = self.kind, self.column, self.missing, self.missing_indicator
        return own == (NUMBER, "", DEFAULT_MISSING, False)

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

    @property
    def codes(self) -> tuple[float, ...]:
        """The numbers among the texts that mean "no value": -999 also stands for -999.0."""
        numbers = np.array([_as_number(text) for text in self.missing], np.float64)
        return tuple(numbers[np.isfinite(numbers)].tolist())

    def without_codes(self, numbers: FloatArray) -> FloatArray:
        """Return the values of a number, NaN for those that mean "no value", as ingest has them."""
        return np.where(np.isin(numbers, self.codes), np.nan, numbers) if self.codes else numbers

    def read(self, texts: Texts, count: int) -> FloatArray:
        """Return a number for each of ``count`` texts; NaN if missing, `UNKNOWN` if not known.

        White space around a text does not count. None is missing.
        """
        if isinstance(self.kind, Number):
            return self.without_codes(np.fromiter(map(self._number, texts), np.float64, count))
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
        return _as_number(text)


def _as_number(text: str) -> float:
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
