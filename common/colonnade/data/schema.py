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

A column that holds no numbers says what it holds::

    delimiter = ";"                  # of CSV: default ","; also decimal = ",", thousands = "."
    encoding = "cp1252"              # default UTF-8
    duplicates = "number"            # a header with a name twice: x, x (2); default: refused

    [[feature]]
    name = "ward"
    type = "category"                # one column of 0 and 1 a level
    levels = ["surgery", "medicine"] # public: agreed beforehand, not read off the rows
    other = "elsewhere"              # level of every other text; without it they are refused, or
                                     # missing with unknown = "missing"
    baseline = "medicine"            # has no column: others are compared with it; default: none
                                     # fill = "surgery" stands for a missing value; default: all 0

    [[feature]]
    name = "smoker"
    type = "bool"
    yes = ["J"]                      # default: yes, y, true, t, 1 in any case
    no = ["N"]                       # default: no, n, false, f, 0
    missing_indicator = true         # one more column: 1 where there was no value

    [[feature]]
    name = "admitted"
    type = "date"                    # days since reference = 2020-01-01; default: since low
    low = 2015-01-01
    high = 2025-12-31
    format = "%d.%m.%Y"              # default: ISO 8601

    [[feature]]
    name = "pain"
    type = "ordinal"                 # 0, 1, 2, or values = [0, 1, 5]
    levels = ["none", "some", "much"]

    [label]
    name = "outcome"
    type = "category"                # of two levels: the first, or the baseline, is 0; or a bool
    levels = ["alive", "dead"]

White space around a text does not count, case does.
"""

import hashlib
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from colonnade.core.config import Strict, Text, parse_toml, read_text
from colonnade.core.errors import BadInput
from colonnade.data.columns import MAX_NAME, Column, ColumnTable
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.data.encoding import DEFAULT_MISSING, Encoding
from colonnade.data.kinds import NUMBER

__all__ = [
    "CLIENT_IDS",
    "DEFAULT_MISSING",
    "MAX_NAME",
    "ClientIds",
    "Column",
    "Schema",
    "load_schema",
    "parse_schema",
]

ClientIds = Literal["text", "integer", "exact"]
CLIENT_IDS: tuple[ClientIds, ...] = get_args(ClientIds)
"""The rules by which the ids of clients are compared; the first is the default."""


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
    dialect: Dialect = PLAIN

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """How each of ``columns`` becomes numbers."""
        return tuple(column.encoding(self.missing) for column in self.columns)

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
        if self.dialect != PLAIN:
            facts = asdict(self.dialect)
            if facts["duplicates"] == PLAIN.duplicates:
                del facts["duplicates"]  # as schemas had it before there was this key
            canonical["dialect"] = facts
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class _SchemaFile(Strict, frozen=True):
    id: Text | None = None
    client: Text | None = None
    client_ids: ClientIds | None = None
    missing: tuple[str, ...] = DEFAULT_MISSING
    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    duplicates: str = "refuse"
    feature: tuple[ColumnTable, ...] = ()
    label: ColumnTable | None = None

    def __post_init__(self) -> None:
        if not self.feature:
            raise ValueError("no features; declare each one in a [[feature]] table")
        if self.client_ids is not None and self.client is None:
            raise ValueError("client_ids: there is no client column; name it as client")
        encodings = self.declared().encodings
        names = Counter(name for each in encodings for name in {each.name, *each.names})
        if repeated := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"name: {repeated[0]!r} is used twice; rename one")

    def declared(self) -> Schema:
        return Schema(
            features=tuple(feature.declared() for feature in self.feature),
            label=None if self.label is None else self.label.declared(label=True),
            id=self.id,
            missing=self.missing,
            client=self.client,
            client_ids=self.client_ids or CLIENT_IDS[0],
            dialect=Dialect(
                self.delimiter, self.decimal, self.thousands, self.encoding, self.duplicates
            ),
        )


def load_schema(path: Path) -> Schema:
    """Read the schema file at ``path``."""
    return parse_schema(read_text(path), origin=str(path))


def parse_schema(text: str, *, origin: str) -> Schema:
    """Parse the TOML ``text`` of a schema; ``origin`` names the file in errors."""
    _refuse_drafts(text, origin)
    return parse_toml(text, _SchemaFile, origin=origin).declared()


def _refuse_drafts(text: str, origin: str) -> None:
    """Refuse what a draft leaves to a person, whom the parser's message would not help."""
    name = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if named := re.match(r"\s*name\s*=\s*(.+?)\s*(#|$)", line):
            name = named[1][:40]
        if left := re.match(r"\s*(\w+)\s*=\s*\?", line):
            raise BadInput(
                f"{origin}: line {number}: {left[1]} of {name} is still to be decided; write what "
                "is known of it without looking at the rows"
            )


def _canonical(column: Column) -> dict[str, Any]:
    """Return the facts of ``column`` that the digest covers."""
    facts: dict[str, Any] = {
        "name": column.name,
        "column": column.column,
        # Adding 0.0 turns -0.0 into 0.0: equal bounds must have equal digests.
        "low": column.bounds.low + 0.0,
        "high": column.bounds.high + 0.0,
        "fill": column.fill + 0.0,
    }
    if column.kind != NUMBER:
        facts["kind"] = msgspec.to_builtins(column.kind)
    if column.missing_indicator:
        facts["missing_indicator"] = True
    return facts
