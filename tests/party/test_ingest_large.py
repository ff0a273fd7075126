"""Many files as one source, and rows that are read, sorted and written some at a time."""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import FINE_GRID, GRID, quantise
from colonnade.data.schema import Schema, parse_schema
from colonnade.data.table import open_pair
from colonnade.party.data import quantising
from colonnade.party.data.ingest import IngestSummary, ingest
from colonnade.party.data.reading import staged
from colonnade.party.data.reading.sources import FileSource

COLUMNS = """
[[feature]]
name = "a"
low = -1
high = 2
fill = 0.3

[[feature]]
name = "ward"
type = "category"
levels = ["n", "s"]
other = "rest"

[[feature]]
name = "smoker"
type = "bool"
missing_indicator = true

[label]
name = "y"
low = 0
high = 10
"""
SCHEMA = parse_schema('id = "id"\n' + COLUMNS, origin="schema")
HOSTED = parse_schema('client = "host"\n' + COLUMNS, origin="schema")
N_ROWS = 5000
HEADER = "id,host,a,ward,smoker,y\n"


def lines(n_rows: int = N_ROWS) -> list[str]:
    """Return ugly rows: infinities, missing values of all kinds, levels that are not declared."""
    random = np.random.default_rng(3)
    numbers = ["", "NA", "inf", "-inf", "1e400", "-0.0", " 2 ", "0.30000000000000004", "2e-308"]
    a = [*numbers, *map(repr, random.normal(0.5, 2.0, n_rows - len(numbers)).tolist())]
    wards = random.choice(["n", " s ", "elsewhere", "", "null"], n_rows).tolist()
    flags = random.choice(["yes", "N", "", "0"], n_rows).tolist()
    ys = (random.integers(-20, 140, n_rows) / 10).tolist()
    hosts = random.integers(0, 7, n_rows).tolist()
    return [
        f"p{i},h{host},{number},{ward},{flag},{y}\n"
        for i, (host, number, ward, flag, y) in enumerate(
            zip(hosts, a, wards, flags, ys, strict=True)
        )
    ]


def write(path: Path, rows: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + "".join(rows))
    return path


def roster_of(folder: Path) -> Path:
    """Write an agreed list in another order, of whom some are absent."""
    order = np.random.default_rng(5).permutation(N_ROWS + 600)[: N_ROWS + 100]
    path = folder / "roster.txt"
    path.write_text("".join(f"p{i}\n" for i in order))
    return path


def contents(out: Path) -> list[bytes]:
    """Return the columns of both tables, which are checked."""
    pair = open_pair(out)
    for table in pair:
        table.verify()
    return [
        table.path.read_bytes()[-len(table.header.columns) * table.header.stride_bytes :]
        for table in pair
    ]


Ingest = Callable[[str], tuple[list[bytes], IngestSummary]]


def as_plain(folder: Path, schema: Schema) -> Ingest:
    source = FileSource(write(folder / "rows.csv", lines()))

    def make(name: str) -> tuple[list[bytes], IngestSummary]:
        summary = ingest(schema, source, out=folder / name)
        return contents(folder / name), summary

    return make


def with_roster(folder: Path, schema: Schema) -> Ingest:
    source, roster = FileSource(write(folder / "rows.csv", lines())), roster_of(folder)

    def make(name: str) -> tuple[list[bytes], IngestSummary]:
        summary = ingest(schema, source, out=folder / name, roster=roster)
        return contents(folder / name), summary

    return make


