"""Protobuf messages on the socket between a party's two processes: a length, then the message.

What comes from the other end is never believed: a frame that is too long, cut off or no message
ends the connection, and no more than one frame is held in memory.
"""

import struct
from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from colonnade.wire.limits import MAX_MESSAGE_BYTES

_LENGTH = struct.Struct(">I")
# One message of a session, and what stands around it.
MAX_FRAME_BYTES = MAX_MESSAGE_BYTES + 4096
READ_BYTES = 1 << 16

M = TypeVar("M", bound=Message)


class BrokenLink(Exception):
    """The other process went away, or sent what is no frame; nothing more is taken from it."""


def to_frame(message: Message) -> bytes:
    """Return a message as it goes over the socket."""
    body = message.SerializeToString()
    if len(body) > MAX_FRAME_BYTES:
        raise BrokenLink(f"a message of {len(body)} bytes is too large for the socket")
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Finds the messages in what comes over a socket, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def held(self) -> int:
        """How many bytes of a frame that has not ended are held."""
        return len(self._held)

    def take(self, data: bytes, kind: type[M]) -> Iterator[M]:
        """Yield the messages that ``data`` completes; raise `BrokenLink` at what is none."""
        self._held += data
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            if length > MAX_FRAME_BYTES:  # said before any of it is waited for
                raise BrokenLink(f"a frame of {length} bytes is too large")
            end = _LENGTH.size + length
            if len(self._held) < end:
                return
            body = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            try:
                message = kind.FromString(body)
            except DecodeError:
                raise BrokenLink("a frame holds no message") from None
            yield message
