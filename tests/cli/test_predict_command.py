"""The predict command, on files."""

import csv
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.commands import handle

from colonnade.cli import predict
from colonnade.cli.parser import WrongUsage
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel
from colonnade.party import scoring

MODEL = LinearModel(
    job_id="ab" * 32,
    loss="squared",
    label=ModelLabel("stay", 0.0, 30.0),
    intercept_scaled=0.5,
    features=(
        ModelFeature("hospital", "age", 0.0, 100.0, 50.0, 0.5),
        ModelFeature("hospital", "unused", 0.0, 1.0, 0.5, 0.0),
        ModelFeature("lab", "age", 0.0, 10.0, 6.25, 1.0),
        ModelFeature("lab", "glucose", 40.0, 400.0, 40.0, -0.25),
    ),
    private=True,
)
TABLE = """pid,hospital.age,lab.age,glucose,other
p1,50,5,220,x
p2,1000,NA,40,y
"p,3",0, ,,z
"""
# By hand: 15 + 15 * (0.5 + 0.5 a + b - 0.25 g) for scaled (0, 0, 0), (1, fill, -1) and
# (-1, fill, fill), the fills of the laboratory being 0.25 and -1: values on the grid.
EXPECTED = [22.5, 37.5, 22.5]


def run(*arguments: object) -> int:
    return handle("predict", *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.json").write_text(MODEL.to_json())
    (tmp_path / "joined.csv").write_text(TABLE)
    return tmp_path


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_predictions_are_written_in_the_order_of_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    assert run(*files, "--out", folder / "p.csv") == 0
    assert read(folder / "p.csv") == [["prediction"], *([str(value)] for value in EXPECTED)]
    shown = capsys.readouterr()
    assert shown.out == f"{folder}/p.csv: 3 predictions\n{predict.NOTE}\n"
    assert "outside the privacy promise" in shown.out
    assert shown.err == ""  # no progress bar away from a terminal
    assert sorted(path.name for path in folder.iterdir()) == ["joined.csv", "model.json", "p.csv"]


def test_the_id_column_is_copied(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    assert run(*files, "--id", "pid") == 0
    shown = capsys.readouterr()
    assert shown.out == 'pid,prediction\np1,22.5\np2,37.5\n"p,3",22.5\n'
    assert shown.err == predict.NOTE + "\n"


def test_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.json").write_text(replace(MODEL, private=False).to_json())
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    assert run(*files, "--out", folder / "p.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "out": f"{folder}/p.csv",
        "n_rows": 3,
        "job_id": "ab" * 32,
        "loss": "squared",
        "label": "stay",
        "private": False,
        "note": predict.NOTE,
    }
    assert run(*files, "--out", folder / "p.csv") == 0
    assert (
        "NOT PRIVATE: it is from a simulation, or its noise was not exact"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_many_chunks_give_what_one_array_gives(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "_CHUNK_VALUES", 4096)
    draw = np.random.default_rng(7)
    names = ("hospital.age", "lab.age", "glucose")
    columns = {name: np.round(draw.uniform(-10.0, 450.0, 10_000), 3) for name in names}
    lines = [",".join(("id", *names))]
    for number, values in enumerate(zip(*columns.values(), strict=True)):
        lines.append(",".join((str(number), *map(str, values))))
    text = "\n".join(lines) + "\n"
    (folder / "t.csv").write_text(text)
    path = folder / f"t.{kind}"
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    if kind == "parquet":
        with duckdb.connect() as database:
            database.execute(f"COPY (FROM '{folder}/t.csv') TO '{path}'")
    files = ["--model", folder / "model.json", "--data", path, "--out", folder / "p.csv"]
    assert run(*files, "--id", "id") == 0
    header, *rows = read(folder / "p.csv")
    assert header == ["id", "prediction"]
    assert [int(row[0]) for row in rows] == list(range(10_000))
    assert [float(row[1]) for row in rows] == MODEL.predict(columns).tolist()


def test_a_model_without_coefficients_predicts_the_same_for_each_row(folder: Path) -> None:
    zero = replace(MODEL, features=(MODEL.features[1],))
    (folder / "model.json").write_text(zero.to_json())
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    assert run(*files, "--out", folder / "p.csv") == 0
    assert read(folder / "p.csv")[1:] == [["22.5"]] * 3


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("pid,hospital.age,lab.age\np,1,1\n", "no column 'lab.glucose' (or 'glucose')"),
        ("pid,age,glucose\np,1,1\n", "no column 'hospital.age', 'lab.age'"),
        ("pid,hospital.age,lab.age,glucose\np,1,1,1\nq,1,x1,1\n", "'lab.age' has 1 values"),
        ("pid,hospital.age,lab.age,glucose,glucose\np,1,1,1,1\n", "2 columns are named 'glucose'"),
        ("pid,hospital.age,lab.age,glucose\np,1,1\n", "line 2 has 3 fields"),
        ("who,hospital.age,lab.age,glucose\np,1,1,1\n", "no column 'pid'"),
        ("", "the first line is empty"),
    ],
)
def test_a_fault_in_the_table_is_named_and_nothing_is_written(
    folder: Path, table: str, said: str
) -> None:
    (folder / "joined.csv").write_text(table)
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    with pytest.raises(BadInput) as refused:
        run(*files, "--out", folder / "p.csv", "--id", "pid")
    assert str(refused.value).startswith(f"{folder}/joined.csv: ")
    assert said in str(refused.value)
    assert "x1" not in str(refused.value)  # never data in a message
    assert sorted(path.name for path in folder.iterdir()) == ["joined.csv", "model.json"]


def test_a_column_of_dates_is_refused(folder: Path) -> None:
    with duckdb.connect() as database:
        picks = 'DATE \'2020-01-01\' AS "hospital.age", 1 AS "lab.age", 1 AS glucose'
        database.execute(f"COPY (SELECT {picks}) TO '{folder}/t.parquet'")
    with pytest.raises(BadInput, match=r"'hospital\.age' .*DATE"):
        run("--model", folder / "model.json", "--data", folder / "t.parquet")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--data": "absent.csv"}, "absent.csv: cannot read the source"),
        ({"--model": "absent.json"}, "absent.json: no such file"),
        ({"--model": "joined.csv"}, "joined.csv: not valid JSON"),
        ({"--out": "no/p.csv"}, "no/p.csv: cannot write predictions"),
        ({"--out": "joined.csv"}, "joined.csv: would replace the file"),
        ({"--out": "model.json"}, "model.json: would replace the file"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, changes: dict[str, str], said: str) -> None:
    files = {"--model": "model.json", "--data": "joined.csv", "--out": "p.csv"} | changes
    arguments = [part for key, name in files.items() for part in (key, folder / name)]
    with pytest.raises(BadInput) as refused:
        run(*arguments)
    assert said in str(refused.value)
    assert (folder / "joined.csv").read_text() == TABLE


@pytest.mark.parametrize("arguments", [["--json"], ["--id", "prediction"]])
def test_a_wrong_choice_is_a_usage_error(folder: Path, arguments: list[str]) -> None:
    files = ["--model", folder / "model.json", "--data", folder / "joined.csv"]
    with pytest.raises(WrongUsage):
        run(*files, *arguments)


def test_predictions_go_into_a_pipe_and_leave_it_in_place(folder: Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("--model", folder / "model.json", "--data", folder / "joined.csv", "--out", pipe)
        assert os.read(reader, 1000).startswith(b"prediction\n")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
