"""The header of a table file: what its columns are, how long they are, and digests of them.

`data.table` shows the layout. What is read is compared with its canonical bytes, so a header has
one form on disk.
"""

import hashlib
import json
import os
import re
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgspec

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, grid_dtype
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import Bool, Category, Ordinal
from colonnade.data.schema import CLIENT_IDS

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


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def read_header(file: BinaryIO, path: Path) -> TableHeader:
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
