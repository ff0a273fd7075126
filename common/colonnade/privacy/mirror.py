"""The head of a ledger's chain in a file of its own, so that a shortened ledger is noticed."""

import errno
import hashlib
import os
import struct
from pathlib import Path

from colonnade.privacy.state import Head


class HeadMirror:
    """The head of the chain in a file of two slots, written in turn.

    A write torn by a power loss damages one slot; the other still holds the head before it, which
    is what was durable. Both damaged means that the file was tampered with or lost.
    """

    _SLOT = 4096
    _MAGIC = b"COLNHED2"
    _FORMAT = ">8sQQ32s16sQQ"  # the sum over all accounts has no bound that 64 bits would hold

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._turn, self.head = self._newest(self._file)

    @classmethod
    def read(cls, path: Path) -> Head | None:
        """Return the head without opening the mirror for writing; None if it is damaged."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return cls._newest(file)[1]
        finally:
            os.close(file)

    @classmethod
    def _newest(cls, file: int) -> tuple[int, Head | None]:
        slots = (cls._read(file, slot) for slot in (0, 1))
        whole = [(turn, head) for turn, head in slots if head is not None]
        return max(whole, key=lambda each: each[0], default=(0, None))

    @classmethod
    def create(cls, path: Path, head: Head) -> None:
        """Make the file with both slots filled."""
        mirror = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(mirror, cls._slot(1, head) + cls._slot(2, head), 0)
            os.fsync(mirror)
        finally:
            os.close(mirror)

    @classmethod
    def _slot(cls, turn: int, head: Head) -> bytes:
        spent = head.spent.to_bytes(16, "big")
        caps = head.cap, head.highest
        fields = struct.pack(cls._FORMAT, cls._MAGIC, turn, head.seq, head.chain_hash, spent, *caps)
        return (fields + hashlib.sha256(fields).digest()).ljust(cls._SLOT, b"\0")

    @classmethod
    def _read(cls, file: int, slot: int) -> tuple[int, Head | None]:
        block = os.pread(file, cls._SLOT, slot * cls._SLOT)
        size = struct.calcsize(cls._FORMAT)
        fields, check = block[:size], block[size : size + 32]
        if len(block) != cls._SLOT or hashlib.sha256(fields).digest() != check:
            return 0, None
        magic, turn, seq, chain_hash, spent, *caps = struct.unpack(cls._FORMAT, fields)
        if magic != cls._MAGIC:
            return 0, None
        return turn, Head(seq, chain_hash, int.from_bytes(spent, "big"), *caps)

    def write(self, head: Head, *, force: bool) -> None:
        """Write ``head`` over the older slot; force it to disk before a release."""
        self._turn += 1
        self._put(self._slot(self._turn, head), ((self._turn - 1) % 2) * self._SLOT)
        if force:
            self._sync()
        self.head = head

    def _put(self, block: bytes, offset: int) -> None:
        if os.pwrite(self._file, block, offset) != len(block):
            raise OSError(errno.ENOSPC, "the mirror was not written whole")

    def _sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
