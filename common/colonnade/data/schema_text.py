"""Declared columns as the TOML of a schema file."""

import datetime as dt
import json
from collections.abc import Iterator

from colonnade.data.columns import Column
from colonnade.data.kinds import Bool, Category, Date, Ordinal


def column_text(head: str, column: Column) -> str:
    """Return the block that declares ``column`` under ``head``, such as ``[[feature]]``.

    A label that is an ordinal of two levels is written as the category that it was.
    """
    lines = [head, *(f"{key} = {text}" for key, text in _keys(column, label=head == "[label]"))]
    return "\n".join(lines) + "\n"


def _keys(column: Column, *, label: bool) -> Iterator[tuple[str, str]]:
    yield "name", _text(column.name)
    if column.column != column.name:
        yield "column", _text(column.column)
    yield from _own(column, label=label)
    if column.missing_indicator:
        yield "missing_indicator", "true"


def _own(column: Column, *, label: bool) -> Iterator[tuple[str, str]]:
    kind, bounds = column.kind, column.bounds
    if isinstance(kind, Category):
        yield "type", '"category"'
        yield "levels", _texts(kind.levels)
        for key in ("other", "baseline", "fill"):
            if getattr(kind, key):
                yield key, _text(getattr(kind, key))
        if kind.unknown:
            yield "unknown", '"missing"'
    elif isinstance(kind, Ordinal):
        yield "type", '"category"' if label else '"ordinal"'
        yield "levels", _texts(kind.levels)
        if kind.values:
            yield "values", f"[{', '.join(map(repr, kind.values))}]"
        if kind.unknown:
            yield "unknown", '"missing"'
        if column.fill in kind.scale:
            yield "fill", _text(kind.levels[kind.scale.index(column.fill)])
    elif isinstance(kind, Bool):
        yield "type", '"bool"'
        if kind.yes:
            yield "yes", _texts(kind.yes)
            yield "no", _texts(kind.no)
        if column.fill in (0.0, 1.0):
            yield "fill", "true" if column.fill else "false"
    elif isinstance(kind, Date):
        yield "type", '"date"'
        yield "reference", str(kind.reference)
        for key, days in (("low", bounds.low), ("high", bounds.high)):
            yield key, str(kind.reference + dt.timedelta(days))
        if column.fill != bounds.middle:
            yield "fill", str(kind.reference + dt.timedelta(column.fill))
        if kind.format:
            yield "format", _text(kind.format)
    else:
        yield "low", repr(bounds.low)
        yield "high", repr(bounds.high)
        yield "fill", repr(column.fill)


def _text(text: str) -> str:
    # Basic strings of TOML are those of JSON, but for one character that JSON may leave as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _texts(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, texts))}]"
