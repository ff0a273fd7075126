"""The columns of a fitted model: its label, its features, and the raw columns they come from."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray, Int16Array
from colonnade.core.config import Finite, Strict, Text
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.data.encoding import Encoding
from colonnade.data.frames import numbers
from colonnade.data.kinds import UNKNOWN, Number

_MAX_NAMES = 5
_SEEN = 1000  # values of a column that show whether it holds texts


class ModelLabel(Strict, frozen=True):
    """Name the label and its public bounds.

    Parameters
    ----------
    levels
        Texts that the low and the high value stand for, if the label was read from texts.
    """

    name: Text
    low: Finite
    high: Finite
    levels: tuple[str, ...] = ()

    @property
    def bounds(self) -> Bounds:
        """The declared range."""
        return Bounds(self.low, self.high)


class ModelFeature(Strict, frozen=True):
    """Hold one party's feature: its public bounds and its coefficient on scaled values.

    Parameters
    ----------
    fill
        What stood for a missing value, as declared, in the feature's unit. Bounds may be tighter
        than it was declared under; it is clipped to them like any value.
    group
        Name of the category that it is a level of; empty for none.
    """

    party: Text
    name: Text
    low: Finite
    high: Finite
    fill: Finite
    coef_scaled: Finite
    group: str = ""

    @property
    def bounds(self) -> Bounds:
        """The range that training clipped to."""
        return Bounds(self.low, self.high)

    @property
    def full_name(self) -> str:
        """The name that no two features of a model share."""
        return f"{self.party}.{self.name}"

    def quantised(self, values: FloatArray) -> Int16Array:
        """Return values as training sees them, on the grid; NaN is missing."""
        filled = np.where(np.isnan(values), self.fill, values)
        return quantise(filled, self.bounds, grid=GRID)


class ModelEncoding(Encoding, frozen=True, kw_only=True):
    """Describe how a raw column of one party became features."""

    party: Text

    @classmethod
    def of(cls, party: str, encoding: Encoding) -> "ModelEncoding":
        """Return the encoding as that of ``party``."""
        return cls(**msgspec.structs.asdict(encoding), party=party)


@dataclass(frozen=True, slots=True)
class Input:
    """A raw column that a model reads, and the features that it becomes.

    Parameters
    ----------
    features
        One for each of the encoding's columns; None for those that do not matter.
    """

    party: str
    encoding: Encoding
    features: tuple[ModelFeature | None, ...]

    @property
    def is_needed(self) -> bool:
        """Whether the model depends on the column."""
        return any(feature is not None for feature in self.features)

    @property
    def plain_names(self) -> tuple[str, ...]:
        """The names that the column may have where no other can be meant."""
        return tuple(dict.fromkeys((self.encoding.name, self.encoding.source)))

    @property
    def full_names(self) -> tuple[str, ...]:
        """The names that the column may have in any table."""
        return tuple(f"{self.party}.{name}" for name in self.plain_names)

    def columns(
        self, values: AnyArray, *, what: str = "a column"
    ) -> Iterator[tuple[ModelFeature, Int16Array]]:
        """Yield the features that are needed, on the grid; refuse a text that is not known."""
        spread = self.encoding.spread(self.numbers(np.asarray(values), what=what))
        for feature, column in zip(self.features, spread, strict=True):
            if feature is not None:
                yield feature, feature.quantised(column)

    def numbers(self, values: AnyArray, *, what: str) -> FloatArray:
        """Return what raw values are read as; NaN is missing."""
        if isinstance(self.encoding.kind, Number):
            if not any(isinstance(each, str) for each in values.tolist()[:_SEEN]):
                return self.encoding.without_codes(numbers(values, what=what))
            fault = "that are no numbers"
        else:
            fault = "that are not declared"
        found = self.encoding.read(_texts(values), values.size)
        if (found == UNKNOWN).any():
            raise BadInput(f"{what} holds values {fault}")
        return found


def _texts(values: AnyArray) -> Iterator[str | None]:
    """Return values as a file would have them: 3.0 is the level 3, NaN is missing."""
    if values.dtype.kind == "M":
        days = np.datetime_as_string(values, unit="D").tolist()
        return iter([None if day == "NaT" else day for day in days])
    return map(_text, values.tolist())


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def inputs_of(
    features: Sequence[ModelFeature], encodings: Sequence[ModelEncoding]
) -> tuple[Input, ...]:
    """Return the raw columns of a model, in the order of the features."""
    owners = {(each.party, name): each for each in encodings for name in each.names}
    raw: dict[tuple[str, str], Encoding] = {}
    for feature in features:
        made = owners.get((feature.party, feature.name)) or Encoding(feature.name)
        raw.setdefault((feature.party, made.name), made)
    known = {(each.party, each.name): each for each in features if each.coef_scaled}
    return tuple(
        Input(party, encoding, tuple(known.get((party, name)) for name in encoding.names))
        for (party, _), encoding in raw.items()
    )


def match(
    inputs: Sequence[Input], names: Collection[str], *, origin: str, there: str
) -> dict[str, Input]:
    """Find the columns that are needed; a plain name serves if nothing else can be meant."""
    plain = Counter(name for each in inputs for name in each.plain_names)
    full = {name for each in inputs for name in each.full_names}
    found, missing = {}, []
    for each in (each for each in inputs if each.is_needed):
        bare = [name for name in each.plain_names if plain[name] == 1 and name not in full]
        usable = [*each.full_names, *bare]
        if (name := next((name for name in usable if name in names), None)) is not None:
            found[name] = each
        else:
            other = f" (or {bare[0]!r})" if bare else ""
            missing.append(f"{usable[0]!r}{other}")
    if missing:
        rest = f" and {len(missing) - _MAX_NAMES} more" if missing[_MAX_NAMES:] else ""
        told = f"; {there}" if there else ""
        raise BadInput(f"{origin}: no column {', '.join(missing[:_MAX_NAMES])}{rest}{told}")
    return found
