"""A drafted schema: types and levels to be reviewed, no bounds, and ingest refuses what is open."""

import datetime as dt
import gzip
import json
from pathlib import Path

import pytest
from support.commands import handle

from colonnade.cli.main import main
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.data.dialect import Dialect
from colonnade.data.kinds import Bool, Category, Date, Number
from colonnade.data.schema import parse_schema
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.draft import LEAST_ROWS
from colonnade.party.data.reading.sources import FileSource
from colonnade.party.data.reading.suggest import suggest

CANARY = "canary7e57"
REVIEW = "to be reviewed: taken from rows"


def rows(n_rows: int = 60) -> list[str]:
    return [
        f"p{i};{i % 50},5;{'north' if i % 2 else 'sønder'};{'ja' if i % 3 else 'nein'};"
        f"{1 + i % 28:02}.{1 + i % 12:02}.2020;{'yes' if i % 5 else 'No'};{i % 3};name {i};"
        for i in range(n_rows)
    ]


HEADER = "id;income;ward;kept;admitted;smoker;grade;remark;nothing"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    # One person has a ward of her own: a draft must not show it.
    lonely = f"p60;1,5;{CANARY};ja;01.01.2020;yes;1;x;"
    path = tmp_path / "people.csv"
    path.write_text("\n".join([HEADER, *rows(), lonely]) + "\n")
    return path


def completed(draft: str) -> str:
    """Decide on bounds as a person would."""
    number = draft.replace("low = ?  # a number", "low = 0 #").replace(
        "high = ?  # a number", "high = 99 #"
    )
    return number.replace("low = ?  # a date", "low = 2020-01-01 #").replace(
        "high = ?  # a date", "high = 2020-12-31 #"
    )


def test_a_draft_says_types_and_levels_and_is_ingested_when_complete(
    source: Path, tmp_path: Path
) -> None:
    draft = suggest(source).text
    schema = parse_schema(completed(draft), origin="draft")
    assert (schema.dialect.delimiter, schema.dialect.decimal) == (";", ",")
    assert [(each.name, each.kind) for each in schema.features] == [
        ("income", Number()),
        ("ward", Category(("north", "sønder"), other="other")),
        ("kept", Bool(("ja",), ("nein",))),
        ("admitted", Date(schema.features[3].kind.reference, "%d.%m.%Y")),  # type: ignore[union-attr]
        ("smoker", Bool()),
        ("grade", Number()),
    ]
    summary = ingest(schema, FileSource(source), out=tmp_path / "data")
    assert (summary.n_rows, summary.columns[1].n_other) == (61, 1)


@pytest.mark.parametrize(
    ("cells", "decimal", "thousands", "asks"),
    [
        (("1,234,567", "12,365", "7"), ".", ",", False),
        (("1.234,50", "12.365", "7"), ",", ".", False),
        (("12,365", "0,125", "7"), ",", "", False),
        (("12,365", "1,5", "7"), ",", "", False),
        (("12,365", "4,125", "7"), ",", "", True),
        (("12.365", "4.125", "7"), ".", "", True),
    ],
)
def test_a_mark_between_thousands_is_drafted_or_asked_about(
    tmp_path: Path, cells: tuple[str, ...], decimal: str, thousands: str, asks: bool
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id\tbill\n" + "".join(f"k{k}\t{cell}\n" for k, cell in enumerate(cells)))
    draft = suggest(path).text
    found = parse_schema(completed(draft), origin="draft").dialect
    assert (found.decimal, found.thousands) == (decimal, thousands)
    assert ("three digits behind it" in draft) is asks


def test_years_of_two_digits_are_drafted_as_ingest_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "stays.csv"
    path.write_text(
        "".join(["since\n", *(f"{1 + i % 28:02}.07.{80 + i % 19}\n" for i in range(60))])
    )
    draft = suggest(path).text
    assert "are read as 19.." in draft
    schema = parse_schema(completed(draft), origin="draft")
    assert schema.features[0].kind == Date(dt.date(2020, 1, 1), "%d.%m.%y")
    ingest(schema, FileSource(path), out=tmp_path / "data")  # with a year of four, it refuses


def test_a_draft_has_no_bounds_and_marks_what_it_took_from_rows(source: Path) -> None:
    draft = suggest(source).text
    assert CANARY not in draft
    assert "name 1" not in draft
    lines = draft.splitlines()
    bounds = [line for line in lines if line.startswith(("low", "high"))]
    assert len(bounds) == 6  # of income, admitted and grade
    assert all(
        line.split("#")[0].split() in (["low", "=", "?"], ["high", "=", "?"]) for line in bounds
    )
    for line in lines:
        if line.startswith(("type", "levels", "delimiter", "decimal", "format")):
            assert REVIEW in line
    assert '# Left out: "remark": texts that are no levels' in draft
    assert '# Left out: "nothing": no value in any row.' in draft
    assert '\nid = "id"' in draft
    assert "few different values" in draft  # grade


def test_what_is_open_is_refused_in_one_line(source: Path, tmp_path: Path) -> None:
    handle("party", "suggest", source, "--out", tmp_path / "schema.toml")
    words = ("--schema", tmp_path / "schema.toml", "--out", tmp_path / "data")
    with pytest.raises(BadInput) as refused:
        handle("party", "ingest", *words, source)
    assert str(refused.value).endswith(
        'low of "income" is still to be decided; write what is known of it without looking at the '
        "rows"
    )
    with pytest.raises(BadInput, match="exists"):
        handle("party", "suggest", source, "--out", tmp_path / "schema.toml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encode", "said"),
    [
        (lambda text: text.encode("utf-16"), 'delimiter = ";"'),
        (lambda text: text.encode("utf-16-le"), 'encoding = "utf-16-le"'),
        (lambda text: text.encode("cp1252"), 'encoding = "cp1252"'),
        (lambda text: gzip.compress(text.encode("utf-8-sig")), 'delimiter = ";"'),
        (
            lambda text: text.replace(",", ".").replace(";", ",").encode(),
            '[[feature]]\nname = "inc',
        ),
        (lambda text: text.replace(";", "\t").encode(), 'delimiter = "\\t"'),
    ],
)
def test_files_as_people_have_them_are_drafted(
    source: Path, tmp_path: Path, encode: object, said: str
) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(encode(source.read_text()))  # type: ignore[operator]
    draft = suggest(path).text
    assert said in draft
    schema = parse_schema(completed(draft), origin="draft")
    assert isinstance(schema.features[1].kind, Category)
    assert schema.features[1].kind.levels == ("north", "sønder")
    assert ingest(schema, FileSource(path), out=tmp_path / "data").n_rows == 61


