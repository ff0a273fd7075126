"""A benchmark in several parts: which are measured, and how their figures are shown and written."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from colonnade.bench.scratch import public_tables, scratch
from colonnade.core.errors import BadInput


@dataclass(frozen=True, slots=True)
class BenchSetting:
    """What every part is measured with: a scratch folder, public tables if at hand, how much."""

    folder: Path
    tables: Path | None
    quick: bool


Measure: TypeAlias = Callable[[BenchSetting], Mapping[str, Any]]  # fields of the result
Text: TypeAlias = Callable[[Any], str]  # of a field
Row: TypeAlias = Mapping[str, Any]


def run_parts(
    arguments: argparse.Namespace,
    measures: Mapping[str, Measure],
    texts: Mapping[str, Text],
    write: Callable[[dict[str, Any], Path], None],
) -> int:
    """Measure all parts, or the one that was asked for; write and print the figures."""
    wanted = measures if arguments.only is None else (arguments.only,)
    result: dict[str, Any] = {}
    with scratch(arguments.folder) as folder:
        setting = BenchSetting(folder, arguments.data or public_tables(), arguments.quick)
        for part in wanted:
            result |= measures[part](setting)
    if arguments.out is not None:
        write(result, arguments.out)
    shown = (text(result[name]) for name, text in texts.items() if result.get(name))
    print(json.dumps(result) if arguments.json else "\n\n".join(shown))
    return 0


def write_numbers(result: Mapping[str, Any], folder: Path, name: str = "bench.json") -> None:
    """Write the figures as JSON to a file of ``folder``, which is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise BadInput(f"{folder}: {(error.strerror or 'cannot be written').lower()}") from None


def table(*columns: str, title: str = "", note: str = "") -> Text:
    """Return what writes rows with these columns, or with all that hold one value each."""

    def text(rows: Sequence[Row]) -> str:
        names = columns or [k for k, v in rows[0].items() if not isinstance(v, dict | list)]
        cells = [list(names), *([_cell(row.get(name)) for name in names] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.rjust, line, widths)) for line in cells]
        return "\n".join(filter(None, (title, *lines, note)))

    return text


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
