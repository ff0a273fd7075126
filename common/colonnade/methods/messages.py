"""Strict decoding, for the codecs of all methods.

A field or a choice that this program does not know might matter for privacy, so it is refused, at
the coordinator and at every party.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage
from colonnade.methods.base import Unit
from colonnade.methods.problem import Labels, Loss
from colonnade.v1 import job_pb2

M = TypeVar("M", bound=Message)
V = TypeVar("V")


def read(kind: type[M], body: bytes, what: str) -> M:
    """Decode a message of ``kind``, or refuse ``what`` with a `BadMessage`."""
    try:
        message = kind.FromString(body)
    except DecodeError:
        raise BadMessage(f"{what} is no {kind.DESCRIPTOR.name} message") from None
    refuse_unknown(message, what)
    return message


def refuse_unknown(message: Message, what: str) -> None:
    """Refuse a message with fields that this program does not know."""
    before = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != before:
        raise BadMessage(f"{what} has fields that this program does not know; update it")


def read_task(body: bytes, *fields: str) -> job_pb2.TaskBody:
    """Decode a task that asks for one of ``fields``, or refuse it."""
    message = read(job_pb2.TaskBody, body, "a task")
    if message.WhichOneof("task") not in fields:
        raise BadMessage(
            "a task asks for nothing that this job knows; a newer coordinator needs a newer party"
        )
    return message


def int64s(values: Any) -> IntArray:
    """Return numbers that protobuf has read as 64-bit integers, which numpy would else wrap."""
    return np.array(values, np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Choices(Generic[V]):
    """A closed list of choices, by their numbers in messages."""

    values: Mapping[int, V]

    def read(self, number: int) -> V:
        """Return the choice; `KeyError` if it is open or unknown."""
        return self.values[number]

    def write(self, value: V) -> Any:
        """Return the number of a choice."""
        return next(number for number, found in self.values.items() if found == value)


UNITS = Choices({job_pb2.UNIT_RECORD: Unit.RECORD, job_pb2.UNIT_CLIENT: Unit.CLIENT})
LABELS = Choices({job_pb2.LABELS_SHARED: Labels.SHARED, job_pb2.LABELS_SKETCHED: Labels.SKETCHED})
LOSSES = Choices({job_pb2.LOSS_SQUARED: Loss.SQUARED, job_pb2.LOSS_LOGISTIC: Loss.LOGISTIC})


def same_numbers(message: type[Message], spec: type[Any]) -> tuple[str, ...]:
    """Return the numbers that a message and a specification have under the same names."""
    fields = {field.name for field in dataclasses.fields(spec)}
    other = (FieldDescriptor.TYPE_ENUM, FieldDescriptor.TYPE_MESSAGE)
    return tuple(
        field.name
        for field in message.DESCRIPTOR.fields
        if field.name in fields and field.type not in other
    )


def copied(source: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return attributes by name."""
    return {name: getattr(source, name) for name in names}
