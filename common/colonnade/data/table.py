"""A party's columns on disk: integers, column-major, memory-mapped.

Layout, all little-endian::

    magic (8 bytes) | version (4) | header length (4) | header, canonical JSON | SHA-256 so far
    zeros up to a page | one column after another, each padded with zeros to 64 bytes

The coarse table (``GRID``, ``int16``) is what every job reads; the fine one (``FINE_GRID``,
``int32``) lies beside it for quantising again under tighter bounds. Both are data: they stay
with the party.
"""

import hashlib
import json
import os
import re
import struct
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, Self

import msgspec
import numpy as np

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, grid_dtype
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import Bool, Category, Ordinal
from colonnade.data.schema import CLIENT_IDS

COARSE_NAME = "coarse.table"
FINE_NAME = "fine.table"

MAGIC = b"\x89COLTBL\n"  # a byte above 127 and a newline: text-mode copies are noticed
VERSION = 2

_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32
_PAGE = 4096
_ALIGNMENT = 64  # a cache line, so that kernels read each column from an aligned start
_NO_DIGEST = "0" * (2 * _DIGEST_BYTES)

_OPTIONAL = ("encodings", "alignment", "n_absent", "n_left_out")

Role = Literal["feature", "label", "presence"]
PRESENCE: Final = "presence"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """Describe one stored column.

    Parameters
    ----------
    group
        Name that the columns of a category share, of which at most one has its upper bound in a
        row and all others their lower bound; empty for other columns.
    """

    name: str
    role: Role
    bounds: Bounds
    fill: float
    group: str = ""


@dataclass(frozen=True, slots=True)
class TableHeader:
    """Describe a table: all that its file says besides the columns.

    Parameters
    ----------
    columns
        The features, then at most one label, then at most one column of presence: ``grid`` where
        the party has the person, 0 where it does not and the whole row stands for nobody.
    content_digest
        SHA-256 of the column bytes, in order, without padding.
    fine_digest
        ``content_digest`` of the fine table made from the same rows (its own, if this is it).
    dataset_version
        Public random name of the ingest, 32 hex digits.
    client_ids
        The rule by which ids are the same client's, if the rows are divided among clients; empty
        if they are not.
    encodings
        How raw columns became the stored ones, unless they are numbers of the same name.
    alignment
        What the order of the rows follows: the name of an alignment, ``roster-`` and a MAC of a
        roster under a key that parties share, or empty. Public.
    n_absent, n_left_out
        People of that order whom the source lacks, and rows of the source that it lacks. Facts
        about the rows: they stay with the party.
    """

    schema_digest: str
    n_rows: int
    columns: tuple[TableColumn, ...]
    grid: int = GRID
    content_digest: str = _NO_DIGEST
    fine_digest: str = _NO_DIGEST
    dataset_version: str = ""
    client_ids: str = ""
    encodings: tuple[Encoding, ...] = ()
    alignment: str = ""
    n_absent: int = 0
    n_left_out: int = 0

    def __post_init__(self) -> None:
        roles = [column.role for column in self.columns]
        n_features = roles.count("feature")
        known = ["feature"] * n_features
        known += [role for role in ("label", PRESENCE) if role in roles]
        if self.n_rows < 1 or n_features < 1 or roles != known:
            raise ValueError("a table has rows, features, at most one label, then presence")
        if not re.fullmatch("([0-9a-f]{32})?", self.dataset_version):
            raise ValueError("a dataset version has 32 hex digits")
        if not re.fullmatch("((roster-)?[0-9a-f]{64})?", self.alignment):
            raise ValueError("an order of rows is named by 64 hex digits")
        if self.n_absent < 0 or self.n_left_out < 0:
            raise ValueError("counts of people are not negative")
        if self.client_ids not in ("", *CLIENT_IDS):
            raise ValueError("ids of clients are told apart by a known rule")

    @property
    def label(self) -> TableColumn | None:
        """The label's column, if there is one."""
        return next((column for column in self.columns if column.role == "label"), None)

    @property
    def has_presence(self) -> bool:
        """Whether the table says whom the party has. Public: it follows from the order of rows."""
        return self.columns[-1].role == PRESENCE

    @property
    def stride_bytes(self) -> int:
        """Distance between the starts of two columns."""
        return _round_up(self.n_rows * grid_dtype(self.grid).itemsize, _ALIGNMENT)

    def exact(self) -> set[str]:
        """Return the columns whose values attain their bounds by declaration: 0, 1 and levels."""
        exact = (Bool, Category, Ordinal)
        return {
            name
            for encoding in self.encodings
            for place, name in enumerate(encoding.names)
            if isinstance(encoding.kind, exact) or place > 0  # an indicator
        }

    def encode(self) -> bytes:
        """Return the file's bytes up to the first column."""
        fields = asdict(self) | {"dtype": grid_dtype(self.grid).name}
        for column in fields["columns"]:
            if not column["group"]:  # as it was written before there were groups
                del column["group"]
        fields["encodings"] = msgspec.to_builtins(self.encodings)
        # As before there were orders and encodings: a table that has none is what it was.
        fields = {key: each for key, each in fields.items() if each or key not in _OPTIONAL}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        head = _PREFIX.pack(MAGIC, VERSION, len(text)) + text
        head += hashlib.sha256(head).digest()
        return head.ljust(_round_up(len(head), _PAGE), b"\0")


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
                header = _read_header(file, path)
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
            digest.update(column.data)
            if not _within(column, self.header.grid):
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
    """Write a table column by column, so that readers see the old file or the new one, whole.

    Use it as a context manager: ``append`` each column, ``seal``, ``publish``. Leaving early
    removes the temporary file, which is private to this user from its first byte.
    """

    def __init__(self, path: Path, header: TableHeader) -> None:
        self._path = path
        self._header = header
        self._digest = hashlib.sha256()
        self._n_written = 0
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        self._temporary = Path(temporary)
        self._file = os.fdopen(fd, "wb")
        self._file.seek(len(header.encode()))  # written last; digests have a fixed length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._temporary.unlink(missing_ok=True)  # first: closing flushes, and may fail again
        self._file.close()

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

    def seal(self, fine_digest: str | None = None) -> str:
        """Complete the temporary file on disk and return its content digest."""
        if self._n_written != len(self._header.columns):
            raise ValueError(f"{self._n_written} of {len(self._header.columns)} columns written")
        digest = self._digest.hexdigest()
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


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _within(values: AnyArray, grid: int) -> bool:
    # No abs(): it overflows at the least integer.
    return bool(values.min() >= -grid and values.max() <= grid)


