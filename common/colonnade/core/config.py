"""Read TOML and JSON strictly: every key known, every value of its type, every path from the file.

A file's shape is a `Strict` structure. What does not fit is refused in one line,
``file: [table] key: what is wrong``, that says what is expected and never which value was found.
"""

import datetime as dt
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.inspect import AnyType, LiteralType, Type, UnionType, type_info

from colonnade.core.errors import BadInput, ColonnadeError

T = TypeVar("T")

Text = Annotated[str, Meta(min_length=1)]
Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Positive = Annotated[float, Meta(gt=0.0, lt=1e300)]  # floats end at 1e308
Whole = Annotated[int, Meta(ge=0, le=10**6)]
Count = Annotated[int, Meta(ge=1, le=10**6)]

_NAMES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of keys and values",
    "date": "a date such as 2030-12-31",
}


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hold a table of a file; a key that is not a field is refused."""


def load_toml(path: Path, kind: type[T]) -> T:
    """Read the TOML file at ``path`` as a ``kind``."""
    return parse_toml(read_text(path), kind, origin=str(path), folder=path.resolve().parent)


def parse_toml(text: str, kind: type[T], *, origin: str, folder: Path | None = None) -> T:
    """Parse TOML; errors name ``origin``, and relative paths start in ``folder``."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{origin}: not valid TOML: {reason}") from None
    return convert(document, kind, origin=origin, folder=folder)


def parse_json(text: str, *, origin: str, expected: str) -> object:
    """Parse JSON with no key twice and no NaN; errors say what was ``expected`` of ``origin``."""
    try:
        document: object = json.loads(
            text, object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        raise BadInput(f"{origin}: not valid JSON; give {expected}") from None
    return document


def convert(
    document: object,
    kind: type[T],
    *,
    origin: str,
    folder: Path | None = None,
    text_dates: bool = False,
) -> T:
    """Return a parsed document as a ``kind``; dates are texts where the format has none."""

    def to_path(_: type, value: object) -> Path:
        if not isinstance(value, str):
            raise ValueError(f"must be {_NAMES['str']}")
        return (folder or Path()) / value

    try:
        # A date of TOML is one; a text that looks like one is not.
        dates = () if text_dates else (dt.date,)
        return msgspec.convert(document, kind, builtin_types=dates, dec_hook=to_path)
    except msgspec.ValidationError as error:
        raise BadInput(f"{origin}: {_explain(str(error), kind, document)}") from None
    except UnicodeEncodeError:
        raise BadInput(f"{origin}: a text is not valid Unicode") from None
    except ColonnadeError as error:
        raise type(error)(f"{origin}: {error}") from None


def read_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text") from None


@contextmanager
def about(key: str) -> Iterator[None]:
    """Name ``key`` in what a check within the block refuses."""
    try:
        yield
    except (ValueError, ColonnadeError) as error:
        raise type(error)(f"{key}: {error}") from None


def _explain(message: str, kind: type, document: object) -> str:
    """Return msgspec's ``what - at `$.table[0].key``` as ``[table 1] key: what``."""
    what, _, path = message.partition(" - at `$")
    node, tables = _locate(path, type_info(kind), document)
    known = _keys(node)
    key = "" if known or not tables else tables.pop()
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", what):
        key, what = missing[1], "is missing"
    elif unknown := re.match(r"Object contains unknown field `(.*?)`?$", what, re.DOTALL):
        what = f"unknown key {unknown[1]!r}; known keys: {', '.join(known)}"
    elif isinstance(node, LiteralType):
        what = f"must be one of {', '.join(map(str, node.values))}"
    elif expected := re.match(r"Expected `(\w+)[^`]*`(?:, got .*)?(.*)", what):
        limit = expected[2].replace(" of length >= 1", " that is not empty")
        what = f"must be {_NAMES.get(expected[1], expected[1])}{limit}"
    elif what == "Number out of range":
        what = "must be a finite number"
    table = f"[{'.'.join(tables)}] " if tables else ""
    return f"{table}{key}: {what}" if key else f"{table}{what}"


def _locate(path: str, node: Type, document: object) -> tuple[Type, list[str]]:
    """Follow a path; return the type there, and the tables on the way by number and name."""
    tables = []
    for name, index in re.findall(r"\.(\w+)(?:\[(\d{1,9})\])?", path):
        node, document, table = _keys(node).get(name, AnyType()), _item(document, name), name
        if isinstance(node, UnionType):
            node = node.types[0]  # a type or None
        if index:
            node, document = getattr(node, "item_type", node), _item(document, int(index))
            table += f" {int(index) + 1}"
        if "name" in _keys(node) and isinstance(called := _item(document, "name"), str):
            table += f" {called[:40]!r}"
        tables.append(table)
    return node, tables


def _keys(node: Type) -> dict[str, Type]:
    """Return the keys of a table with their types; no keys of anything else."""
    return {field.encode_name: field.type for field in getattr(node, "fields", ())}


def _item(value: Any, key: str | int) -> Any:
    try:
        return value[key]
    except (LookupError, TypeError):
        return None


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
