"""The line of an entry, which the hash chain covers: canonical, and read back strictly."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from colonnade.ledger.entries import KINDS, Entry, canonical

GENESIS = hashlib.sha256(b"colonnade ledger v1").digest()
LATEST = 253_402_300_799  # the last second of the year 9999: calendars end there


def _type_of(hint: Any) -> tuple[type, type | None]:
    """Return a field's type and, of a list, its elements'."""
    if get_origin(hint) is list:
        return list, get_args(hint)[0]
    return get_origin(hint) or hint, None


_TYPES: Mapping[type[Entry], Mapping[str, tuple[type, type | None]]] = {
    kind: {item.name: _type_of(get_type_hints(kind)[item.name]) for item in fields(kind)}
    for kind in KINDS.values()
}


def entry_time(reading: float) -> int:
    """Return the clock's reading as the time of an entry: the nearest that can be read back.

    An entry's time is what the machine's clock said, for people. Entries are ordered by their
    places and no rule looks at times, so a clock that is wrong (before 1970, beyond 9999, set
    back, not a number) neither stops a ledger nor makes it unreadable.
    """
    return 0 if math.isnan(reading) else int(min(max(reading, 0.0), LATEST))


def line_of(entry: Entry, *, seq: int, time: int) -> str:
    """Return the canonical line of ``entry`` at place ``seq``, written at Unix second ``time``."""
    if not 0 <= time <= LATEST:
        raise ValueError("an entry's time cannot be read back")
    wanted = _TYPES[type(entry)]
    values = {name: getattr(entry, name) for name in wanted}
    if not all(_fits(value, wanted[name]) for name, value in values.items()):
        raise ValueError("an entry has a field of the wrong type")  # it could not be read back
    return canonical({"seq": seq, "time": time, "type": entry.type, **values})


def entry_from_line(line: str) -> tuple[int, int, Entry]:
    """Read a line back as ``(seq, time, entry)``; `ValueError` unless it is canonical and whole."""
    values = json.loads(line)
    if not isinstance(values, dict) or canonical(values) != line:
        raise ValueError("an entry is not in canonical form")
    seq, time = values.pop("seq", None), values.pop("time", None)
    kind = KINDS.get(values.pop("type", ""))
    if type(seq) is not int or type(time) is not int or kind is None:
        raise ValueError("an entry lacks its place, time or type")
    if not 0 <= time <= LATEST:
        raise ValueError("an entry has a time that no clock shows")
    wanted = _TYPES[kind]
    if values.keys() != wanted.keys():
        raise ValueError("an entry has other fields than its type")
    if not all(_fits(value, wanted[name]) for name, value in values.items()):
        raise ValueError("an entry has a field of the wrong type")
    return seq, time, kind(**values)


def _fits(value: Any, wanted: tuple[type, type | None]) -> bool:
    """Return whether a field is of its type exactly: a boolean is no integer here."""
    outer, inner = wanted
    if inner is None:
        return type(value) is outer
    return type(value) is list and {type(each) for each in value} <= {inner}


def chain(previous: bytes, line: str) -> bytes:
    """Return the next hash of the chain."""
    return hashlib.sha256(previous + line.encode()).digest()
