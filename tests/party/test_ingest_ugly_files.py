"""Text files as people have them: read rightly, or refused with the setting that helps."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID, Bounds, dequantise
from colonnade.data.schema import parse_schema
from colonnade.data.table import Table
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading.sources import FileSource, QuerySource, Source

COLUMNS = """
[[feature]]
name = "income"
low = 0
high = 4000

[[feature]]
name = "town"
type = "category"
levels = ["Köln", "Łódź", 'New "old" York', "a;b"]
other = "rest"
"""
CANARY = "canary7e57"


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def table(
    tmp_path: Path, source: Source, settings: str = "", columns: str = COLUMNS
) -> tuple[IngestSummary, Table]:
    schema = parse_schema(f"{settings}\n{columns}", origin="s.toml")
    summary = ingest(schema, source, out=tmp_path / "out")
    return summary, Table.open(summary.coarse)


def read(tmp_path: Path, content: bytes, settings: str = "") -> tuple[list[float], list[int]]:
    """Return the incomes that a file was read as, and the place of each row's town."""
    (tmp_path / "x.csv").write_bytes(content)
    _, found = table(tmp_path, FileSource(tmp_path / "x.csv"), settings)
    incomes = dequantise(found.columns[0], Bounds(0.0, 4000.0), grid=GRID)
    towns = np.where((found.columns[1:] == GRID).any(axis=0), found.columns[1:].argmax(axis=0), -1)
    return [round(float(income), 0) for income in incomes], towns.tolist()


def refuse(tmp_path: Path, content: bytes, settings: str = "") -> str:
    with pytest.raises(BadInput) as refused:
        read(tmp_path, content, settings)
    assert CANARY not in str(refused.value)
    assert "\n" not in str(refused.value)
    return str(refused.value)


PLAIN = 'income,town\n1200.4,Köln\n7,"New ""old"" York"\n,"a;b"\n3,Ulm\n5,\n'
SEMICOLONS = 'income;town\n1200,4;Köln\n7;"New ""old"" York"\n;"a;b"\n3;Ulm\n5;\n'
EXPECTED = ([1200.0, 7.0, 2000.0, 3.0, 5.0], [0, 2, 3, 4, -1])
TABS = PLAIN.replace(",", "\t").replace("1200.4", "1'200.4")


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        (PLAIN.encode(), ""),
        (b"\xef\xbb\xbf" + PLAIN.encode(), ""),
        (PLAIN.replace("\n", "\r\n").encode(), ""),
        (zipped(PLAIN.encode()), ""),
        (SEMICOLONS.encode(), 'delimiter = ";"\ndecimal = ","'),
        (
            SEMICOLONS.replace("1200,4", "1.200,4").encode(),
            'delimiter = ";"\ndecimal = ","\nthousands = "."',
        ),
        (TABS.encode(), 'delimiter = "\\t"\nthousands = "\'"'),
        (PLAIN.encode("utf-16"), ""),
        (zipped(SEMICOLONS.encode("utf-16")), 'delimiter = ";"\ndecimal = ","'),
        (PLAIN.encode("utf-16-be"), 'encoding = "utf-16-be"'),
        (PLAIN.encode("cp1252"), 'encoding = "cp1252"'),
        (zipped(PLAIN.encode("cp1252")), 'encoding = "latin-1"'),
    ],
)
def test_files_are_read_rightly(tmp_path: Path, content: bytes, settings: str) -> None:
    assert read(tmp_path, content, settings) == EXPECTED


@pytest.mark.parametrize(
    ("content", "settings", "helps"),
    [
        (SEMICOLONS.encode(), "", 'set delimiter = ";"'),
        (PLAIN.encode(), 'delimiter = ";"', 'set delimiter = ","'),
        (PLAIN.replace(",", "\t").encode(), "", 'set delimiter = "\\t"'),
        (SEMICOLONS.encode(), 'delimiter = ";"', "'decimal'"),
        # Neither 1.200 for 1200 nor 1,200 for 1200 is ever taken for a number near 1.
        (SEMICOLONS.replace("1200,4", "1.200").encode(), 'delimiter = ";"\ndecimal = ","', "'thou"),
        (PLAIN.replace("1200.4", '"1,200"').encode(), "", "'thousands'"),
        (PLAIN.replace("1200.4", "12.00").encode(), 'decimal = ","\nthousands = "."', "'thou"),
        (PLAIN.encode("cp1252"), "", 'encoding = "cp1252"'),
        (PLAIN.encode("utf-16-le"), "", '"utf-16-le"'),
        (b"i\0d\0\n\0" + b"1\0\n\0", "", '"utf-16-le"'),
        (PLAIN.encode("cp1252"), 'encoding = "utf-16-le"', "set another encoding"),
        (PLAIN.replace("town", "income").encode(), "", 'set duplicates = "number"'),
        (PLAIN.encode() + b"9,Ulm\r\n", "", "lines end in different ways"),
        (PLAIN.replace("\n", "\r\n").encode() + b"9,Ulm\n", "", "lines end in different ways"),
        (PLAIN.replace("1200.4", CANARY).encode(), "", "declare their text in 'missing'"),
    ],
)
def test_files_are_refused_with_the_setting_that_helps(
    tmp_path: Path, content: bytes, settings: str, helps: str
) -> None:
    assert helps in refuse(tmp_path, content, settings)


