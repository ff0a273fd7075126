"""What benchmark commands print and write, whatever they measure."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from colonnade.bench import parts
from colonnade.core.errors import BadInput

ROWS: list[dict[str, Any]] = [
    {"case": "one", "r2": 0.123456, "bytes": 70, "more": {"x": 1}},
    {"case": "the other", "r2": None, "bytes": 8, "more": {}},
]


def test_a_table_has_a_column_for_each_value_that_all_rows_have() -> None:
    assert parts.table(title="scores", note="aim 1")(ROWS).splitlines() == [
        "scores",
        "     case      r2  bytes",
        "      one  0.1235     70",
        "the other       -      8",
        "aim 1",
    ]
    assert parts.table("bytes", "absent")(ROWS).splitlines()[1] == "   70       -"


@pytest.mark.parametrize("only", [None, "second"])
def test_the_parts_that_are_asked_for_are_measured_and_shown(
    only: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures: dict[str, parts.Measure] = {
        "first": lambda given: {"first": ROWS if given.quick else []},
        "second": lambda given: {"seconds": 2.0, "kept": str(given.folder.parent)},
    }
    texts: dict[str, parts.Text] = {"seconds": "{:.1f} s".format, "first": parts.table("case")}
    given = argparse.Namespace(
        only=only, quick=True, data=None, folder=tmp_path, out=tmp_path / "out", json=False
    )
    assert parts.run_parts(given, measures, texts, parts.write_numbers) == 0
    shown = "2.0 s" if only else "2.0 s\n\n     case\n      one\nthe other"
    assert capsys.readouterr().out == shown + "\n"
    found = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert found == {**({} if only else {"first": ROWS}), "seconds": 2.0, "kept": str(tmp_path)}


def test_figures_that_cannot_be_written_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="file"):
        parts.write_numbers({}, tmp_path / "file")
