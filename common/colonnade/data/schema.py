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
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds

DEFAULT_MISSING = ("", "NA", "NaN", "null")

CLIENT_IDS = ("text", "integer", "exact")
"""The rules by which the ids of clients are compared; the first is the default."""

_SCHEMA_KEYS = ("id", "client", "client_ids", "missing", "feature", "label")
_COLUMN_KEYS = ("name", "column", "low", "high", "fill")

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
    client_ids: str = CLIENT_IDS[0]

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


def load_schema(path: Path) -> Schema:
    """Read the schema file at ``path``."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; save the schema as UTF-8") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot read the schema: {error.strerror}") from None
    return parse_schema(text, origin=str(path))


def parse_schema(text: str, *, origin: str) -> Schema:
    """Parse the TOML ``text`` of a schema; ``origin`` names the file in errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{origin}: not valid TOML: {reason}") from None
    _refuse_unknown(document, _SCHEMA_KEYS, where=origin)
    blocks = document.get("feature", [])
    if not isinstance(blocks, list) or not blocks:
        raise BadInput(f"{origin}: no features; declare each one in a [[feature]] block")
    label = document.get("label")
    schema = Schema(
        features=tuple(
            _parse_column(block, where=f"{origin}: feature {number}")
            for number, block in enumerate(blocks, start=1)
        ),
        label=None if label is None else _parse_column(label, where=f"{origin}: label"),
        id=_parse_text(document, "id", where=origin) if "id" in document else None,
        missing=_parse_missing(document, where=origin),
        client=_parse_text(document, "client", where=origin) if "client" in document else None,
        client_ids=_parse_client_ids(document, where=origin),
    )
    _refuse_duplicates(schema.columns, where=origin)
    return schema


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


def _parse_column(block: object, *, where: str) -> Column:
    if not isinstance(block, dict):
        raise BadInput(f"{where}: must be a table; write [[feature]] or [label] above its keys")
    name = _parse_text(block, "name", where=where)
    if len(name) > MAX_NAME or not name.isprintable():
        raise BadInput(f"{where}: key 'name': must have 1 to {MAX_NAME} printable characters")
    where = f"{where} ({name!r})"
    _refuse_unknown(block, _COLUMN_KEYS, where=where)
    low = _parse_number(block, "low", where=where)
    high = _parse_number(block, "high", where=where)
    try:
        bounds = Bounds(low, high)
    except ValueError as error:
        raise BadInput(f"{where}: key 'low': {error}; have low = {low}, high = {high}") from None
    fill = _parse_number(block, "fill", where=where) if "fill" in block else bounds.middle
    if not low <= fill <= high:
        raise BadInput(f"{where}: key 'fill': must lie within [{low}, {high}], not {fill}")
    column = _parse_text(block, "column", where=where) if "column" in block else name
    return Column(name=name, column=column, bounds=bounds, fill=fill)


def _parse_text(block: Mapping[str, Any], key: str, *, where: str) -> str:
    if key not in block:
        raise BadInput(f'{where}: key {key!r} is missing; add {key} = "..."')
    value = block[key]
    if not isinstance(value, str) or not value:
        raise BadInput(f"{where}: key {key!r}: must be a non-empty text in quotes")
    return value


def _parse_number(block: Mapping[str, Any], key: str, *, where: str) -> float:
    if key not in block:
        raise BadInput(f"{where}: key {key!r} is missing; add {key} = <number>")
    value = block[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{where}: key {key!r}: must be a number, without quotes")
    try:
        return float(value)
    except OverflowError:
        raise BadInput(f"{where}: key {key!r}: too large for a 64-bit float") from None


def _parse_client_ids(document: Mapping[str, Any], *, where: str) -> str:
    if "client_ids" not in document:
        return CLIENT_IDS[0]
    if "client" not in document:
        raise BadInput(f"{where}: key 'client_ids': there is no client column; name it as client")
    rule = _parse_text(document, "client_ids", where=where)
    if rule not in CLIENT_IDS:
        raise BadInput(f"{where}: key 'client_ids': must be one of {', '.join(CLIENT_IDS)}")
    return rule


def _parse_missing(document: Mapping[str, Any], *, where: str) -> tuple[str, ...]:
    tokens = document.get("missing", list(DEFAULT_MISSING))
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BadInput(f'{where}: key \'missing\': must be a list of texts such as ["", "NA"]')
    return tuple(tokens)


def _refuse_unknown(block: Mapping[str, Any], known: Sequence[str], *, where: str) -> None:
    for key in block:
        if key not in known:
            raise BadInput(f"{where}: unknown key {key!r}; known keys: {', '.join(known)}")


def _refuse_duplicates(columns: Sequence[Column], *, where: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise BadInput(f"{where}: key 'name': {column.name!r} is used twice; rename one")
        seen.add(column.name)
