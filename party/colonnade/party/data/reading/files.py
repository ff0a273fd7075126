"""The files of a source: one, those of a folder, or those that a pattern names, in order."""

import re
from collections.abc import Sequence
from pathlib import Path

from colonnade.core.errors import BadInput

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_WILDCARDS = re.compile(r"[*?\[]")


def files_of(path: Path) -> list[Path]:
    """Return the files that ``path`` stands for, sorted: their rows follow each other so.

    A folder stands for all Parquet files below it, or all CSV files; names that begin with a dot
    or an underscore are what other programs leave there. A name with wildcards that is no file's
    stands for the files that match, ``**`` for folders of any depth.
    """
    if path.is_dir():
        return _of_one_kind(path, [each for each in path.rglob("*") if _is_data(each, path)])
    if path.exists() or not _WILDCARDS.search(str(path)):
        return [path]
    fixed = Path(*_until_wildcard(path.parts))
    pattern = str(Path(*path.parts[len(fixed.parts) :]))
    found = [each for each in fixed.glob(pattern) if each.is_file()] if fixed.is_dir() else []
    return _of_one_kind(path, found)


def same_as_first(origin: Path, facts: Sequence[tuple[Path, object]], what: str) -> None:
    """Refuse files that are not alike: rows under other columns would be taken for these."""
    for path, fact in facts[1:]:
        if fact != facts[0][1]:
            raise BadInput(
                f"{origin}: {path.name} has other {what} than {facts[0][0].name}; ingest files "
                "that are alike, or bring them together in a query"
            )


def _is_data(path: Path, folder: Path) -> bool:
    inside = path.relative_to(folder).parts
    return path.is_file() and not any(part.startswith((".", "_")) for part in inside)


def _of_one_kind(origin: Path, found: Sequence[Path]) -> list[Path]:
    kinds = {
        kind: [each for each in found if each.name.lower().endswith(kind)]
        for kind in (_PARQUET, _CSV)
    }
    held = [paths for paths in kinds.values() if paths]
    if not held:
        raise BadInput(f"{origin}: no Parquet or CSV files are there")
    if len(held) > 1:
        raise BadInput(f"{origin}: both Parquet and CSV files are there; name one kind")
    return sorted(held[0])


def _until_wildcard(parts: Sequence[str]) -> list[str]:
    fixed = []
    for part in parts:
        if _WILDCARDS.search(part):
            break
        fixed.append(part)
    return fixed
