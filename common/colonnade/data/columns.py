"""One declared column: as a value, and as a table of the schema file."""

import datetime as dt
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from colonnade.core.config import Finite, Strict, Text
from colonnade.core.fixedpoint import Bounds
from colonnade.data.encoding import DEFAULT_MISSING, Encoding
from colonnade.data.kinds import NUMBER, Bool, Category, Date, Kind, Number, Ordinal

MAX_NAME = 200
"""Longest name of a column: jobs carry names, and peers show them."""

Type: TypeAlias = Literal["number", "category", "bool", "date", "ordinal"]

_UNIT = Bounds(0.0, 1.0)
_KEYS: dict[Type, tuple[str, ...]] = {
    "number": ("low", "high"),
    "category": ("levels", "other", "baseline", "unknown"),
    "bool": ("yes", "no"),
    "date": ("low", "high", "reference", "format"),
    "ordinal": ("levels", "values", "unknown"),
}
_A_DATE, _A_NUMBER = "a date such as 2030-12-31", "a number"


@dataclass(frozen=True, slots=True)
class Column:
    """Declare one feature, or the label.

    Parameters
    ----------
    name
        Public name, used in jobs and reports.
    column
        Name in the source.
    bounds
        Of the numbers that values are read as; 0 and 1 for a category, each of whose columns has
        these bounds.
    fill
        Value that stands for a missing one, within ``bounds``; a category has its own.
    """

    name: str
    column: str
    bounds: Bounds
    fill: float
    kind: Kind = NUMBER
    missing_indicator: bool = False

    def encoding(self, missing: tuple[str, ...] = DEFAULT_MISSING) -> Encoding:
        """Return how the raw column becomes numbers."""
        source = "" if self.column == self.name else self.column
        return Encoding(self.name, self.kind, source, missing, self.missing_indicator)

    @property
    def is_exact(self) -> bool:
        """Whether values attain the bounds by declaration, so that there are no tighter ones."""
        return isinstance(self.kind, Category | Bool | Ordinal)

    def fills(self) -> tuple[float, ...]:
        """Return what stands for a missing value in each of the columns of numbers."""
        own = (
            tuple(float(level == self.kind.fill) for level in self.kind.shown)
            if isinstance(self.kind, Category)
            else (self.fill,)
        )
        return (*own, 1.0) if self.missing_indicator else own

    def limits(self) -> tuple[Bounds, ...]:
        """Return the bounds of each of the columns of numbers."""
        n_own = len(self.encoding().names) - self.missing_indicator
        return (*(self.bounds,) * n_own, *(_UNIT,) * self.missing_indicator)


