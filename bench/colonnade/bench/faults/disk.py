"""A party's disk in memory: what is written, what is synced, and what a power cut leaves.

The shipped storage of a ledger runs on it: SQLite through a file layer of its own, and the mirror.
A process that is killed leaves what it wrote, synced or not, to the next one. A power cut takes
what was not synced: each such write is there, missing, or torn at a sector, independently.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from colonnade.bench.faults.chance import Chance
from colonnade.ledger.state import Head
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.sqlite import SqliteStorage

_VFS = "colonnade-virtual"
_SECTOR = 512
_LOST, _TORN = 0.4, 0.6


class Died(BaseException):
    """Ends a simulated process where it is; nothing that catches `Exception` survives it."""


@dataclass(slots=True)
class VirtualFile:
    """A file as processes see it, and as the disk has it."""

    seen: bytearray
    durable: bytearray
    pending: list[tuple[int, bytes, bool]] = field(default_factory=list)  # offset, data, cuts

    def write(self, offset: int, data: bytes, *, cuts: bool = False) -> None:
        """Write, or cut the file at ``offset``."""
        _apply(self.seen, offset, data, cuts=cuts)
        self.pending.append((offset, data, cuts))

    def sync(self) -> None:
        """Have the disk hold everything."""
        for offset, data, cuts in self.pending:
            _apply(self.durable, offset, data, cuts=cuts)
        self.pending.clear()

    def cut_power(self, chance: Chance) -> None:
        """Keep, lose or tear what was not synced."""
        for offset, data, cuts in self.pending:
            fate = chance.share()
            if fate < _LOST:
                continue
            kept = data
            if fate < _TORN:
                kept = data[: chance.below(len(data) // _SECTOR + 1) * _SECTOR]
            _apply(self.durable, offset, kept, cuts=cuts)
        self.pending.clear()
        self.seen = bytearray(self.durable)


def _apply(content: bytearray, offset: int, data: bytes, *, cuts: bool) -> None:
    if cuts:
        del content[offset:]
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Disk:
    """The disk of one party; ``touched`` is called before every write and sync, and may raise."""

    def __init__(self, files: LedgerFiles, content: dict[str, bytes]) -> None:
        self.files_at, self.touched = files, _nothing
        self.alive = True
        self.files = {name: _file(body) for name, body in content.items()}
        files.folder.mkdir(parents=True, exist_ok=True)
        for path in (files.database, files.log, files.mirror):
            path.touch()  # the storage looks whether they are there
        _layer().disks[str(files.folder)] = self

    def cut_power(self, chance: Chance) -> None:
        """Leave what a power cut leaves."""
        for file in self.files.values():
            file.cut_power(chance)

    def sync(self, path: Path) -> None:
        """Force a whole file to the disk."""
        self._touch()
        if path.name in self.files:
            self.files[path.name].sync()

    def write(self, name: str, offset: int, data: bytes, *, cuts: bool = False) -> None:
        """Write to a file."""
        self._touch()
        self.files[name].write(offset, data, cuts=cuts)

    def _touch(self) -> None:
        if not self.alive:
            raise apsw.IOError("the process is dead")
        self.touched()

    def storage(self) -> SqliteStorage:
        """Open the shipped storage on this disk."""
        return SqliteStorage(
            self.files_at, vfs=_VFS, mirror=lambda path: _Mirror(path, self), sync=self.sync
        )

    def content(self) -> dict[str, bytes]:
        """Return what the disk would hold if the power went now and nothing unsynced survived."""
        return {name: bytes(file.durable) for name, file in self.files.items()}

    def image(self) -> "Image":
        """Return the ledger in what the disk holds."""
        return Image(self.content())

    def forget(self) -> None:
        """Let the disk go."""
        _layer().disks.pop(str(self.files_at.folder), None)


class Image:
    """The rows of a ledger in an image of its disk, read with nothing of the party's."""

    _FOLDER = Path("/nowhere/image")

    def __init__(self, content: dict[str, bytes]) -> None:
        self._content = content
        files = LedgerFiles(self._FOLDER)
        disk = Disk.__new__(Disk)
        disk.files_at, disk.touched, disk.alive = files, _nothing, True
        disk.files = {  # nobody looks at what is durable there
            name: VirtualFile(bytearray(body), bytearray()) for name, body in content.items()
        }
        _layer().disks[str(self._FOLDER)] = disk
        database = apsw.Connection(str(files.database), flags=apsw.SQLITE_OPEN_READWRITE, vfs=_VFS)
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._rows = list(database.execute("SELECT seq, line, hash FROM entry ORDER BY seq"))
            self._bodies = dict(database.execute("SELECT seq, bytes FROM body"))
        finally:
            database.close()
            disk.forget()

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield ``(seq, line, hash)`` in order."""
        return iter(self._rows)

    def body(self, seq: int) -> bytes | None:
        """Return the bytes kept with row ``seq``."""
        return self._bodies.get(seq)

    def witnessed(self) -> Head | None:
        """Return the head that the mirror knows."""
        return _Mirror.of(self._content[LedgerFiles(self._FOLDER).mirror.name])


class _Mirror(HeadMirror):
    """The shipped mirror on a virtual disk; its lock is the ledger's."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk, self._name = disk, path.name
        self._file: Any = disk.files[path.name]
        self._load()

    @classmethod
    def of(cls, content: bytes) -> Head | None:
        slots = cls._slots(content.ljust(2 * cls._SLOT, b"\0"))
        return slots[-1].head if slots else None

    def hold(self) -> None:
        self._load()

    def _check(self) -> None:
        return

    @classmethod
    def _found(cls, file: Any) -> bytes:
        return bytes(file.seen).ljust(2 * cls._SLOT, b"\0")

    def _put(self, block: bytes, offset: int) -> None:
        self._disk.write(self._name, offset, block)

    def _sync(self) -> None:
        self._disk.sync(Path(self._name))

    def close(self) -> None:
        return


class _Handle:
    """An open file, as SQLite sees it."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk, self._name, self._keeps_log = disk, name, 0
        self._file = disk.files[name]

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._file.seen[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.write(self._name, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.write(self._name, newsize, b"", cuts=True)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        self._disk.sync(Path(self._name))

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.seen)

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        if op != apsw.SQLITE_FCNTL_PERSIST_WAL:
            return False
        value = ctypes.c_int.from_address(pointer)
        if value.value < 0:
            value.value = self._keeps_log
        else:
            self._keeps_log = value.value
        return True

    def xLock(self, level: int) -> None:  # noqa: ARG002, N802
        return

    def xUnlock(self, level: int) -> None:  # noqa: ARG002, N802
        return

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return _SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        return


class _Layer(apsw.VFS):
    """The file layer that finds the disk by the folder of a path."""

    def __init__(self) -> None:
        self.disks: dict[str, Disk] = {}
        super().__init__(_VFS, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        disk = self.disks[str(path.parent)]
        disk.files.setdefault(path.name, _file(b""))
        flags[1] = flags[0]
        return _Handle(disk, path.name)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: ARG002, N802
        path = Path(pathname)
        return path.name in self.disks[str(path.parent)].files

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: ARG002, N802
        path = Path(filename)
        self.disks[str(path.parent)].files.pop(path.name, None)


_made: list[_Layer] = []


def _layer() -> _Layer:
    if not _made:
        _made.append(_Layer())
    return _made[0]


def _file(content: bytes) -> VirtualFile:
    return VirtualFile(bytearray(content), bytearray(content))


def _nothing() -> None:
    return
