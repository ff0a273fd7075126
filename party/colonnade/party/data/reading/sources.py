"""Where rows come from: a file or a query, read by DuckDB, or by SQLAlchemy for other databases.

A source becomes a ``Relation``: SQL for DuckDB in which columns go by position (``c0``, ``c1``,
...), so that no column name is ever part of a statement. Messages of the libraries quote values,
so none is passed on: ``one_line`` replaces each by a line that names no data.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from colonnade.core.errors import BadInput
from colonnade.core.text import listed
from colonnade.data.dialect import PLAIN, Dialect
from colonnade.party.data.reading.connection import one_line
from colonnade.party.data.reading.files import files_of, same_as_first
from colonnade.party.data.reading.header import csv_names
from colonnade.party.data.reading.sql import copy_rows
from colonnade.party.data.reading.transcode import as_utf8

MAIN = "colonnade_staging.main"
"""Catalog and schema of the staging tables; a user's query may have another default."""

ROWS = f"{MAIN}.rows"
"""The table of staged rows."""

_DELIMITERS = (";", "\t", "|", ",")


@dataclass(frozen=True, slots=True)
class FileSource:
    """Read a CSV file (with a header line; plain or gzip) or a Parquet file.

    Or many as one: all of a folder, or those that a pattern such as ``rows-*.csv`` names.
    """

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
    dialect
        How numbers are written, where they are texts.
    parquet
        The Parquet files that these rows are, all of them, in order; empty if they are not.
    """

    origin: str
    sql: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)
    is_csv: bool = False
    dialect: Dialect = PLAIN
    parquet: tuple[Path, ...] = ()

    def find(self, name: str) -> int:
        """Return the position of the column called exactly ``name``."""
        found = [position for position, other in enumerate(self.names) if other == name]
        if len(found) == 1:
            return found[0]
        if found:
            how = "rename one"
            if self.is_csv:
                how = f"set duplicates = \"number\" and take the second for '{name} (2)'"
            raise BadInput(f"{self.origin}: {len(found)} columns are named {name!r}; {how}")
        raise BadInput(f"{self.origin}: no column {name!r}; {self.list_names()}")

    def list_names(self) -> str:
        """Describe which columns there are, or why there seem to be none of use."""
        if self.is_csv and len(self.names) == 1:
            for delimiter in _DELIMITERS:
                if delimiter in self.names[0]:
                    shown = "\\t" if delimiter == "\t" else delimiter
                    return (
                        f"its header has no {self.dialect.delimiter!r} but {delimiter!r}; set "
                        f'delimiter = "{shown}"'
                    )
        if self.is_csv and any(is_number(name) for name in self.names):
            # Without a header the first line is a person's row, which no message may show.
            return "its first line has numbers, so add a header line that names the columns"
        return f"it has {listed(self.names)}"


def open_source(
    staging: duckdb.DuckDBPyConnection,
    source: Source,
    *,
    folder: Path,
    dialect: Dialect = PLAIN,
) -> Relation:
    """Make ``source`` readable from ``staging``; ``folder`` is private and takes what is copied."""
    if isinstance(source, FileSource):
        return replace(_open_file(staging, source.path, folder, dialect), dialect=dialect)
    return replace(_open_rows(staging, source), dialect=dialect)


def _open_rows(staging: duckdb.DuckDBPyConnection, source: QuerySource) -> Relation:
    if source.database is not None and "://" in source.database:
        return _copy_from_server(staging, source.query, url=source.database)
    return _open_query(staging, source)


def _open_file(
    staging: duckdb.DuckDBPyConnection, path: Path, folder: Path, dialect: Dialect
) -> Relation:
    """Read a file, or all files of a folder or a pattern as one."""
    paths = files_of(path)
    kinds = [(each, _kind(each)) for each in paths]
    same_as_first(path, kinds, "a format")
    if kinds[0][1] == "parquet":
        reader = "read_parquet($path, hive_partitioning = false)"
        if len(paths) == 1:
            alone = _describe(
                staging, str(path), sql=reader, parameters={"path": literal_path(paths[0])}
            )
            return replace(alone, parquet=tuple(paths))
        # DuckDB would take the first file's types, and round what others hold.
        described = [
            (
                each,
                _describe(staging, str(each), sql=reader, parameters={"path": literal_path(each)}),
            )
            for each in paths
        ]
        facts = [(each, (found.names, found.types)) for each, found in described]
        same_as_first(path, facts, "columns")
        parameters: dict[str, object] = {"path": [literal_path(each) for each in paths]}
        return replace(
            described[0][1], origin=str(path), parameters=parameters, parquet=tuple(paths)
        )
    compressed = kinds[0][1] == "gzip"
    plain = []
    for number, each in enumerate(paths):
        own = folder / str(number) if len(paths) > 1 else folder
        own.mkdir(exist_ok=True)
        plain.append(as_utf8(each, own, dialect, compressed=compressed))
    if None not in plain:
        compressed = False
    read = [each if copy is None else copy for each, copy in zip(paths, plain, strict=True)]
    same_as_first(
        path, [(each, copy is None) for each, copy in zip(paths, plain, strict=True)], "an encoding"
    )
    return _open_csv(read, paths, path, dialect, compressed=compressed)


def _kind(path: Path) -> str:
    """Return what a file is by its first bytes, whatever it is called."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"{path}: cannot read the source: {error.strerror}") from None
    if magic == b"PAR1":
        return "parquet"
    if path.suffix.lower() in (".parquet", ".pq"):
        raise BadInput(f"{path}: not a Parquet file, whatever its name says")
    return "gzip" if magic[:2] == b"\x1f\x8b" else "csv"


def literal_path(path: Path) -> str:
    """Return a path for DuckDB; wildcards are all that it interprets, and brackets disarm them."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


def _open_csv(
    paths: Sequence[Path],
    origins: Sequence[Path],
    origin: Path,
    dialect: Dialect,
    *,
    compressed: bool,
) -> Relation:
    """Read ``paths``, which are ``origins`` or copies of them in UTF-8, as one."""
    headers = [
        (own, csv_names(path, own, dialect, compressed=compressed))
        for path, own in zip(paths, origins, strict=True)
    ]
    same_as_first(origin, headers, "columns")
    names = headers[0][1]
    columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(len(names)))
    # Nothing is guessed: a sniffer may skip odd first rows or choose another quote in silence.
    sql = (
        f"read_csv($path, columns = {{{columns}}}, auto_detect = false, header = true, skip = 0,"
        f" delim = $delimiter, quote = '\"', escape = '\"', strict_mode = true,"
        f" null_padding = false, ignore_errors = false, hive_partitioning = false,"
        f" compression = '{'gzip' if compressed else 'none'}')"
    )
    types = ("VARCHAR",) * len(names)
    literals = [literal_path(path) for path in paths]
    where: object = literals[0] if len(literals) == 1 else literals
    parameters = {"path": where, "delimiter": dialect.delimiter}
    return Relation(str(origin), sql, names, types, parameters=parameters, is_csv=True)


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
