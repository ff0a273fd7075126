"""The head of a ledger's chain in a file of its own, so that a shortened or copied one is noticed.

Kept outside the ledger's folder it also tells a ledger from its copies. Whoever has the ledger
open holds the file's lock (``flock``), and before each write finds there what it wrote last, in
the file that still has the mirror's name. Anything else was written by a copy.

What holds where: the lock excludes all processes of one machine, in containers too, and over NFS
those of others unless it is mounted with ``nolock`` or ``local_lock``. Where it does not hold the
comparison stops both copies at their next write, or on NFS when the client's cache has expired.
Copies that have a mirror each are noticed by the heads and receipts that a coordinator keeps.
"""

import enum
import errno
import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

from colonnade.core.errors import LedgerBusy
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import identity, try_lock


class MirrorTaken(OSError):
    """The mirror is not as this process left it: another one writes it, or it was replaced."""


class MirrorMark(enum.IntEnum):
    """Whether the ledgers that use a mirror may be opened."""

    LIVE = 0
    STOPPED = 1  # for good: it was restored or run twice
    REPLACED = 2  # by the ledger that a recovery made


class _Slot(NamedTuple):
    turn: int
    head: Head
    mark: MirrorMark


class HeadMirror:
    """The head of the chain in a file of two slots, written in turn.

    A write torn by a power loss damages one slot; the other still holds the head before it, which
    is what was durable. Both damaged means that the file was tampered with or lost.
    """

    _SLOT = 4096
    _MAGIC = b"COLNHED3"
    _FORMAT = ">8sQQ32s16sQQQ"  # the sum over all accounts has no bound that 64 bits would hold

    def __init__(self, path: Path) -> None:
        self._path, self._file = str(path), os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._load()

    def _load(self) -> None:
        """Read both slots; what does not fit its checksum counts as damaged."""
        self._known = self._found(self._file)
        whole = self._slots(self._known)
        self._turn = whole[-1].turn if whole else 0
        # Older first. After a second writer the two may be of different chains.
        self.heads = [slot.head for slot in whole]
        self.mark = max((slot.mark for slot in whole), default=MirrorMark.LIVE)

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
    def _slot(cls, turn: int, head: Head, mark: MirrorMark = MirrorMark.LIVE) -> bytes:
        spent = head.spent.to_bytes(16, "big")
        rest = head.cap, head.highest, mark
        fields = struct.pack(cls._FORMAT, cls._MAGIC, turn, head.seq, head.chain_hash, spent, *rest)
        return (fields + hashlib.sha256(fields).digest()).ljust(cls._SLOT, b"\0")

    @property
    def head(self) -> Head | None:
        """The newest head; None if both slots are damaged."""
        return self.heads[-1] if self.heads else None

    @classmethod
    def read(cls, path: Path) -> Head | None:
        """Return the newest head without opening the mirror for writing; None if it is damaged."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            slots = cls._slots(cls._found(file))
        finally:
            os.close(file)
        return slots[-1].head if slots else None

    @classmethod
    def _slots(cls, known: bytes) -> list[_Slot]:
        """Return the slots that fit their checksums, older first."""
        both = (cls._read(known[: cls._SLOT]), cls._read(known[cls._SLOT :]))
        return sorted(filter(None, both), key=lambda slot: slot.turn)

    @classmethod
    def _read(cls, block: bytes) -> _Slot | None:
        size = struct.calcsize(cls._FORMAT)
        fields, check = block[:size], block[size : size + 32]
        if hashlib.sha256(fields).digest() != check:
            return None
        magic, turn, seq, chain_hash, spent, cap, highest, mark = struct.unpack(cls._FORMAT, fields)
        if magic != cls._MAGIC or mark not in set(MirrorMark):
            return None
        head = Head(seq, chain_hash, int.from_bytes(spent, "big"), cap, highest)
        return _Slot(turn, head, MirrorMark(mark))

    def hold(self) -> None:
        """Take the file for this process as long as it is open, and read it again."""
        if not try_lock(self._file, self._path):
            raise LedgerBusy(
                f"the head mirror {self._path} is in use by a copy of this ledger; "
                "stop that process first, and keep one copy"
            )
        self._load()
        self._check()

    def write(self, head: Head, *, force: bool) -> None:
        """Write ``head`` over the older slot; force it to disk before a release.

        `MirrorTaken` unless the file is as this process left it.
        """
        self._check()
        self._next(head, MirrorMark.LIVE, force=force)

    def end(self, mark: MirrorMark, head: Head | None = None) -> None:
        """Mark the file, on disk: no ledger that uses it opens again.

        ``head`` goes beside the newest that is there, whoever wrote that, so that a recovery of
        either copy knows of both.
        """
        self._load()
        if (last := head or self.head) is not None:
            self._next(last, mark, force=True)

    def _next(self, head: Head, mark: MirrorMark, *, force: bool) -> None:
        self._turn += 1
        place = ((self._turn - 1) % 2) * self._SLOT
        block = self._slot(self._turn, head, mark)
        self._put(block, place)
        self._known = self._known[:place] + block + self._known[place + self._SLOT :]
        if force:
            self._sync()
        self.heads, self.mark = [*self.heads[-1:], head], mark

    def _check(self) -> None:
        """Fail if somebody else wrote the file or put another in its place."""
        held = os.fstat(self._file)
        if (
            identity(self._path) != (held.st_dev, held.st_ino)
            or self._found(self._file) != self._known
        ):
            raise MirrorTaken(errno.ESTALE, "the mirror was written or replaced by someone else")

    @classmethod
    def _found(cls, file: int) -> bytes:
        size = 2 * cls._SLOT
        return os.pread(file, size, 0).ljust(size, b"\0")

    def _put(self, block: bytes, offset: int) -> None:
        if os.pwrite(self._file, block, offset) != len(block):
            raise OSError(errno.ENOSPC, "the mirror was not written whole")

    def _sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file, which gives its lock free."""
        os.close(self._file)
