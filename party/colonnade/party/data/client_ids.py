"""How the id of a client is written, so that one client has one account after every ingest.

Privacy: a client's budget is kept under its id. An id that a source writes in another way would
open a second budget for the same client, so ids are brought into one form by a rule that the schema
declares (`data.schema`). Ids that the rule takes for the same share one budget, which is the safe
side: both clients' rows together are protected as one client's.
"""

import re
import unicodedata
from decimal import Decimal

# A whole number or a float as programs print it. An exponent without a sign is no float's: ids in
# hexadecimal look like that.
_NUMBER = re.compile(r"[+-]?\d{1,400}(\.\d{0,400})?(e[+-]\d{1,3})?")
# From here on floats skip whole numbers, so that one written as a float may be its neighbour.
_LEAST_INEXACT = 2**53


def client_id(raw: str, rule: str) -> str | None:
    """Return the one form of an id under ``rule``, or None if it cannot be used under it.

    Examples
    --------
    >>> [client_id(raw, "text") for raw in ("7", " 7", "7.0", "007", "A  b")]
    ['7', '7', '7', '7', 'a b']
    >>> client_id("7.5", "text"), client_id("A1", "integer"), client_id("007", "exact")
    (None, None, '007')
    """
    if rule == "exact":
        text = unicodedata.normalize("NFC", raw).strip()
        return text if text.isprintable() else None
    text = _folded(raw)
    if _NUMBER.fullmatch(text):
        return _whole(text)
    return text if rule == "text" or not text else None


def _folded(raw: str) -> str:
    """Return ``raw`` without case, invisible characters, odd spaces and forms of compatibility."""
    spaced = " ".join(unicodedata.normalize("NFKC", raw).split())
    seen = "".join(each for each in spaced if unicodedata.category(each) not in ("Cc", "Cf"))
    return " ".join(unicodedata.normalize("NFKC", seen.casefold()).split())


def _whole(text: str) -> str | None:
    """Return a whole number in plain digits; None if it has a fraction or may have lost digits."""
    number = Decimal(text)
    if number != number.to_integral_value():
        return None
    plain = "." not in text and "e" not in text
    return str(int(number)) if plain or abs(number) < _LEAST_INEXACT else None
