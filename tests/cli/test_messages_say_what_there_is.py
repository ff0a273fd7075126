"""A name that is not there is answered with those that are, and a wrong delimiter by its name."""

from pathlib import Path

import pytest
from support.tables import SCHEMA

from colonnade.cli.main import main
from colonnade.cli.text import as_text
from colonnade.core.errors import EXIT_BAD_INPUT

Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> Path:
    """Return a folder with a table under four delimiters, its schema and a model."""
    monkeypatch.chdir(tmp_path)
    rows = ["age,cost,note", *(f"{i % 90},{i % 7},x" for i in range(60))]
    for name, delimiter in (("comma", ","), ("semi", ";"), ("tab", "\t"), ("bar", "|")):
        text = "\n".join(row.replace(",", delimiter) for row in rows)
        (tmp_path / f"{name}.csv").write_text(text + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    fit = "fit --data comma.csv --schema schema.toml --epsilon 900 --noise off --out fit"
    assert main(fit.split()) == 0
    capsys.readouterr()
    return tmp_path


def refused(line: str, capsys: Output) -> str:
    assert main(line.split()) == EXIT_BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(("name", "told"), [("semi", ";"), ("tab", "\\t"), ("bar", "|")], ids=str)
@pytest.mark.parametrize(
    "line",
    [
        "party ingest --schema schema.toml --out new FILE",
        "fit --data FILE --schema schema.toml --epsilon 1 --out new",
        "predict --model fit/model.json --data FILE",
    ],
)
def test_another_delimiter_is_named(
    folder: Path, capsys: Output, line: str, name: str, told: str
) -> None:
    said = refused(line.replace("FILE", f"{name}.csv"), capsys)
    assert f"its header has no ',' but '{told}'; set delimiter = \"{told}\"" in said


@pytest.mark.parametrize(
    "line",
    [
        "party ingest --schema other.toml --out new comma.csv",
        "fit --data comma.csv --schema other.toml --epsilon 1 --out new",
        "simulate --data comma.csv --target price",
        "simulate --data comma.csv --schema other.toml --target cost",
        "predict --model fit/model.json --data renamed.csv",
    ],
)
def test_a_column_that_is_not_there_is_answered_with_those_that_are(
    folder: Path, capsys: Output, line: str
) -> None:
    (folder / "other.toml").write_text(SCHEMA.replace('"cost"', '"price"'))
    text = (folder / "comma.csv").read_text()
    (folder / "renamed.csv").write_text(text.replace("age", "Age"))
    said = refused(line, capsys)
    shown = ("'Age'", "'cost'", "'note'") if "renamed" in line else ("'age'", "'cost'", "'note'")
    assert all(name in said.split(";", 1)[1] for name in shown), said


def test_a_first_row_that_nobody_named_is_not_shown(folder: Path, capsys: Output) -> None:
    text = (folder / "comma.csv").read_text().split("\n", 1)[1]
    (folder / "bare.csv").write_text("31,4,secret\n" + text)
    for line in (
        "party ingest --schema schema.toml --out new bare.csv",
        "predict --model fit/model.json --data bare.csv",
    ):
        said = refused(line, capsys)
        assert "secret" not in said
        assert "add a header line" in said


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [1, 2, 9])
@pytest.mark.parametrize("noise", ["exact", "off"])
def test_a_handful_of_rows_is_not_fitted(
    folder: Path, capsys: Output, n_rows: int, noise: str
) -> None:
    lines = (folder / "comma.csv").read_text().splitlines()[: n_rows + 1]
    (folder / "few.csv").write_text("\n".join(lines) + "\n")
    line = f"fit --data few.csv --schema schema.toml --epsilon 1 --out new --noise {noise}"
    assert f"the table has {n_rows} rows; a fit needs 10" in refused(line, capsys)
    assert not (folder / "new").exists()


def test_a_handful_of_rows_is_not_charged(folder: Path, capsys: Output) -> None:
    assert main(["party", "init", "--ledger", "ledger", "--name", "lab", "--rho", "1"]) == 0
    (folder / "few.csv").write_text("age,cost\n1,2\n3,4\n")
    capsys.readouterr()
    line = "fit --data few.csv --schema schema.toml --epsilon 1 --out new --ledger ledger"
    refused(line, capsys)
    assert main(["ledger", "show", "ledger", "--json"]) == 0
    assert '"entries": 2' in capsys.readouterr().out


def test_a_text_that_says_nothing_is_left_out_of_a_plan() -> None:
    shown = as_text({"promise": "", "bounds": None, "delta": 1e-6, "each": {"note": ""}})
    assert shown.split() == ["bounds", "none", "delta", "1e-06", "each"]
