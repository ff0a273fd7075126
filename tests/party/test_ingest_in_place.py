"""Parquet files of numbers are read where they are, into the table that staged rows give."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from colonnade.core.errors import BadInput
from colonnade.data.schema import Schema, parse_schema
from colonnade.data.table import open_pair
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading import in_place, staged
from colonnade.party.data.reading.connection import connect
from colonnade.party.data.reading.sources import FileSource, QuerySource, open_source
from colonnade.party.data.staging import stage

NAMES = ("tiny", "whole", "exact", "flag", "single", "y")
SCHEMA_TEXT = 'missing = ["", "-999"]\n' + "".join(
    f'[[feature]]\nname = "{name}"\nlow = -3\nhigh = 90\nfill = 1\n' for name in NAMES[:-1]
)
SCHEMA = parse_schema(SCHEMA_TEXT + '[label]\nname = "y"\nlow = -1\nhigh = 1\n', origin="schema")
N_ROWS = 9000
_UGLY = "CASE i % 97 WHEN 0 THEN NULL WHEN 1 THEN 'nan'::DOUBLE WHEN 2 THEN '-inf'::DOUBLE ELSE"
ROWS = f"""
SELECT (i % 100)::UTINYINT AS tiny, CASE WHEN i % 89 = 0 THEN -999 ELSE i - 50 END AS whole,
       (i / 7)::DECIMAL(12, 3) AS "exact", i % 3 = 0 AS flag, (i / 3)::FLOAT AS single,
       {_UGLY} sin(i) * 1.2 END AS y, i AS unused
FROM range({N_ROWS}) r(i)
"""


def write(path: Path, query: str = ROWS, *, group_rows: int = 2048) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        database.execute(
            f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {group_rows})"
        )
    return path


def one_file(folder: Path) -> Path:
    return write(folder / "rows.parquet")


def many_files(folder: Path) -> Path:
    for first, last in ((0, 5000), (5000, 5001), (5001, 5001), (5001, N_ROWS)):
        query = f"SELECT * FROM ({ROWS}) WHERE unused >= {first} AND unused < {last}"
        write(folder / "set" / f"{first:05}-{last:05}.parquet", query)
    return folder / "set"


def is_in_place(folder: Path, source: Path, schema: Schema) -> bool:
    folder.mkdir()
    with connect(folder, n_columns=len(schema.columns)) as database:
        found = open_source(database, FileSource(source), folder=folder, dialect=schema.dialect)
        return stage(database, found, schema=schema, in_place=True).in_place is not None


def counts(summary: IngestSummary) -> tuple[object, ...]:
    return summary.content_digest, summary.n_rows, summary.columns, summary.n_left_out


@pytest.mark.parametrize("block_values", [1, 20_000, 2**23])
@pytest.mark.parametrize("make", [one_file, many_files])
def test_rows_in_place_give_the_table_that_staged_rows_give(
    tmp_path: Path,
    make: Callable[[Path], Path],
    block_values: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staged, "_PLACE_VALUES", block_values)
    source = make(tmp_path)
    assert is_in_place(tmp_path / "probe", source, SCHEMA)
    found = ingest(SCHEMA, FileSource(source), out=tmp_path / "in-place")
    query = QuerySource(ROWS + " ORDER BY i")  # of a query nobody knows the row groups
    wanted = ingest(SCHEMA, query, out=tmp_path / "staged")
    assert counts(found) == counts(wanted)
    assert found.columns[1].n_missing == len(range(0, N_ROWS, 89))  # the code, not a number
    assert found.columns[-1].n_missing > 0
    assert found.columns[-1].n_clipped > 0


def test_spans_are_whole_row_groups_and_cover_every_row_once(tmp_path: Path) -> None:
    rows = in_place.RowsInPlace(
        duckdb.connect(), "", {}, "", (tmp_path,) * 3, (), ((30, 70, 5), (), (200, 1, 1, 1, 1, 1))
    )
    spans = rows.spans(10, block_values=100)
    assert [(each.file, each.first, each.last, each.place) for each in spans] == [
        (0, 0, 100, 0),
        (0, 100, 105, 100),
        (2, 0, 200, 105),  # one group, larger than a block
        (2, 200, 205, 305),
    ]
    assert rows.n_rows == 310
    # Narrow blocks are not made longer than it takes to give every thread a row group.
    assert [each.last for each in rows.spans(100, block_values=210)] == [105, 203, 205]


@pytest.mark.parametrize(
    ("query", "schema"),
    [
        (ROWS.replace("i AS unused", "i AS File_Row_Number"), SCHEMA),
        (ROWS.replace("i % 3 = 0 AS flag", "(i % 3)::VARCHAR AS flag"), SCHEMA),
        (ROWS, parse_schema('id = "unused"\n' + SCHEMA_TEXT, origin="schema")),
        (ROWS, parse_schema('client = "tiny"\n' + SCHEMA_TEXT, origin="schema")),
    ],
    ids=["name", "text", "id", "client"],
)
def test_what_must_be_checked_or_arranged_is_staged(
    tmp_path: Path, query: str, schema: Schema
) -> None:
    assert not is_in_place(tmp_path / "probe", write(tmp_path / "rows.parquet", query), schema)


def test_how_texts_write_numbers_does_not_concern_columns_of_numbers(tmp_path: Path) -> None:
    source = FileSource(one_file(tmp_path))
    comma = parse_schema('decimal = ","\nthousands = "."\n' + SCHEMA_TEXT, origin="schema")
    plain = parse_schema(SCHEMA_TEXT, origin="schema")
    found, wanted = (
        ingest(schema, source, out=tmp_path / name)
        for name, schema in (("comma", comma), ("plain", plain))
    )
    assert found.columns == wanted.columns
    for one, other in zip(*map(open_pair, (tmp_path / "comma", tmp_path / "plain")), strict=True):
        assert one.columns.tobytes() == other.columns.tobytes()


def test_a_row_group_of_which_no_column_fits_is_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = one_file(tmp_path)
    monkeypatch.setattr(in_place, "_MAX_GROUP_ROWS", 2047)
    assert not is_in_place(tmp_path / "probe", source, SCHEMA)


def test_a_file_that_is_written_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "_PLACE_VALUES", 1)
    source = one_file(tmp_path)

    def rewriting(parts: Any) -> Iterator[Any]:
        yield parts[0]
        write(source, ROWS.replace("sin(i)", "cos(i)"))
        yield from parts[1:]

    with pytest.raises(BadInput, match=r"rows\.parquet: was written while it was read"):
        ingest(SCHEMA, FileSource(source), out=tmp_path / "data", progress=rewriting)
    assert not list((tmp_path / "data").glob("*"))


def test_a_damaged_page_is_one_line_without_data(tmp_path: Path) -> None:
    source = one_file(tmp_path)
    content = bytearray(source.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    source.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        ingest(SCHEMA, FileSource(source), out=tmp_path / "data")
    assert str(refused.value).startswith(f"{source}: ")
    assert "\n" not in str(refused.value)


def test_no_rows_are_refused_as_before(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.parquet", ROWS + " WHERE i < 0")
    with pytest.raises(BadInput, match="no rows"):
        ingest(SCHEMA, FileSource(source), out=tmp_path / "data")