def test_a_level_of_few_rows_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for n_rare, shown in ((LEAST_ROWS - 1, False), (LEAST_ROWS, True)):
        path.write_text("ward\n" + "north\n" * 20 + "south\n" * n_rare)
        assert ('"south"' in suggest(path).text) is shown


def test_a_name_that_is_there_twice_is_refused_if_one_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(BadInput, match=r"'a'.*duplicates"):
        suggest(path, dialect=Dialect())


@pytest.mark.parametrize(
    ("content", "said"),
    [(f"17,{CANARY}\n3,x\n", "header"), ("a,b\nx,y\nz,w\n", "numbers")],
)
def test_a_file_without_header_or_use_is_refused_and_not_shown(
    tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(BadInput, match=said) as refused:
        suggest(tmp_path / "x.csv")
    assert CANARY not in str(refused.value)


def test_json_holds_the_draft(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["party", "suggest", str(source), "--json"]) == EXIT_OK
    said = json.loads(capsys.readouterr().out)
    assert said == {"out": None, "bounds_to_decide": 6, "draft": suggest(source).text}


def test_a_header_with_a_name_twice_is_drafted_with_numbers(tmp_path: Path) -> None:
    rows = "".join(f"P{i};{i % 7};{i % 5};same;yes\n" for i in range(40))
    path = tmp_path / "visits.csv"
    path.write_text(f"Patient No;visits;visits;ward;seen\n{rows}")
    draft = suggest(path)
    assert draft.ids == ("Patient No",)
    assert 'duplicates = "number"' in draft.text
    assert 'name = "visits (2)"' in draft.text
    # What is the same in every row says nothing, and its coefficient would be noise.
    assert '# Left out: "ward": the same text in every row.' in draft.text
    assert '# Left out: "seen": the same text in every row.' in draft.text


def test_the_command_drafts_the_label_that_it_is_told(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["party", "suggest", str(source), "--id", "id", "--label", "income"]) == 0
    draft = capsys.readouterr().out
    assert draft.index("[label]") < draft.index('name = "income"')
    assert '\nid = "id"' in draft


def test_a_label_of_yes_and_no_in_another_language_predicts_yes(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    answers = [*["ja"] * 20, *["Nein"] * 20, *["JA"] * (LEAST_ROWS - 1), "NA"]
    path.write_text("\n".join(["again,age", *(f"{each},1" for each in answers)]) + "\n")
    draft = suggest(path, label="again").text
    label = parse_schema(completed(draft), origin="draft").label
    assert label is not None
    assert label.kind == Bool(("ja",), ("Nein", "nein"))  # a spelling of few rows is not shown
    assert all(REVIEW in line for line in draft.splitlines() if line.startswith(("yes =", "no =")))


def test_which_level_of_a_label_is_1_is_said(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "".join(["end,age\n", *(f"{'dead' if i % 3 else 'alive'},1\n" for i in range(60))])
    )
    assert '[label]  # 1 is the second level, "dead"' in suggest(path, label="end").text
