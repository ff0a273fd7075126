"""A DuckDB connection with limits, and its errors in one line without data."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from colonnade.core.errors import BadInput

MEMORY_MB = 1000
"""Memory that DuckDB may use for tables of usual width; beyond it, it spills to disk."""

_MAX_THREADS = 4
_THREAD_COLUMNS = 1000
_GROUP_BYTES = 2**26
_VECTOR_ROWS = 2048
_MAX_GROUP_VECTORS = 60  # DuckDB's default
NOT_UTF8 = 'not UTF-8 text; set its encoding, such as encoding = "cp1252" or "utf-16-le"'
_FULL = tuple(os.strerror(each) for each in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


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
    # What is staged is read once and removed: neither packed nor put in order at the end.
    database.execute("PRAGMA force_compression = 'uncompressed'")
    database.execute("PRAGMA disable_checkpoint_on_shutdown")
    n_vectors = _GROUP_BYTES // (8 * n_columns * _VECTOR_ROWS)
    n_rows = _VECTOR_ROWS * min(max(1, n_vectors), _MAX_GROUP_VECTORS)
    attach = f"ATTACH $path AS colonnade_staging (ROW_GROUP_SIZE {n_rows})"
    database.execute(attach, {"path": str(folder / "staging.duckdb")})
    return database


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
            return f"line {line[1]} is {NOT_UTF8}"
        if counts := re.search(
            r"^Expected Number of Columns: (\d+) Found: (\d+)$", text, re.MULTILINE
        ):
            return f"line {line[1]} has {counts[2]} fields where the header has {counts[1]}"
        return f"line {line[1]} is not valid CSV; check its quotes"
    if "state machine reached an invalid state" in text:
        return (
            "cannot be read as CSV: its lines end in different ways, or its last quote is open; "
            "write all lines with one ending (as `sed -i 's/\\r$//' FILE` does)"
        )
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