def test_a_quoted_line_break_ends_no_row(tmp_path: Path) -> None:
    content = 'note,income,town\n"two\nlines",1,Köln\n"a, b\r\nc",2,"Łódź"\n'
    assert read(tmp_path, content.encode()) == ([1.0, 2.0], [0, 1])


def test_a_line_break_in_a_name_is_read_rightly_or_refused(tmp_path: Path) -> None:
    for end in ("\n", "\r\n"):
        content = end.join(["income,town,'last", "month'", "1200,Köln,x", ""]).replace("'", '"')
        assert read(tmp_path, content.encode()) == ([1200.0], [0])
    # As spreadsheets write them: DuckDB reads no row of such a file, and says nothing.
    mixed = content.replace('"last\r\n', '"last\n')
    assert "write each name on one line" in refuse(tmp_path, mixed.encode())


def test_a_name_that_is_there_twice_harms_only_who_uses_it(tmp_path: Path) -> None:
    content = "income,note,town,note\n1,x,Köln,y\n"
    assert read(tmp_path, content.encode()) == ([1.0], [0])


def test_repeated_names_are_numbered_by_a_setting(tmp_path: Path) -> None:
    content = "income,town,town,income\n1,x,Köln,7\n"
    schema = parse_schema(
        'duplicates = "number"\n[[feature]]\nname = "later"\ncolumn = "income (2)"\n'
        "low = 0\nhigh = 9\n",
        origin="schema",
    )
    path = tmp_path / "people.csv"
    path.write_text(content)
    found = Table.open(ingest(schema, FileSource(path), out=tmp_path / "out").coarse)
    # 7 of 0 .. 9 on the grid of 2**14: (7 - 4.5) / 4.5 * 2**14 = 9102.2
    assert found.columns[0].tolist() == [9102]


def test_a_copy_in_utf8_is_gone_afterwards(tmp_path: Path) -> None:
    read(tmp_path, PLAIN.encode("utf-16"))
    left = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert not [name for name in left if "csv" in name]


KINDS = """
[[feature]]
name = "smoker"
type = "bool"
{}
[[feature]]
name = "since"
type = "date"
low = 2000-01-01
high = 2000-12-31
"""


@pytest.mark.parametrize(
    ("row", "settings", "said"),
    [
        (f"{CANARY},2000-01-01", "", "column 'smoker' has 1 values that are neither yes nor no"),
        (f"yes,{CANARY}", "", "column 'since' has 1 values that are no dates"),
        ("yes,2000-02-30", "", "column 'since' has 1 values that are no dates"),
        (f"{CANARY},2000-01-01", 'yes = ["1"]\nno = ["0"]', "has 2 values that are neither yes"),
    ],
)
def test_texts_that_are_not_declared_are_counted_and_not_shown(
    tmp_path: Path, row: str, settings: str, said: str
) -> None:
    (tmp_path / "x.csv").write_text(f"smoker,since\nno,2000-01-02\n{row}\n")
    with pytest.raises(BadInput) as refused:
        table(tmp_path, FileSource(tmp_path / "x.csv"), columns=KINDS.format(settings))
    assert said in str(refused.value)
    assert CANARY not in str(refused.value)
    assert not list((tmp_path / "out").glob("*.table"))


TYPED = """
[[feature]]
name = "sex"
type = "category"
levels = [1, 2]

[[feature]]
name = "day"
type = "date"
low = 2000-01-01
high = 2000-01-11

[[feature]]
name = "member"
type = "bool"
"""


@pytest.mark.parametrize("sex", ["INTEGER", "DOUBLE", "VARCHAR"])
@pytest.mark.parametrize("day", ["DATE", "TIMESTAMP", "VARCHAR"])
def test_typed_columns_are_read_like_their_texts(tmp_path: Path, sex: str, day: str) -> None:
    query = (
        f"SELECT CAST(a AS {sex}) AS sex, CAST(b AS {day}) AS day, c AS member FROM "
        "(VALUES (1, '2000-01-01', true), (2, '2000-01-06', false), (NULL, NULL, NULL)) t(a, b, c)"
    )
    _, found = table(tmp_path, QuerySource(query), columns=TYPED)
    assert found.columns.tolist() == [
        [GRID, -GRID, -GRID],
        [-GRID, GRID, -GRID],
        [-GRID, 0, 0],
        [GRID, -GRID, 0],
    ]
    assert found.groups == ("sex", "sex", "", "")


def test_a_person_on_the_roster_without_a_row_has_no_value(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("p,sex,day,member\nb,2,2000-01-11,no\na,1,2000-01-01,yes\n")
    (tmp_path / "roster").write_text("a\nc\nb\n")
    columns = TYPED + "missing_indicator = true\n"
    schema = parse_schema(f'id = "p"\n{columns}', origin="s")
    source = FileSource(tmp_path / "x.csv")
    summary = ingest(schema, source, out=tmp_path / "out", roster=tmp_path / "roster")
    found = Table.open(summary.coarse)
    assert found.columns.tolist() == [
        [GRID, -GRID, -GRID],
        [-GRID, -GRID, GRID],
        [-GRID, 0, GRID],
        [GRID, 0, -GRID],
        [-GRID, GRID, -GRID],
    ]
    assert [column.n_missing for column in summary.columns] == [0, 0, 0]


def test_what_went_to_the_level_for_the_rest_is_counted(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(PLAIN.encode())
    summary, _ = table(tmp_path, FileSource(tmp_path / "x.csv"))
    town = summary.columns[1]
    assert (town.n_other, town.n_missing, town.n_clipped) == (1, 1, 0)
