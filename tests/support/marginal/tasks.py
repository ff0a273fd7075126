"""What a party is asked: where the label is centred, in grid steps."""

import struct

from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import GRID

_TASK = struct.Struct("<q")


def task_to_bytes(centre: int) -> bytes:
    """Encode a task."""
    return _TASK.pack(centre)


def task_from_bytes(body: bytes) -> int:
    """Decode a task, or refuse it before anything is charged."""
    if len(body) != _TASK.size:
        raise BadMessage("a task has one number")
    (centre,) = _TASK.unpack(body)
    if not -GRID <= centre <= GRID:
        raise BadMessage("a task centres the label outside its bounds")
    return int(centre)
