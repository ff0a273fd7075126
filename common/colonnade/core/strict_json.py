"""Read JSON strictly: every key known and present, each of its kind, none twice, no NaN."""

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from colonnade.core.errors import BadInput

Kind: TypeAlias = Literal["text", "number", "flag", "list", "object"]


def parse_json(text: str, *, origin: str, expected: str) -> object:
    """Parse ``text``; errors name ``origin`` and say what was ``expected``."""
    try:
        document: object = json.loads(
            text, object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        raise BadInput(f"{origin}: not valid JSON; give {expected}") from None
    return document


def read_object(value: object, kinds: Mapping[str, Kind], *, where: str) -> dict[str, Any]:
    """Check that ``value`` is an object with exactly the keys of ``kinds``; numbers as floats."""
    if not isinstance(value, dict):
        raise BadInput(f"{where}: must be a JSON object")
    for key in value:
        if key not in kinds:
            raise BadInput(f"{where}: unknown key {key!r}; known keys: {', '.join(kinds)}")
    for key in kinds:
        if key not in value:
            raise BadInput(f"{where}: key {key!r} is missing")
    return {key: _read(value[key], kind, where=f"{where}: {key!r}") for key, kind in kinds.items()}


def _read(value: object, kind: Kind, *, where: str) -> object:
    if kind == "number":
        return _read_number(value, where=where)
    types = {"text": str, "flag": bool, "list": list, "object": dict}
    if not isinstance(value, types[kind]) or value == "":
        names = {"text": "a non-empty text", "flag": "true or false"}
        raise BadInput(f"{where} must be {names.get(kind, f'a JSON {kind}')}")
    return value


def _read_number(value: object, *, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise BadInput(f"{where} must be a finite number")


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
