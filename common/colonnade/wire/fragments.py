"""Messages of a session that are larger than one may be: cut into pieces, and put together again.

A piece is sent like a message of its own; the pieces of one follow each other. Nothing is kept of a
message whose session ended amid it: it is made again and sent from the beginning, the same bytes.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError

from colonnade.core.errors import BadInput
from colonnade.v1 import federation_pb2 as pb

# Of a piece, and of a whole message: what a session's other end may make this one hold.
FRAGMENT_BYTES = 4 << 20
MAX_WHOLE_BYTES = 64 << 20

M = TypeVar("M", pb.AttachRequest, pb.AttachResponse)


def fragments(message: M) -> Iterator[M]:
    """Yield the message, or its pieces if it is large."""
    if message.ByteSize() <= FRAGMENT_BYTES:
        yield message
        return
    body, kind = message.SerializeToString(), type(message)
    count = -(-len(body) // FRAGMENT_BYTES)
    for index in range(count):
        part = body[index * FRAGMENT_BYTES : (index + 1) * FRAGMENT_BYTES]
        yield kind(fragment=pb.Fragment(index=index, count=count, body=part))


class Assembly(Generic[M]):
    """Puts the pieces of one direction of a session together."""

    def __init__(self, kind: type[M]) -> None:
        self._kind: type[M] = kind
        self._parts: list[bytes] = []

    def take(self, message: M) -> M | None:
        """Return a whole message, or None while pieces are missing; refuse what is no piece."""
        if not message.HasField("fragment"):
            if self._parts:
                raise BadInput("a message came amid the pieces of another")
            return message
        piece = message.fragment
        if piece.index != len(self._parts) or not piece.index < piece.count:
            raise BadInput("the pieces of a message are out of order")
        if not 1 < piece.count <= MAX_WHOLE_BYTES // FRAGMENT_BYTES:
            raise BadInput(f"a message of {piece.count} pieces is too large")
        if len(piece.body) > FRAGMENT_BYTES:
            raise BadInput("a piece of a message is too large")
        self._parts.append(piece.body)
        if len(self._parts) < piece.count:
            return None
        body, self._parts = b"".join(self._parts), []
        return self._whole(body)

    def _whole(self, body: bytes) -> M:
        try:
            whole: M = self._kind.FromString(body)
        except DecodeError:
            raise BadInput("the pieces of a message do not make one") from None
        if whole.HasField("fragment"):
            raise BadInput("a piece of a message holds another piece")
        return whole
