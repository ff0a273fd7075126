"""A file layer under SQLite and the mirror that tells a hook of every write and sync."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import apsw

from colonnade.ledger.storage.files import LedgerFiles, sync_path
from colonnade.ledger.storage.mirror import HeadMirror
from colonnade.ledger.storage.sqlite import SqliteStorage


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes written to a file; an empty write of size ``-1`` at ``offset`` cuts the file there."""

    file: str
    offset: int
    data: bytes
    cuts: bool = False


@dataclass(frozen=True, slots=True)
class Sync:
    """Everything written to a file before this is on the disk after it."""

    file: str


Operation: TypeAlias = Write | Sync
Hook: TypeAlias = Callable[[Operation], None]


class HookedFile(apsw.VFSFile):
    """A file that calls the hook before each operation."""

    def __init__(self, hook: Hook, name: str | apsw.URIFilename, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._hook, self._name = hook, Path(path).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write."""
        self._hook(Write(self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Truncate."""
        self._hook(Write(self._name, newsize, b"", cuts=True))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Sync."""
        self._hook(Sync(self._name))
        super().xSync(flags)


class HookedVfs(apsw.VFS):
    """The default file layer with the hook in it."""

    def __init__(self, name: str, hook: Hook) -> None:
        self._hook = hook
        super().__init__(name, "")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open."""
        if name is None:
            return super().xOpen(name, flags)
        return HookedFile(self._hook, name, flags)


class HookedMirror(HeadMirror):
    """The mirror with the hook in it."""

    def __init__(self, path: Path, hook: Hook) -> None:
        self._hook, self._name = hook, path.name
        super().__init__(path)

    def _put(self, block: bytes, offset: int) -> None:
        self._hook(Write(self._name, offset, block))
        super()._put(block, offset)

    def _sync(self) -> None:
        self._hook(Sync(self._name))
        super()._sync()


def hooked_storage(files: LedgerFiles, hook: Hook) -> tuple[SqliteStorage, HookedVfs]:
    """Open the shipped storage on the hooked layer; keep the layer as long as the storage."""
    layer = HookedVfs("colonnade-hooked", hook)

    def sync(path: Path) -> None:
        hook(Sync(path.name))
        sync_path(path)

    storage = SqliteStorage(
        files, vfs="colonnade-hooked", mirror=lambda path: HookedMirror(path, hook), sync=sync
    )
    return storage, layer