@pytest.mark.parametrize(
    ("order", "schema"),
    [(as_plain, SCHEMA), (with_roster, SCHEMA), (as_plain, HOSTED)],
    ids=["as it is", "roster", "clients"],
)
def test_blocks_pieces_and_sorting_on_disk_change_no_byte(
    tmp_path: Path,
    order: Callable[[Path, Schema], Ingest],
    schema: Schema,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = order(tmp_path, schema)
    whole, summary = make("whole")
    monkeypatch.setattr(staged, "_GATHER_ROWS", 100)
    monkeypatch.setattr(staged, "_BLOCK_VALUES", 1)
    monkeypatch.setattr(quantising, "_PIECE_ROWS", 333)
    monkeypatch.setattr(quantising, "_MANY_VALUES", 1)
    found, again = make("parts")
    assert found == whole
    assert again.content_digest == summary.content_digest
    assert again.columns == summary.columns
    assert again.n_absent == summary.n_absent
    assert {each.n_clipped > 0 or each.n_missing > 0 for each in summary.columns} == {True}


def test_what_is_written_is_what_whole_columns_are_quantised_to(tmp_path: Path) -> None:
    ingest(SCHEMA, FileSource(write(tmp_path / "rows.csv", lines())), out=tmp_path / "data")
    texts = [line.rstrip("\n").split(",") for line in lines()]
    numbers = np.array([float(row[2]) if row[2] not in ("", "NA") else 0.3 for row in texts])
    for table, grid in zip(open_pair(tmp_path / "data"), (GRID, FINE_GRID), strict=True):
        bounds = SCHEMA.columns[0].bounds
        assert np.array_equal(table.columns[0], quantise(numbers, bounds, grid=grid))
        assert table.label is not None
        label = np.array([float(row[5]) for row in texts])
        assert np.array_equal(table.label, quantise(label, SCHEMA.columns[-1].bounds, grid=grid))
        digest = hashlib.sha256(table.columns.tobytes() + table.label.tobytes()).hexdigest()
        assert table.content_digest == digest


def test_texts_that_are_not_declared_are_counted_in_all_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = lines()
    for at in (2500, 4900):
        rows[at] = f"p{at},h0,1,n,perhaps,1\n"
    source = FileSource(write(tmp_path / "rows.csv", rows))
    told = []
    for values in (staged._BLOCK_VALUES, 1):
        monkeypatch.setattr(staged, "_BLOCK_VALUES", values)
        with pytest.raises(BadInput) as refused:
            ingest(SCHEMA, source, out=tmp_path / "data")
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert "2 values" in told[0]
    assert "data row 2501" in told[0]


def split_csv(folder: Path) -> Path:
    rows = lines()
    for number, first in enumerate(range(0, N_ROWS, 1700)):
        write(folder / f"part-{number}.csv", rows[first : first + 1700])
    (folder / "_SUCCESS").write_text("")
    (folder / ".part.csv.crc").write_text("x")
    return folder


def split_gzip(folder: Path) -> Path:
    for path in split_csv(folder).glob("*.csv"):
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return folder / "part-*.csv.gz"


def split_parquet(folder: Path) -> Path:
    with duckdb.connect() as database:
        for path in split_csv(folder).glob("*.csv"):
            target = folder / "set" / f"year={path.stem[-1]}" / "data.parquet"
            target.parent.mkdir(parents=True)
            database.execute(
                f"COPY (SELECT * FROM read_csv('{path}', all_varchar = true)) TO '{target}'"
            )
    return folder / "set"


@pytest.mark.parametrize("split", [split_csv, split_gzip, split_parquet])
def test_many_files_are_one_table(tmp_path: Path, split: Callable[[Path], Path]) -> None:
    ingest(SCHEMA, FileSource(write(tmp_path / "rows.csv", lines())), out=tmp_path / "one")
    ingest(SCHEMA, FileSource(split(tmp_path / "parts")), out=tmp_path / "many")
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_files_that_are_not_alike_are_refused(tmp_path: Path) -> None:
    rows, other = lines(40)[:20], lines(40)[20:]  # other people, so that ids do not repeat
    write(tmp_path / "csv" / "a.csv", rows)
    (tmp_path / "csv" / "b.csv").write_text("id,host,y,ward,smoker,a\n" + "".join(other))
    (tmp_path / "types").mkdir()
    (tmp_path / "empty").mkdir()
    write(tmp_path / "both" / "a.csv", rows)
    with duckdb.connect() as database:
        for name, kind in (("a", "INTEGER"), ("b", "DOUBLE")):
            database.execute(
                f"COPY (SELECT '{name}' AS id, 1.5::{kind} AS a, 'n' AS ward, 'yes' AS smoker, "
                f"1 AS y) TO '{tmp_path}/types/{name}.parquet'"
            )
        database.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/both/b.parquet'")
    for name in ("csv", "types", "empty", "both", "none-*.csv"):
        with pytest.raises(BadInput):
            ingest(SCHEMA, FileSource(tmp_path / name), out=tmp_path / "data")
        assert not (tmp_path / "data").exists()
