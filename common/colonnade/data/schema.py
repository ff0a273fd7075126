"""What a party's table holds, declared before any data is read.

The schema of a host also says ``client = "device"``: the column that names whose row it is. How the
same client is told from another is declared as ``client_ids``:

``"text"`` (default)
    Case, white space, invisible characters and the Unicode form do not count, and a whole number is
    the same however it is written: ``7``, `` 7``, ``007`` and ``7.0`` are one client.
``"integer"``
    The same, and every id must be a whole number.
``"exact"``
    Case, leading zeros and decimal points count; white space around an id does not. Only for a
    source that writes every id the same way for ever: a client that is written differently gets
    another budget.

A schema is a TOML file. Everything in it is public by declaration, so bounds come from what the
parties know about a quantity, never from the rows::

    id = "patient"                   # column that names the person; needed with a roster
    missing = ["", "NA", "-999"]     # texts that mean "no value"; default: "", NA, NaN, null

    [[feature]]                      # one block a feature; their order is the column order
    name = "age"
    low = 0                          # values outside [low, high] are clipped, never rejected
    high = 110

    [[feature]]
    name = "glucose"
    column = "Glucose (mg/dL)"       # name in the source; default: the same as name
    low = 40
    high = 400
    fill = 95                        # stands for a missing value; default: the middle of these
                                     # bounds; a job with tighter ones clips it to them

    [label]                          # at most one, with the same keys as a feature
    name = "readmitted"
    low = 0
    high = 1
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from colonnade.core.config import Strict, Text, load_toml, parse_toml
from colonnade.core.fixedpoint import Bounds

DEFAULT_MISSING = ("", "NA", "NaN", "null")

ClientIds = Literal["text", "integer", "exact"]
CLIENT_IDS: tuple[ClientIds, ...] = get_args(ClientIds)
"""The rules by which the ids of clients are compared; the first is the default."""

MAX_NAME = 200
"""Longest name of a column: jobs carry names, and peers show them."""


@dataclass(frozen=True, slots=True)
class Column:
    """Declare one feature, or the label.

    Parameters
    ----------
    name
        Public name, used in jobs and reports.
    column
        Name in the source.
    fill
        Value that stands for a missing one, within ``bounds``.
    """

    name: str
    column: str
    bounds: Bounds
    fill: float


@dataclass(frozen=True, slots=True)
class Schema:
    """Declare the columns of a table, in order.

    With ``client`` the table is a host's: rows are divided among clients, each with a budget of its
    own that protects all of its rows, and only jobs over clients may use it.
    """

    features: tuple[Column, ...]
    label: Column | None = None
    id: str | None = None
    missing: tuple[str, ...] = DEFAULT_MISSING
    client: str | None = None
    client_ids: ClientIds = CLIENT_IDS[0]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The features, then the label if there is one."""
        return self.features if self.label is None else (*self.features, self.label)

    @property
    def digest(self) -> str:
        """SHA-256 of the declaration; comments, spacing and spelled-out defaults do not count."""
        canonical = {
            "id": self.id,
            "missing": sorted(set(self.missing)),
            "feature": [_canonical(feature) for feature in self.features],
            "label": None if self.label is None else _canonical(self.label),
        }
        if self.client is not None:
            canonical["client"], canonical["client_ids"] = self.client, self.client_ids
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class _ColumnTable(Strict, frozen=True):
    """A ``[[feature]]`` or the ``[label]``."""

    name: str
    low: float
    high: float
    column: Text | None = None
    fill: float | None = None

    def __post_init__(self) -> None:
        self.declared()

    def declared(self) -> Column:
        if not (1 <= len(self.name) <= MAX_NAME and self.name.isprintable()):
            raise ValueError(f"name: must have 1 to {MAX_NAME} printable characters")
        bounds = Bounds(self.low, self.high)
        fill = bounds.middle if self.fill is None else self.fill
        if not self.low <= fill <= self.high:
            raise ValueError(f"fill: must lie within [{self.low}, {self.high}]")
        return Column(self.name, self.column or self.name, bounds, fill)


class _SchemaFile(Strict, frozen=True):
    id: Text | None = None
    client: Text | None = None
    client_ids: ClientIds | None = None
    missing: tuple[str, ...] = DEFAULT_MISSING
    feature: tuple[_ColumnTable, ...] = ()
    label: _ColumnTable | None = None

    def __post_init__(self) -> None:
        if not self.feature:
            raise ValueError("no features; declare each one in a [[feature]] table")
        if self.client_ids is not None and self.client is None:
            raise ValueError("client_ids: there is no client column; name it as client")
        names = Counter(column.name for column in self.declared().columns)
        if repeated := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"name: {repeated[0]!r} is used twice; rename one")

    def declared(self) -> Schema:
        return Schema(
            features=tuple(feature.declared() for feature in self.feature),
            label=None if self.label is None else self.label.declared(),
            id=self.id,
            missing=self.missing,
            client=self.client,
            client_ids=self.client_ids or CLIENT_IDS[0],
        )


def load_schema(path: Path) -> Schema:
    """Read the schema file at ``path``."""
    return load_toml(path, _SchemaFile).declared()


def parse_schema(text: str, *, origin: str) -> Schema:
    """Parse the TOML ``text`` of a schema; ``origin`` names the file in errors."""
    return parse_toml(text, _SchemaFile, origin=origin).declared()


def _canonical(column: Column) -> dict[str, Any]:
    """Return the facts of ``column`` that the digest covers."""
    return {
        "name": column.name,
        "column": column.column,
        # Adding 0.0 turns -0.0 into 0.0: equal bounds must have equal digests.
        "low": column.bounds.low + 0.0,
        "high": column.bounds.high + 0.0,
        "fill": column.fill + 0.0,
    }
