"""The header line of a CSV file, and whether the file around it can be read."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from colonnade.core.errors import BadInput
from colonnade.data.dialect import Dialect
from colonnade.party.data.reading.connection import NOT_UTF8

_GZIP_BYTES = 2**20


def csv_names(path: Path, origin: Path, dialect: Dialect, *, compressed: bool) -> tuple[str, ...]:
    """Read the header line, whose names DuckDB would fold and number."""
    try:
        with _open_text(path, compressed=compressed) as file:
            lines: list[str] = []
            reader = csv.reader(_noted(file, lines), strict=True, delimiter=dialect.delimiter)
            names = tuple(next(reader, ()))
        if compressed:
            _check_gzip(path)
    except UnicodeDecodeError:
        raise BadInput(f"{origin}: is {NOT_UTF8}") from None
    except (csv.Error, EOFError, OSError, zlib.error):
        raise BadInput(f"{origin}: cannot be read as CSV; its header or gzip is damaged") from None
    if any("\0" in name for name in names):
        raise BadInput(f"{origin}: is {NOT_UTF8}")
    if re.fullmatch(r'"?sep=.?"?[,;\t|]*', "".join(lines[:1]).strip("\r\n")):
        raise BadInput(
            f"{origin}: its first line, sep=, is a setting for spreadsheets; delete it, so that "
            "the file begins with the names of the columns"
        )
    if not names:
        raise BadInput(f"{origin}: the first line is empty; it must name the columns")
    if len({_end(line) for line in lines}) > 1:  # DuckDB would find no rows, and say nothing
        raise BadInput(
            f"{origin}: a name in its header has a line break that is not like those between its "
            "rows; write each name on one line"
        )
    return dialect.header(names)


def _noted(file: TextIO, lines: list[str]) -> Iterator[str]:
    """Yield a file's lines and keep them."""
    for line in file:
        lines.append(line)
        yield line


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _open_text(path: Path, *, compressed: bool) -> TextIO:
    if compressed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _check_gzip(path: Path) -> None:
    """Read all of a gzip file: DuckDB does not compare its checksum."""
    with gzip.open(path) as file:
        while file.read(_GZIP_BYTES):
            pass
