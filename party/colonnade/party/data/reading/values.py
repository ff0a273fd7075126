"""SQL for a raw value, and its way from DuckDB into an encoding: the same for all who read files.

Statements are put together from our own names and positions only; texts of the user are bound as
parameters.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import Date, Kind, Number
from colonnade.party.data.reading.sources import Relation, is_number

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
NUMBERS = {*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "DECIMAL", "BOOLEAN"}
FLOATS = {"FLOAT", "DOUBLE"}
TEXTS = {"VARCHAR", "ENUM", '"NULL"'}
DATES = {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS"}


@dataclass(frozen=True, slots=True)
class Missing:
    """Texts that mean "no value", as parameters of a statement.

    Parameters
    ----------
    codes
        Those of the texts that are numbers: -999 also stands for -999.0 in a typed column.
    suffix
        Tells the parameters from those of other columns.
    """

    texts: tuple[str, ...]
    codes: tuple[float, ...]
    suffix: str = ""

    @classmethod
    def of(cls, texts: tuple[str, ...], *, suffix: str = "") -> "Missing":
        """Return the parameters for ``texts``."""
        codes = (float(text) for text in texts if is_number(text))
        return cls(texts, tuple(code for code in codes if not math.isnan(code)), suffix)

    def parameters(self, sql: str) -> dict[str, object]:
        """Return the values of the parameters that ``sql`` uses."""
        values = {
            f"missing{self.suffix}": list(self.texts),
            f"codes{self.suffix}": list(self.codes),
        }
        return {name: value for name, value in values.items() if f"${name}::" in sql}


def value_sql(relation: Relation, name: str, kind: Kind, missing: Missing) -> str:
    """Return SQL for a raw value.

    Of a number: NaN if it is missing, NULL if it is no number. Of another kind: its text, or NULL.
    """
    if isinstance(kind, Number):
        return _number_sql(relation, name, missing)
    position = relation.find(name)
    held = relation.types[position].partition("(")[0]
    if held not in NUMBERS | FLOATS | TEXTS | DATES or (held in DATES) > isinstance(kind, Date):
        raise BadInput(
            f"{relation.origin}: column {name!r} holds {held} values; convert it to text in a query"
        )
    cell = f"c{position}"
    if held in FLOATS:  # 3.0 is the level 3
        whole = f"CAST(CAST({cell} AS HUGEINT) AS VARCHAR)"
        is_whole = f"abs({cell}) < 1e15 AND {cell} = trunc({cell})"
        return f"CASE WHEN {is_whole} THEN {whole} ELSE CAST({cell} AS VARCHAR) END"
    return f"coalesce({cell}, '')" if relation.is_csv else f"CAST({cell} AS VARCHAR)"


def _number_sql(relation: Relation, name: str, texts: Missing) -> str:
    position = relation.find(name)
    kind = relation.types[position].partition("(")[0]
    if kind not in NUMBERS | FLOATS | TEXTS:
        raise BadInput(
            f"{relation.origin}: column {name!r} holds {kind} values; convert it to a number in a "
            "query, or declare its type"
        )
    cell = f"c{position}"
    plain = plain_sql(cell, relation.dialect) if kind in TEXTS else cell
    number = f"TRY_CAST({plain} AS DOUBLE)"
    nan = "CAST('nan' AS DOUBLE)"
    missing = f"{cell} IS NULL"
    if kind in TEXTS:
        text = f"coalesce({cell}, '')" if relation.is_csv else f"CAST({cell} AS VARCHAR)"
        missing = (
            f"{text} IS NULL OR list_contains($missing{texts.suffix}::VARCHAR[], trim({text}))"
        )
    # Casts come first because most values are numbers, and comparing texts is three times slower.
    value = f"coalesce({number}, CASE WHEN {missing} THEN {nan} END)"
    if not texts.codes:
        return value
    is_code = f"list_contains($codes{texts.suffix}::DOUBLE[], {number})"
    return f"CASE WHEN {is_code} THEN {nan} ELSE {value} END"


def holds_numbers(relation: Relation, name: str) -> bool:
    """Return whether a column's type allows nothing but numbers and missing values."""
    kind = relation.types[relation.find(name)].partition("(")[0]
    return kind in NUMBERS | FLOATS


def plain_sql(cell: str, dialect: Dialect) -> str:
    """Return SQL that writes a number with a decimal point; a number written otherwise is NULL."""
    if (dialect.decimal, dialect.thousands) == (PLAIN.decimal, PLAIN.thousands):
        return cell
    # Both marks are among a few that the dialect allows, so they can stand in a statement.
    decimal, thousands = dialect.decimal, dialect.thousands.replace("'", "''")
    whole = f"[0-9]{{1,3}}([{thousands}][0-9]{{3}})+|[0-9]+" if thousands else "[0-9]+"
    pattern = f"\\s*[+-]?(({whole})([{decimal}][0-9]*)?|[{decimal}][0-9]+)([eE][+-]?[0-9]+)?\\s*"
    bare = f"replace({cell}, '{thousands}', '')" if thousands else cell
    pointed = f"replace({bare}, '{decimal}', '.')"
    return f"CASE WHEN regexp_full_match({cell}, '{pattern}') THEN {pointed} END"


def texts_of(fetched: AnyArray) -> Iterator[str | None]:
    """Return fetched texts, None for NULL."""
    if not isinstance(fetched, np.ma.MaskedArray) or not np.ma.is_masked(fetched):
        return iter(np.ma.getdata(fetched).tolist())
    return iter(fetched.tolist())


def unknown_texts(name: str, encoding: Encoding, count: int, row: int) -> str:
    """Describe what is wrong with texts that an encoding does not know, without showing one."""
    what, fix = {
        "Number": ("no numbers", "correct them, or declare their 'type'"),
        "Bool": ("neither yes nor no", "declare them in 'yes', 'no' or 'missing'"),
        "Date": ("no dates", "correct them, or declare their 'format' or that they are 'missing'"),
        "Ordinal": ("no level", "declare them in 'levels' or 'missing', or unknown = \"missing\""),
        "Category": ("no level", "declare them in 'levels', 'other' or 'missing'"),
    }[type(encoding.kind).__name__]
    where = f"column {name!r} has {count} values that are {what}"
    return f"{where}, the first in data row {row}; {fix}"
