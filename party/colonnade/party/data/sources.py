"""Where rows come from: a file or a query, read by DuckDB, or by SQLAlchemy for other databases.

A source becomes a ``Relation``: SQL for DuckDB in which columns go by position (``c0``, ``c1``,
...), so that no column name is ever part of a statement. Messages of the libraries quote values,
so none is passed on: ``one_line`` replaces each by a line that names no data.
"""

import csv
import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import duckdb

from colonnade.core.errors import BadInput
from colonnade.core.text import listed
from colonnade.party.data.sql import copy_rows

MEMORY_MB = 1000
"""Memory that DuckDB may use for tables of usual width; beyond it, it spills to disk."""

MAIN = "colonnade_staging.main"
"""Catalog and schema of the staging tables; a user's query may have another default."""

ROWS = f"{MAIN}.rows"
"""The table of staged rows."""

_MAX_THREADS = 4
_THREAD_COLUMNS = 1000
_GZIP_BYTES = 2**20
_GROUP_BYTES = 2**26
_VECTOR_ROWS = 2048
_MAX_GROUP_VECTORS = 60  # DuckDB's default
_DELIMITERS = (";", "\t", "|")
_FULL = tuple(os.strerror(each) for each in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@dataclass(frozen=True, slots=True)
class FileSource:
    """Read a CSV file (comma, header line, UTF-8; plain or gzip) or a Parquet file."""

    path: Path


@dataclass(frozen=True, slots=True)
class QuerySource:
    """Read the result of one SELECT.

    Parameters
    ----------
    database
        None to query files; the path of a DuckDB database; or a SQLAlchemy URL.
    """

    query: str
    database: str | None = None


Source = FileSource | QuerySource


@dataclass(frozen=True, slots=True)
class Relation:
    """Name rows that DuckDB can read.

    Parameters
    ----------
    sql
        What follows FROM; yields the columns ``c0``, ``c1``, ... in the order of ``names``.
    types
        DuckDB type names.
    is_csv
        Whether NULL is how an empty text is read.
    """

    origin: str
    sql: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)
    is_csv: bool = False

    def find(self, name: str) -> int:
        """Return the position of the column called exactly ``name``."""
        found = [position for position, other in enumerate(self.names) if other == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise BadInput(f"{self.origin}: {len(found)} columns are named {name!r}; rename one")
        raise BadInput(f"{self.origin}: no column {name!r}; {self.list_names()}")

    def list_names(self) -> str:
        """Say which columns there are, or why there seem to be none of use."""
        if self.is_csv and len(self.names) == 1:
            for delimiter in _DELIMITERS:
                if delimiter in self.names[0]:
                    return (
                        f"its header has no comma but {delimiter!r}; separate its fields by commas"
                    )
        if self.is_csv and any(is_number(name) for name in self.names):
            # Without a header the first line is a person's row, which no message may show.
            return "its first line has numbers, so add a header line that names the columns"
        return f"it has {listed(self.names)}"


def connect(folder: Path, *, n_columns: int) -> duckdb.DuckDBPyConnection:
    """Open a staging database in ``folder``; it loads no extensions and keeps row order.

    Parameters
    ----------
    n_columns
        Width of the rows to be staged: DuckDB holds whole groups of them in memory.
    """
    if "?" in str(folder):  # DuckDB takes it for the start of options
        raise BadInput(f"{folder.parent}: a path with '?' cannot hold a table; choose another")
    n_threads = min(_MAX_THREADS, _THREAD_COLUMNS // n_columns)  # each holds rows of its own
    database = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",  # a query must not read our variables
            "preserve_insertion_order": "true",
            "memory_limit": f"{max(MEMORY_MB, n_columns // 4)}MB",  # 130 kB a column are held
            "temp_directory": str(folder / "spill"),
            "threads": str(max(1, min(n_threads, os.cpu_count() or 1))),
            # Takes minutes over a thousand columns, and there is nothing to share between them.
            "disabled_optimizers": "common_subexpressions",
        },
    )
    database.execute("SET enable_progress_bar = false")  # DuckDB's own, on standard output
    n_vectors = _GROUP_BYTES // (8 * n_columns * _VECTOR_ROWS)
    n_rows = _VECTOR_ROWS * min(max(1, n_vectors), _MAX_GROUP_VECTORS)
    attach = f"ATTACH $path AS colonnade_staging (ROW_GROUP_SIZE {n_rows})"
    database.execute(attach, {"path": str(folder / "staging.duckdb")})
    return database


def open_source(staging: duckdb.DuckDBPyConnection, source: Source) -> Relation:
    """Make ``source`` readable from ``staging``."""
    if isinstance(source, FileSource):
        return _open_file(staging, source.path)
    if source.database is not None and "://" in source.database:
        return _copy_from_server(staging, source.query, url=source.database)
    return _open_query(staging, source)


@contextmanager
def one_line(origin: str) -> Iterator[None]:
    """Turn a DuckDB error into one line that starts with ``origin`` and holds no data."""
    try:
        yield
    except duckdb.Error as error:
        raise BadInput(f"{origin}: {_explain(error)}") from None