class ColumnTable(Strict, frozen=True):
    """A ``[[feature]]`` or the ``[label]`` of a schema file."""

    name: str
    type: Type = "number"
    column: Text | None = None
    low: float | dt.date | None = None
    high: float | dt.date | None = None
    fill: Any = None
    levels: tuple[str | int, ...] | None = None
    other: Text | None = None
    baseline: str | int | None = None
    values: tuple[Finite, ...] | None = None
    yes: tuple[str | int, ...] | None = None
    no: tuple[str | int, ...] | None = None
    reference: dt.date | None = None
    format: Text | None = None
    unknown: Literal["missing", "refuse"] | None = None
    missing_indicator: bool = False

    def __post_init__(self) -> None:
        self.declared()

    def declared(self, *, label: bool = False) -> Column:
        """Return the column that the table declares; `ValueError` names the key at fault."""
        if not (1 <= len(self.name) <= MAX_NAME and self.name.isprintable()):
            raise ValueError(f"name: must have 1 to {MAX_NAME} printable characters")
        self._check_keys()
        kind, bounds = self._label_kind() if label else self._kind(), self._bounds()
        fill = self._fill(kind, bounds)
        if not bounds.low <= fill <= bounds.high:
            raise ValueError(f"fill: must lie within [{bounds.low}, {bounds.high}]")
        column = self.column or self.name
        made = Column(self.name, column, bounds, fill, kind, self.missing_indicator)
        if any(len(name) > MAX_NAME for name in made.encoding().names):
            raise ValueError(f"levels: with the name, more than {MAX_NAME} characters; shorten it")
        return made

    def _check_keys(self) -> None:
        """Refuse keys that the type does not have, and want those that it needs."""
        for key in dict.fromkeys(key for keys in _KEYS.values() for key in keys):
            if getattr(self, key) is not None and key not in _KEYS[self.type]:
                known = ", ".join(_KEYS[self.type])
                types = " or ".join(name for name, keys in _KEYS.items() if key in keys)
                raise ValueError(
                    f"{key}: is not for the type {self.type}, which has {known}, but for {types}"
                )
        for key in ("low", "high", "levels"):
            if key in _KEYS[self.type] and getattr(self, key) is None:
                raise ValueError(f"{key}: is missing")

    def _kind(self) -> Kind:
        unknown = self.unknown == "missing"
        if self.type == "category":
            return Category(
                levels=_texts(self.levels),
                other=self.other or "",
                baseline="" if self.baseline is None else str(self.baseline),
                fill=self._level_fill(),
                unknown=unknown,
            )
        if self.type == "ordinal":
            return Ordinal(_texts(self.levels), self.values or (), unknown)
        if self.type == "bool":
            return Bool(_texts(self.yes), _texts(self.no))
        if self.type == "date":
            return Date(self.reference or _date("low", self.low), self.format or "")
        return NUMBER

    def _label_kind(self) -> Kind:
        """Return the kind of a label: of a category the first level, or the baseline, is 0."""
        if self.missing_indicator:
            raise ValueError("missing_indicator: is not for a label")
        kind = self._kind()
        if not isinstance(kind, Category):
            if isinstance(kind, Number | Bool):
                return kind
            raise ValueError("type: a label is a number, a bool or a category of two levels")
        if len(kind.levels) != 2 or kind.other:
            raise ValueError("levels: a label that is a category has two, and no other")
        zero = kind.baseline or kind.levels[0]
        one = next(level for level in kind.levels if level != zero)
        return Ordinal((zero, one), unknown=kind.unknown)

    def _bounds(self) -> Bounds:
        kind = self._kind()
        if isinstance(kind, Ordinal):
            return Bounds(kind.scale[0], kind.scale[-1])
        if isinstance(kind, Date):
            return Bounds(*(kind.days(_date(key, getattr(self, key))) for key in ("low", "high")))
        if isinstance(kind, Number):
            return Bounds(*(_number(key, getattr(self, key)) for key in ("low", "high")))
        return _UNIT

    def _fill(self, kind: Kind, bounds: Bounds) -> float:
        """Return what stands for a missing value, as a number."""
        fill = self.fill
        if isinstance(kind, Category):
            return 0.0
        if fill is None:
            return bounds.middle
        if isinstance(kind, Date):
            return kind.days(_date("fill", fill))
        if isinstance(kind, Ordinal):
            if (place := str(fill)) not in kind.levels:
                raise ValueError("fill: must be one of the levels")
            return kind.scale[kind.levels.index(place)]
        if isinstance(kind, Bool) and isinstance(fill, bool):
            return float(fill)
        if isinstance(kind, Bool):
            raise ValueError("fill: must be true or false")
        return _number("fill", fill)

    def _level_fill(self) -> str:
        return "" if self.fill is None else str(self.fill)


def _texts(given: tuple[str | int, ...] | None) -> tuple[str, ...]:
    return tuple(str(text) for text in given or ())


def _date(key: str, value: object) -> dt.date:
    if type(value) is not dt.date:  # no date with a time of day
        raise ValueError(f"{key}: must be {_A_DATE}")
    return value


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key}: must be {_A_NUMBER}")
    return float(value)
