"""Between encodings of raw columns and their messages; all of it is public by declaration."""

from typing import Any

import msgspec

from colonnade.data.encoding import Encoding
from colonnade.data.kinds import Bool, Category, Date, Ordinal
from colonnade.v1 import job_pb2

_FIELDS = {Bool: "bool_kind", Date: "date_kind", Ordinal: "ordinal_kind", Category: "category_kind"}
_TAGS = {field: str(kind.__struct_config__.tag) for kind, field in _FIELDS.items()}
MAX_MISSING = 100


def encoding_to_proto(encoding: Encoding) -> job_pb2.Encoding:
    """Encode how a raw column becomes numbers."""
    facts = msgspec.to_builtins(encoding)
    kind = facts.pop("kind")
    kind.pop("type")
    if (field := _FIELDS.get(type(encoding.kind))) is not None:
        # Present even if all of it is empty: its presence is what tells the kind.
        facts[field] = kind
    message = job_pb2.Encoding(**facts)
    if field is not None:
        getattr(message, field).SetInParent()
    return message


def encoding_from_proto(message: job_pb2.Encoding) -> Encoding:
    """Decode how a raw column becomes numbers; `ValueError` unless it is usable."""
    facts: dict[str, Any] = {
        "name": message.name,
        "column": message.column,
        "missing": list(message.missing),
        "missing_indicator": message.missing_indicator,
    }
    if (field := message.WhichOneof("kind")) is not None:
        held = getattr(message, field)
        facts["kind"] = {"type": _TAGS[field]} | {
            each.name: _value(getattr(held, each.name)) for each in held.DESCRIPTOR.fields
        }
    if len(message.missing) > MAX_MISSING:
        raise ValueError(f"a column has more than {MAX_MISSING} texts for a missing value")
    try:
        return msgspec.convert(facts, Encoding)
    except msgspec.ValidationError as error:
        raise ValueError(f"an encoding cannot be used: {error}") from None


def _value(held: Any) -> Any:
    return held if isinstance(held, str | bool) else list(held)
