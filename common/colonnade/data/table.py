"""A party's columns on disk: integers, column-major, memory-mapped.

Layout, all little-endian::

    magic (8 bytes) | version (4) | header length (4) | header, canonical JSON | SHA-256 so far
    zeros up to a page | one column after another, each padded with zeros to 64 bytes

The coarse table (``GRID``, ``int16``) is what every job reads; the fine one (``FINE_GRID``,
``int32``) lies beside it for quantising again under tighter bounds. Both are data: they stay
with the party.
"""

import hashlib
import os
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, grid_dtype
from colonnade.data.table_header import TableHeader, read_header

COARSE_NAME = "coarse.table"
FINE_NAME = "fine.table"

_CHUNK_VALUES = 2**20  # that are hashed and checked while they are in cache


@dataclass(frozen=True, slots=True)
class Table:
    """Read a table file.

    Parameters
    ----------
    columns
        Features, shape ``(n_features, n_rows)``; each row is one contiguous feature. Read-only
        view of the mapped file.
    label
        The label, shape ``(n_rows,)``, or None.
    presence
        ``grid`` for people whom the party has and 0 for others; None if it has everybody.
    """

    path: Path
    header: TableHeader
    columns: AnyArray
    label: AnyArray | None
    presence: AnyArray | None = None

    @classmethod
    def open(cls, path: Path, *, grid: int = GRID) -> Self:
        """Map the table at ``path``, which must be on ``grid``."""
        try:
            with path.open("rb") as file:
                header = read_header(file, path)
                if header.grid != grid:
                    have, want = grid_dtype(header.grid).name, grid_dtype(grid).name
                    raise BadInput(f"{path}: holds {have} columns where {want} is needed")
                block = _map_columns(file, header)
        except (FileNotFoundError, NotADirectoryError):
            raise BadInput(
                f"{path.parent}: is no folder with an ingested table ({path.name} is not there); "
                "name the folder that 'colonnade party ingest' wrote"
            ) from None
        except OSError as error:
            raise BadInput(f"{path}: cannot read the table: {error.strerror}") from None
        n_features = [column.role for column in header.columns].count("feature")
        return cls(
            path,
            header,
            columns=block[:n_features],
            label=None if header.label is None else block[n_features],
            presence=block[-1] if header.has_presence else None,
        )

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return self.header.n_rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(column.name for column in self.header.columns if column.role == "feature")

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """Declared bounds of the features."""
        return tuple(column.bounds for column in self.header.columns if column.role == "feature")

    @property
    def fills(self) -> tuple[float, ...]:
        """What stands for a missing value of each feature, as declared."""
        return tuple(column.fill for column in self.header.columns if column.role == "feature")

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of each feature; empty for those that are in none."""
        return tuple(column.group for column in self.header.columns if column.role == "feature")

    @property
    def content_digest(self) -> str:
        """SHA-256 of the column bytes; a fact about the data, so it stays with the party."""
        return self.header.content_digest

    def verify(self) -> None:
        """Read all columns and check them against the header.

        Privacy: sensitivities rest on every entry being within ``+-grid``, so that is checked too.
        """
        digest = hashlib.sha256()
        last = [column for column in (self.label, self.presence) if column is not None]
        for column in (*self.columns, *last):
            for first in range(0, column.size, _CHUNK_VALUES):  # one pass over the disk
                part = column[first : first + _CHUNK_VALUES]
                digest.update(part.data)
                if not _within(part, self.header.grid):
                    raise BadInput(f"{self.path}: values off the grid; ingest the source again")
        if digest.hexdigest() != self.content_digest:
            raise BadInput(f"{self.path}: columns are damaged; ingest the source again")


def open_pair(folder: Path) -> tuple[Table, Table]:
    """Open the coarse and the fine table in ``folder`` and check that they belong together."""
    coarse = Table.open(folder / COARSE_NAME)
    fine = Table.open(folder / FINE_NAME, grid=FINE_GRID)
    # The version too: a column of middles has the same integers under any bounds.
    versions = {coarse.header.dataset_version, fine.header.dataset_version}
    if coarse.header.fine_digest != fine.content_digest or len(versions) > 1:
        raise BadInput(f"{folder}: tables are of different ingests; ingest the source again")
    return coarse, fine


class TableWriter:
    """Write a table, so that readers see the old file or the new one, whole.

    Use it as a context manager: ``append`` each column, or ``put`` parts of them in any order,
    then ``seal`` and ``publish``. Leaving early removes the temporary file, which is private to
    this user from its first byte.
    """

    def __init__(self, path: Path, header: TableHeader) -> None:
        self._path = path
        self._header = header
        self._digest = hashlib.sha256()
        self._n_written = 0
        self._put = np.zeros(len(header.columns), np.int64)  # rows of each column
        self._lock = threading.Lock()
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        self._temporary = Path(temporary)
        self._file = os.fdopen(fd, "wb")
        self._start = len(header.encode())  # written last; digests have a fixed length
        self._file.seek(self._start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._temporary.unlink(missing_ok=True)  # first: closing flushes, and may fail again
        self._file.close()

    @property
    def n_rows(self) -> int:
        """Number of rows that each column has."""
        return self._header.n_rows

    def append(self, values: AnyArray) -> None:
        """Write the next column."""
        dtype = grid_dtype(self._header.grid)
        if values.shape != (self._header.n_rows,) or values.dtype != dtype:
            raise ValueError(f"a column is {self._header.n_rows} values of {dtype.name}")
        if not _within(values, self._header.grid):
            raise ValueError("values off the grid")
        content = np.ascontiguousarray(values).data.cast("B")
        self._digest.update(content)
        self._file.write(content)
        self._file.write(bytes(self._header.stride_bytes - len(content)))
        self._n_written += 1

    def put(self, place: int, first: int, values: AnyArray) -> None:
        """Write rows ``first ..`` of the column at ``place``; threads may do so at the same time.

        Every row of every column is put once, and nothing is appended.
        """
        dtype, n_rows = grid_dtype(self._header.grid), self._header.n_rows
        inside = 0 <= place < self._put.size and 0 <= first <= first + values.size <= n_rows
        if values.ndim != 1 or values.dtype != dtype or not inside:
            raise ValueError(f"a part of a column is some of {n_rows} values of {dtype.name}")
        if values.size and not _within(values, self._header.grid):
            raise ValueError("values off the grid")
        content = np.ascontiguousarray(values).data.cast("B")
        start = self._start + place * self._header.stride_bytes
        write_at(self._file.fileno(), content, start + first * dtype.itemsize)
        with self._lock:
            self._put[place] += values.size

    def finish(self) -> str:
        """Return the content digest, once all columns are there."""
        columns, n_rows = self._header.columns, self._header.n_rows
        if self._n_written == len(columns):
            return self._digest.hexdigest()
        if self._n_written or (self._put != n_rows).any():
            done = self._n_written or int((self._put == n_rows).sum())
            raise ValueError(f"{done} of {len(columns)} columns written")
        # The padding after the last column.
        end = self._start + len(columns) * self._header.stride_bytes
        os.ftruncate(self._file.fileno(), end)
        digest = hashlib.sha256()
        with self._temporary.open("rb") as file:
            for column in _map_columns(file, self._header):
                for first in range(0, n_rows, _CHUNK_VALUES):
                    digest.update(column[first : first + _CHUNK_VALUES].data)
        self._digest, self._n_written = digest, len(columns)
        return digest.hexdigest()

    def seal(self, fine_digest: str | None = None) -> str:
        """Complete the temporary file on disk and return its content digest."""
        digest = self.finish()
        header = replace(self._header, content_digest=digest, fine_digest=fine_digest or digest)
        self._file.seek(0)
        self._file.write(header.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        return digest

    def publish(self) -> None:
        """Put the sealed file in its place, durably."""
        self._temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_at(file: int, content: memoryview, place: int) -> None:
    """Write all of ``content`` at ``place`` of an open file."""
    while content:
        done = os.pwrite(file, content, place)
        content, place = content[done:], place + done


def _within(values: AnyArray, grid: int) -> bool:
    # No abs(): it overflows at the least integer.
    return bool(values.min() >= -grid and values.max() <= grid)


def _map_columns(file: BinaryIO, header: TableHeader) -> AnyArray:
    """Map all columns, shape ``(n_columns, n_rows)``, read-only."""
    dtype = grid_dtype(header.grid)
    shape = (len(header.columns), header.stride_bytes // dtype.itemsize)
    block = np.memmap(file, dtype=dtype, mode="r", offset=len(header.encode()), shape=shape)
    # A plain view: slices of np.memmap are slow to make, and compiled kernels know ndarray only.
    return np.asarray(block)[:, : header.n_rows]
