"""How a person's id is written, so that two parties write the same one.

The rule is declared in the specification and applied at each party before the first message: the
time that it takes depends on ids, so it must not lie between two messages. An id may consist of
several columns. Each is brought into one form by itself, and the forms are joined with their
lengths, so that ("ab", "c") and ("a", "bc") are different people.
"""

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from colonnade.methods.alignment.refusals import RepeatedIds, UnusableIds

MAX_COLUMNS = 16
MAX_ID_BYTES = 4096
# Control and format characters: zero-width spaces, byte-order marks, directional marks.
_INVISIBLE = ("Cc", "Cf")
# What programs make of whole numbers that they take for floats.
_FRACTION = re.compile(r"(?<=\d)\.0\s*$")
_EXPONENT = re.compile(r"[+-]?\d+(\.\d+)?[eE][+-]?\d+")
PLAIN = "plain"


class UnicodeForm(enum.Enum):
    """Which of Unicode's normal forms a text is brought into."""

    NONE = "none"
    NFC = "NFC"
    NFKC = "NFKC"


class Repeated(enum.Enum):
    """What happens to a person who is listed more than once."""

    REFUSE = "refuse"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class IdColumn:
    """The rule for one column of an id.

    Parameters
    ----------
    form
        The normal form. NFKC also replaces compatibility characters, such as full-width digits.
    trim
        Remove white space and invisible characters at both ends, and make every run of white space
        within the text one space.
    fold_case
        Ignore case, by Unicode's full case folding.
    digits_only
        Keep decimal digits alone, of any script, written in ASCII. Leading zeros stay.
    number
        The same as a whole number: spreadsheets drop leading zeros and append ``.0``. What has an
        exponent has lost digits and is no id.
    """

    form: UnicodeForm = UnicodeForm.NFKC
    trim: bool = True
    fold_case: bool = False
    digits_only: bool = False
    number: bool = False

    def apply(self, raw: str) -> str:
        r"""Return the one form of ``raw``; the empty text if nothing is left.

        Examples
        --------
        >>> IdColumn(fold_case=True).apply("\ufeff  Straße\u00a0 7 ")
        'strasse 7'
        >>> IdColumn(digits_only=True).apply("NHS 943-476 5919")
        '9434765919'
        >>> {IdColumn(number=True).apply(each) for each in ("P-00417", "417", "417.0")}
        {'417'}
        """
        text = self._formed(raw)
        if self.number:
            text = "" if _EXPONENT.fullmatch(text.strip()) else _FRACTION.sub("", text)
            return _digits(text).lstrip("0") or _digits(text)[:1]
        if self.digits_only:
            return _digits(text)
        if self.fold_case:
            # Folding can leave the normal form, and the form can bring letters that fold.
            text = self._formed(self._formed(text.casefold()).casefold())
        return _trimmed(text) if self.trim else text

    def _formed(self, text: str) -> str:
        return (
            text
            if self.form is UnicodeForm.NONE
            else unicodedata.normalize("NFC" if self.form is UnicodeForm.NFC else "NFKC", text)
        )


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(each)) for each in text if each.isdecimal())


def _trimmed(text: str) -> str:
    first, last = 0, len(text)
    while first < last and _at_edge(text[first]):
        first += 1
    while last > first and _at_edge(text[last - 1]):
        last -= 1
    return " ".join(text[first:last].split())


def _at_edge(each: str) -> bool:
    return each.isspace() or unicodedata.category(each) in _INVISIBLE


@dataclass(frozen=True, slots=True)
class IdRule:
    """How ids are made from columns, and what happens to repeated ones."""

    columns: tuple[IdColumn, ...] = (IdColumn(),)
    repeated: Repeated = Repeated.REFUSE

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= MAX_COLUMNS:
            raise ValueError(f"an id has 1 to {MAX_COLUMNS} columns")

    def encode(self, raw: Sequence[str | None]) -> bytes | None:
        """Return the bytes of one id, or None if a column is missing, empty or no text.

        Each column's UTF-8 bytes follow their length, so that joined columns stay apart.
        """
        if len(raw) != len(self.columns):
            raise ValueError("an id has as many values as the rule has columns")
        parts = []
        for column, value in zip(self.columns, raw, strict=True):
            text = "" if value is None else column.apply(value)
            try:
                part = text.encode()
            except UnicodeEncodeError:  # half of a surrogate pair is no character
                return None
            if not 1 <= len(part) <= MAX_ID_BYTES:
                return None
            parts.append(len(part).to_bytes(4, "big") + part)
        return b"".join(parts)


_NAMED: dict[str, dict[str, object]] = {
    PLAIN: {},
    "fold-case": {"fold_case": True},
    "digits-only": {"digits_only": True},
    "number": {"number": True},
    "no-trim": {"trim": False},
    "nfc": {"form": UnicodeForm.NFC},
    "as-is": {"form": UnicodeForm.NONE, "trim": False},
}
RULES = tuple(_NAMED)


def named_rule(columns: Sequence[str], repeated: str) -> IdRule:
    """Return the rule that texts name: for each id column, names of `RULES` joined by commas.

    Examples
    --------
    >>> named_rule(["fold-case, nfc"], "refuse").columns[0].apply("Zoë")
    'zoë'
    """
    found = []
    for text in columns:
        settings: dict[str, object] = {}
        for name in (part.strip() for part in text.split(",")):
            if name not in _NAMED:
                raise ValueError(f"no rule {name!r}; the rules are {', '.join(RULES)}")
            settings |= _NAMED[name]
        found.append(IdColumn(**settings))  # type: ignore[arg-type]
    return IdRule(tuple(found), Repeated(repeated))


@dataclass(frozen=True, slots=True)
class PreparedIds:
    """A party's list, ready to be aligned.

    ``ids[i]`` is the id of row ``index[i]`` of the source. ``unusable`` rows have no id and
    ``repeated`` rows name someone who was listed before; both are left out.
    """

    ids: tuple[bytes, ...]
    index: tuple[int, ...]
    unusable: int = 0
    repeated: int = 0


def prepare(rows: Iterable[Sequence[str | None]], rule: IdRule) -> PreparedIds:
    """Return the distinct ids of a source's rows; refuse repeated ones unless the rule allows them.

    Messages say how many rows are concerned, never which ids.
    """
    seen: dict[bytes, int] = {}
    unusable = repeated = 0
    for number, row in enumerate(rows):
        encoded = rule.encode(row)
        if encoded is None:
            unusable += 1
        elif encoded in seen:
            repeated += 1
        else:
            seen[encoded] = number
    if repeated and rule.repeated is Repeated.REFUSE:
        raise RepeatedIds(
            f"{repeated} rows name a person who is listed in an earlier row; remove them, or "
            'write repeated = "first" in every policy\'s [[align]]'
        )
    if not seen:
        raise UnusableIds(
            f"none of {unusable} rows has an id that can be used; check the id columns and the rule"
        )
    return PreparedIds(tuple(seen), tuple(seen.values()), unusable, repeated)
