"""How a text file of rows is written."""

import codecs
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """Describe how a CSV file is written; nothing of it is guessed from the rows.

    Parameters
    ----------
    delimiter
        Character between fields.
    decimal
        Mark before the fraction of a number.
    thousands
        Mark between groups of its digits; empty for none.
    encoding
        Of the text. A byte order mark of UTF-16 is noticed without it.
    duplicates
        What becomes of a name that the header has twice: "refuse" it, or "number" the later ones:
        ``glucose``, ``glucose (2)``.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    duplicates: str = "refuse"

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n\0' or self.delimiter.isalnum():
            raise ValueError('delimiter: must be one character such as ";", and no quote or letter')
        if self.decimal not in (".", ","):
            raise ValueError('decimal: must be "." or ","')
        if self.thousands not in ("", ".", ",", " ", "'", "_") or self.thousands == self.decimal:
            raise ValueError('thousands: must be another mark than decimal, such as "."')
        if self.duplicates not in ("refuse", "number"):
            raise ValueError('duplicates: must be "refuse" or "number"')
        try:
            known = codecs.lookup(self.encoding)
            "".encode(known.name)  # LookupError for what is no encoding of text
        except (LookupError, ValueError):
            raise ValueError('encoding: is not known; try "cp1252" or "utf-16"') from None

    def header(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of a header as columns are found by."""
        if self.duplicates == "refuse":
            return tuple(names)
        seen: Counter[str] = Counter()
        found = []
        for name in names:
            seen[name] += 1
            found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(found)

    @property
    def is_utf8(self) -> bool:
        """Whether the text can be read as it stands."""
        return codecs.lookup(self.encoding).name in ("utf-8", "ascii", "utf-8-sig")


PLAIN = Dialect()
"""Commas, decimal points, UTF-8."""
