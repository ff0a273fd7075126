"""Text files in other encodings, copied as UTF-8 into a private folder."""

import codecs
import gzip
import zlib
from pathlib import Path

from colonnade.core.errors import BadInput
from colonnade.data.dialect import Dialect

_CHUNK_CHARACTERS = 2**20
_FIRST_BYTES = 2**16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def as_utf8(path: Path, folder: Path, dialect: Dialect, *, compressed: bool) -> Path | None:
    """Return a copy in UTF-8 within ``folder``, or None if the file can be read as it stands.

    A byte order mark of UTF-16 says what the file is, whatever the dialect says.
    """
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            has_mark = file.read(2) in _UTF16
        if dialect.is_utf8 and not has_mark:
            return None
        encoding = "utf-16" if has_mark else dialect.encoding
        out = folder / "source.csv"
        with (
            gzip.open(path, "rt", encoding=encoding, newline="")
            if compressed
            else path.open(encoding=encoding, newline="") as source,
            out.open("w", encoding="utf-8", newline="") as target,
        ):
            while text := source.read(_CHUNK_CHARACTERS):
                target.write(text)
    except UnicodeError:
        raise BadInput(f"{path}: is not {encoding} text; set another encoding") from None
    except (EOFError, OSError, zlib.error):
        raise BadInput(f"{path}: cannot be read; it is damaged, or a disk is full") from None
    return out


def first_text(path: Path) -> tuple[str, str]:
    """Return the beginning of a text file, and the encoding that it seems to have."""
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if compressed else path.open("rb") as file:
            start = file.read(_FIRST_BYTES)
    except (EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    if start[:2] in _UTF16:
        return start.decode("utf-16", "replace"), "utf-8"  # its mark says so to every reader
    if start[:8:2].count(0) + start[1:8:2].count(0) >= 4:
        encoding = "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
        return start.decode(encoding, "replace"), encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return start.decode("cp1252", "replace"), "cp1252"
    return start.decode("utf-8-sig", "replace"), "utf-8"