def _explain(error: duckdb.Error) -> str:
    text = str(error)
    if any(full in text for full in _FULL):  # of several kinds, and rarely of the source's disk
        return "cannot be staged: a disk is full; free some space (fit and predict stage in TMPDIR)"
    if line := re.match(r"Invalid Input Error: CSV Error on Line: (\d+)", text):
        if "not utf-8" in text:
            return f"line {line[1]} is not UTF-8 text; convert the file to UTF-8"
        if counts := re.search(
            r"^Expected Number of Columns: (\d+) Found: (\d+)$", text, re.MULTILINE
        ):
            return f"line {line[1]} has {counts[2]} fields where the header has {counts[1]}"
        return f"line {line[1]} is not valid CSV; check its quotes"
    causes = {
        duckdb.OutOfMemoryException: "needs more memory or disk space than there is",
        duckdb.ParserException: "is not valid SQL",
        duckdb.CatalogException: "names a table or function that does not exist",
        duckdb.BinderException: "names a column that does not exist, or misuses one",
        duckdb.ConversionException: "has a value that cannot be converted as the query asks",
        duckdb.IOException: "cannot be read: missing, damaged, or in use by another program",
    }
    for kind, cause in causes.items():
        if isinstance(error, kind):
            return cause
    return "cannot be read; it is damaged or in an unknown format"


def _open_file(staging: duckdb.DuckDBPyConnection, path: Path) -> Relation:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"{path}: cannot read the source: {error.strerror}") from None
    # Wildcards are the only part of a bound path that DuckDB interprets; brackets disarm them.
    literal = re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))
    if magic == b"PAR1":
        reader = "read_parquet($path, hive_partitioning = false)"
        return _describe(staging, str(path), sql=reader, parameters={"path": literal})
    if path.suffix.lower() in (".parquet", ".pq"):
        raise BadInput(f"{path}: not a Parquet file, whatever its name says")
    return _open_csv(path, literal, compressed=magic[:2] == b"\x1f\x8b")


def _open_csv(path: Path, literal: str, *, compressed: bool) -> Relation:
    names = _read_csv_names(path, compressed=compressed)
    columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(len(names)))
    # Nothing is guessed: a sniffer may skip odd first rows or choose another quote in silence.
    sql = (
        f"read_csv($path, columns = {{{columns}}}, auto_detect = false, header = true, skip = 0,"
        f" delim = ',', quote = '\"', escape = '\"', strict_mode = true, null_padding = false,"
        f" ignore_errors = false, hive_partitioning = false,"
        f" compression = '{'gzip' if compressed else 'none'}')"
    )
    types = ("VARCHAR",) * len(names)
    return Relation(str(path), sql, names, types, parameters={"path": literal}, is_csv=True)


def _read_csv_names(path: Path, *, compressed: bool) -> tuple[str, ...]:
    """Read the header line, whose names DuckDB would fold and number."""
    try:
        with _open_text(path, compressed=compressed) as file:
            names = tuple(next(csv.reader(file, strict=True), ()))
        if compressed:
            _check_gzip(path)
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text; convert the file to UTF-8") from None
    except (csv.Error, EOFError, OSError, zlib.error):
        raise BadInput(f"{path}: cannot be read as CSV; its header or gzip is damaged") from None
    if not names:
        raise BadInput(f"{path}: the first line is empty; it must name the columns")
    return names


def _open_text(path: Path, *, compressed: bool) -> TextIO:
    if compressed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _check_gzip(path: Path) -> None:
    """Read all of a gzip file: DuckDB does not compare its checksum."""
    with gzip.open(path) as file:
        while file.read(_GZIP_BYTES):
            pass


def _open_query(staging: duckdb.DuckDBPyConnection, source: QuerySource) -> Relation:
    with one_line("the query"):
        statements = staging.extract_statements(source.query)
    is_select = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
    if not is_select or statements[0].named_parameters:
        raise BadInput("the query: must be one SELECT without parameters")
    if source.database is not None:
        if not Path(source.database).is_file():
            raise BadInput(f"{source.database}: no such DuckDB database; a URL needs '://'")
        with one_line(source.database):
            attach = "ATTACH $path AS colonnade_source (READ_ONLY, TYPE duckdb)"
            staging.execute(attach, {"path": source.database})
            staging.execute("USE colonnade_source")
    with one_line("the query"):
        staging.execute(f"CREATE TEMP VIEW colonnade_rows AS {statements[0].query}")
    return _describe(staging, "the query", sql="colonnade_rows", parameters={})


def _copy_from_server(staging: duckdb.DuckDBPyConnection, query: str, *, url: str) -> Relation:
    with one_line("the query"):
        names = copy_rows(staging, query, url=url, table=f"{MAIN}.copied")
    return Relation("the query", f"{MAIN}.copied", names, ("VARCHAR",) * len(names))


def is_number(text: str) -> bool:
    """Return whether ``text`` reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _describe(
    staging: duckdb.DuckDBPyConnection, origin: str, *, sql: str, parameters: dict[str, object]
) -> Relation:
    """Learn the names and types of a relation without reading its rows."""
    with one_line(origin):
        staging.execute(f"SELECT * FROM {sql} LIMIT 0", parameters)  # noqa: S608 (our own SQL)
    description = staging.description or []
    names = tuple(str(column[0]) for column in description)
    types = tuple(str(column[1]) for column in description)
    aliases = ", ".join(f"c{position}" for position in range(len(names)))
    return Relation(origin, f"{sql} AS source({aliases})", names, types, parameters=parameters)