def _read_header(file: BinaryIO, path: Path) -> TableHeader:
    """Read and check everything before the first column, and the file's size."""
    size = os.fstat(file.fileno()).st_size
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or prefix[: len(MAGIC)] != MAGIC:
        raise BadInput(f"{path}: not a Colonnade table; make one with 'colonnade party ingest'")
    _, version, n_text = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise BadInput(f"{path}: format version {version}, not {VERSION}; ingest the source again")
    if _PREFIX.size + n_text + _DIGEST_BYTES > size:
        raise BadInput(f"{path}: file is cut short in its header; ingest the source again")
    text = file.read(n_text)
    if file.read(_DIGEST_BYTES) != hashlib.sha256(prefix + text).digest():
        raise BadInput(f"{path}: header is damaged; ingest the source again")
    header = _parse_header(text, path)
    head = header.encode()
    file.seek(0)
    if file.read(len(head)) != head:
        raise BadInput(f"{path}: header is not in canonical form; ingest the source again")
    expected = len(head) + len(header.columns) * header.stride_bytes
    if size != expected:
        fault = "cut short" if size < expected else "followed by foreign bytes"
        raise BadInput(f"{path}: columns are {fault}; ingest the source again")
    return header


def _parse_header(text: bytes, path: Path) -> TableHeader:
    """Build the header from its JSON; the caller compares the canonical bytes afterwards."""
    try:
        fields: dict[str, Any] = json.loads(text)
        dtype = grid_dtype(fields["grid"]).name
        if fields.pop("dtype") != dtype or type(fields["n_rows"]) is not int:
            raise ValueError("type")
        columns = tuple(
            TableColumn(**(column | {"bounds": Bounds(**column["bounds"])}))
            for column in fields.pop("columns")
        )
        encodings = msgspec.convert(fields.pop("encodings", ()), tuple[Encoding, ...])
        return TableHeader(columns=columns, encodings=encodings, **fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadInput(f"{path}: header has unknown content; ingest the source again") from None


def _map_columns(file: BinaryIO, header: TableHeader) -> AnyArray:
    """Map all columns, shape ``(n_columns, n_rows)``, read-only."""
    dtype = grid_dtype(header.grid)
    shape = (len(header.columns), header.stride_bytes // dtype.itemsize)
    block = np.memmap(file, dtype=dtype, mode="r", offset=len(header.encode()), shape=shape)
    # A plain view: slices of np.memmap are slow to make, and compiled kernels know ndarray only.
    return np.asarray(block)[:, : header.n_rows]
