"""Text from elsewhere, made safe to print."""

import re
from collections.abc import Sequence
from typing import Any

# Where a spreadsheet may see a formula begin: at the start of a cell, and after what it may take
# for the end of one; OWASP's list of characters, with their wide forms.
_FORMULA = re.compile(r"(^|[;,|\t\r\n])(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r])")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MAX_NAMES = 20


def printable(text: str) -> str:
    """Return ``text`` with all that is not printable escaped.

    The result is one line, and nothing in it moves a terminal's cursor, colours what follows, turns
    the direction of writing or looks like the beginning of another line.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def printable_document(value: Any) -> Any:
    """Return a document of JSON's types with every text in it, keys included, printable."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {printable(key): printable_document(each) for key, each in value.items()}
        case list():
            return [printable_document(each) for each in value]
        case _:
            return value


def inert(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    An apostrophe is put before what could begin one (OWASP, "CSV Injection"); numbers stay as they
    are.
    """
    if _NUMBER.fullmatch(cell):
        return cell
    return _FORMULA.sub(r"\1'", cell)


def listed(names: Sequence[str]) -> str:
    """Return names for a message, the first twenty of them."""
    more = len(names) - _MAX_NAMES
    shown = ", ".join(repr(name) for name in names[:_MAX_NAMES])
    return shown + (f" and {more} more" if more > 0 else "")


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count and the noun that goes with it."""
    return f"{count} {one if count == 1 else many or one + 's'}"
