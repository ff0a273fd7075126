"""Ingest from real files of every kind."""

import csv
import fcntl
import gzip
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest

from colonnade.core.errors import BadInput, DatasetBusy
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, quantise
from colonnade.data.schema import Column, Schema
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, open_pair
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.connection import connect
from colonnade.party.data.reading.sources import FileSource, QuerySource, Source

CANARY = "canary7e57"


def column(name: str, low: float = 0.0, high: float = 10.0, *, source: str | None = None) -> Column:
    bounds = Bounds(low, high)
    return Column(name, column=source or name, bounds=bounds, fill=bounds.middle)


SCHEMA = Schema(features=(column("a"), column("b", -1.0, 1.0)), label=column("y"), id="id")
UNNAMED = Schema(features=SCHEMA.features)
ROWS = [["p1", "1", "0.5", "2"], ["p2", "99", "NA", "3"], ["p3", "", "-7", "4"]]
NUMBERS = [[1.0, 10.0, 5.0], [0.5, 0.0, -1.0], [2.0, 3.0, 4.0]]
"""What the table must hold for ``ROWS``: clipped, filled."""


def write_csv(path: Path, rows: Sequence[Sequence[str]], *, header: str = "id,a,b,y") -> Path:
    path.write_text(header + "\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


def expected(numbers: Sequence[Sequence[float]], schema: Schema = SCHEMA) -> list[list[int]]:
    return [
        quantise(np.array(values), declared.bounds, grid=GRID).tolist()
        for values, declared in zip(numbers, schema.columns, strict=True)
    ]


def stored(out: Path) -> list[list[int]]:
    """Read a table back, label last, with both files checked."""
    coarse, fine = open_pair(out)
    coarse.verify()
    fine.verify()
    label = [] if coarse.label is None else [coarse.label.tolist()]
    return [*coarse.columns.tolist(), *label]


def refuse(
    source: Source, out: Path, *, schema: Schema = SCHEMA, roster: Path | None = None
) -> str:
    """Return the one line with which ingest refuses; it leaves nothing and shows no canary."""
    before = {path: path.read_bytes() for path in out.iterdir()} if out.exists() else None
    with pytest.raises(BadInput) as refused:
        ingest(schema, source, out=out, roster=roster)
    message = str(refused.value)
    assert "\n" not in message
    assert CANARY not in message
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    after = {path: path.read_bytes() for path in out.iterdir()} if out.exists() else None
    assert after == before
    return message


def make_csv(folder: Path) -> Source:
    return FileSource(write_csv(folder / "rows.csv", ROWS))


def make_csv_gz(folder: Path) -> Source:
    plain = write_csv(folder / "rows.csv", ROWS)
    (folder / "rows.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return FileSource(folder / "rows.csv.gz")


def make_parquet(folder: Path) -> Source:
    path = folder / "rows.parquet"
    sql = "select id, nullif(a, '')::double a, nullif(b, 'NA')::float b, y::decimal(9, 3) y"
    with duckdb.connect() as database:
        copy = f"copy ({sql} from read_csv($csv, all_varchar = true)) to '{path}'"
        database.execute(copy, {"csv": str(write_csv(folder / "rows.csv", ROWS))})
    return FileSource(path)


def make_query(folder: Path) -> Source:
    write_csv(folder / "rows.csv", ROWS)
    return QuerySource(f"select * from read_csv('{folder}/rows.csv') order by id; -- done;")


def make_duckdb(folder: Path) -> Source:
    path = folder / "it's.duckdb"
    with duckdb.connect(str(path)) as database:
        csv_path = str(write_csv(folder / "rows.csv", ROWS))
        database.execute("create table people as from read_csv($csv)", {"csv": csv_path})
    return QuerySource("select * from people", database=str(path))


def make_sqlite(folder: Path) -> Source:
    pytest.importorskip("sqlalchemy")
    path = folder / "rows.db"
    database = sqlite3.connect(path)
    database.execute("create table people (id text, a real, b real, y integer)")
    values = [[cell if cell not in ("", "NA") else None for cell in row] for row in ROWS]
    database.executemany("insert into people values (?, ?, ?, ?)", values)
    database.commit()
    database.close()
    return QuerySource("select * from people where id like 'p%'", database=f"sqlite:///{path}")


MAKERS = [make_csv, make_csv_gz, make_parquet, make_query, make_duckdb, make_sqlite]


@pytest.mark.parametrize("make", MAKERS)
def test_every_kind_of_source_gives_the_same_table(
    tmp_path: Path, make: Callable[[Path], Source]
) -> None:
    summary = ingest(SCHEMA, make(tmp_path), out=tmp_path / "out")
    assert stored(tmp_path / "out") == expected(NUMBERS)
    assert (summary.n_rows, summary.n_absent) == (3, 0)
    counts = [(c.name, c.role, c.n_clipped, c.n_missing) for c in summary.columns]
    assert counts == [("a", "feature", 1, 1), ("b", "feature", 1, 1), ("y", "label", 0, 0)]


@pytest.mark.parametrize("make", MAKERS)
def test_a_roster_orders_filters_and_fills_rows_of_every_kind(
    tmp_path: Path, make: Callable[[Path], Source]
) -> None:
    roster = tmp_path / "ids.txt"
    roster.write_text("p3\nghost\np1\n")
    summary = ingest(SCHEMA, make(tmp_path), out=tmp_path / "out", roster=roster)
    numbers = [[5.0, 5.0, 1.0], [-1.0, 0.0, 0.5], [4.0, 5.0, 2.0]]
    assert stored(tmp_path / "out") == expected(numbers)
    assert (summary.n_rows, summary.n_absent) == (3, 1)
    counts = [(c.n_clipped, c.n_missing) for c in summary.columns]
    assert counts == [(0, 1), (1, 0), (0, 0)]


def test_files_are_private_and_nothing_else_remains(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest(SCHEMA, make_csv(tmp_path), out=out)
    assert sorted(path.name for path in out.iterdir()) == [COARSE_NAME, FINE_NAME]
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_raw_rows_are_staged_where_only_the_user_can_look(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(columns: Sequence[Column]) -> Sequence[Column]:
        seen.append(stat.S_IMODE((tmp_path / "out" / ".ingest").stat().st_mode))
        return columns

    ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / "out", progress=look)
    assert seen == [0o700]


def test_the_same_rows_give_the_same_columns_under_another_version(tmp_path: Path) -> None:
    for out in ("one", "two"):
        ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / out)
    for one, two in zip(open_pair(tmp_path / "one"), open_pair(tmp_path / "two"), strict=True):
        assert one.content_digest == two.content_digest
        assert one.header.schema_digest == two.header.schema_digest
        # Random: whether two tables are equal is a fact about data.
        assert one.header.dataset_version != two.header.dataset_version


def test_numbers_are_read_in_every_notation_and_never_rejected_for_size(tmp_path: Path) -> None:
    cells = [
        " NA ",
        "inf",
        "-Infinity",
        "1e400",
        "-1e400",
        " 3 ",
        "+3.0",
        "3e0",
        "nan",
        "NaN",
        "null",
        '""',
    ]
    source = FileSource(write_csv(tmp_path / "x.csv", [[c] for c in cells], header="a"))
    schema = Schema(features=(column("a"),))
    summary = ingest(schema, source, out=tmp_path / "out")
    numbers = [5.0, 10.0, 0.0, 10.0, 0.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 5.0]
    assert stored(tmp_path / "out") == expected([numbers], schema)
    assert (summary.columns[0].n_clipped, summary.columns[0].n_missing) == (4, 5)


def test_declared_tokens_replace_the_usual_ones(tmp_path: Path) -> None:
    schema = Schema(features=(column("a"),), missing=("-999", "?"))
    cells = [["-999"], ["?"], ["-999.0"], ["4"]]
    source = FileSource(write_csv(tmp_path / "x.csv", cells, header="a"))
    summary = ingest(schema, source, out=tmp_path / "out")
    assert stored(tmp_path / "out") == expected([[5.0, 5.0, 5.0, 4.0]], schema)
    assert (summary.columns[0].n_clipped, summary.columns[0].n_missing) == (0, 3)
    with_empty = FileSource(write_csv(tmp_path / "y.csv", [["1", ""], ["2", "7"]], header="b,a"))
    assert "'a' has 1 values" in refuse(with_empty, tmp_path / "out", schema=schema)


def test_numeric_tokens_count_in_typed_columns(tmp_path: Path) -> None:
    schema = Schema(features=(column("a"),), missing=("-999",))
    source = QuerySource("select unnest([-999, 7, null])::float as a")
    ingest(schema, source, out=tmp_path / "out")
    assert stored(tmp_path / "out") == expected([[5.0, 7.0, 5.0]], schema)


def test_odd_column_names_and_paths_are_taken_literally(tmp_path: Path) -> None:
    names = ['qu"ote', "it's", "spa ce", "été ✓", "a", "A", "select", "x;drop table rows", "c0", ""]
    folder = tmp_path / "k=5 '[a]*?"
    folder.mkdir()
    with (folder / "d[1]*.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, range(len(names))])
    trap = tmp_path / "k=5 'aX" / "d1.csv"  # what the path means to a shell
    trap.parent.mkdir()
    with trap.open("w", newline="") as file:
        csv.writer(file).writerows([names, [10] * len(names)])
    usable = [name for name in names if name]
    schema = Schema(features=tuple(column(f"f{i}", source=n) for i, n in enumerate(usable)))
    out = tmp_path / "o'[u]t*"
    ingest(schema, FileSource(folder / "d[1]*.csv"), out=out)
    assert stored(out) == expected([[float(i)] for i in range(len(usable))], schema)


def test_a_path_that_looks_like_sql_or_a_url_is_only_a_path(tmp_path: Path) -> None:
    for name in ("x') union select 1 --.csv", "https://example.invalid/x.csv", "s3://b/x.parquet"):
        assert "cannot read the source" in refuse(FileSource(tmp_path / name), tmp_path / "out")


def test_ids_are_compared_as_exact_text(tmp_path: Path) -> None:
    rows = [
        ["01", "1", "0", "1"],
        ["1", "2", "0", "1"],
        ["1.0", "3", "0", "1"],
        ["É", "4", "0", "1"],
    ]
    roster = tmp_path / "ids.txt"
    roster.write_bytes("\ufeff1\r\n01\r\nE\u0301\r\nÉ\r\n1 ".encode())
    source = FileSource(write_csv(tmp_path / "x.csv", rows))
    ingest(SCHEMA, source, out=tmp_path / "out", roster=roster)
    ordered = [[2.0, 1.0, 5.0, 4.0, 5.0]]
    assert stored(tmp_path / "out")[:1] == expected(ordered, Schema(features=(column("a"),)))


def test_faults_of_people_not_on_the_roster_do_not_matter(tmp_path: Path) -> None:
    others = [["", CANARY, "0", "1"], ["q", "0", CANARY, "1"], ["q", "0", "0", "1"]]
    source = FileSource(write_csv(tmp_path / "x.csv", [*others, *ROWS]))
    roster = tmp_path / "ids.txt"
    roster.write_text("p1\np2\np3\n")
    ingest(SCHEMA, source, out=tmp_path / "out", roster=roster)
    assert stored(tmp_path / "out") == expected(NUMBERS)


@pytest.mark.parametrize("compressed", [False, True])
def test_source_order_is_kept_for_a_million_rows(tmp_path: Path, compressed: bool) -> None:
    n_rows = 10**6
    numbers = np.random.default_rng(0).integers(0, 10**6, n_rows)
    text = "a\n" + "\n".join(map(str, numbers.tolist())) + "\n"
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress(text.encode(), 1) if compressed else text.encode())
    schema = Schema(features=(column("a", 0.0, 1e6),))
    ingest(schema, FileSource(path), out=tmp_path / "out")
    table = Table.open(tmp_path / "out" / FINE_NAME, grid=FINE_GRID)
    wanted = quantise(numbers.astype(np.float64), Bounds(0.0, 1e6), grid=FINE_GRID)
    assert (table.columns[0] == wanted).all()


@pytest.mark.slow
def test_row_numbers_of_faults_count_the_source_with_and_without_roster(tmp_path: Path) -> None:
    rows = [[f"p{i}", "1", "0", "1"] for i in range(300_000)]
    rows[200_000][2] = rows[250_000][2] = CANARY
    source = FileSource(write_csv(tmp_path / "x.csv", rows))
    roster = tmp_path / "ids.txt"
    roster.write_text("".join(f"p{i}\n" for i in reversed(range(200_000, 300_000))))
    for chosen in (None, roster):
        message = refuse(source, tmp_path / "out", roster=chosen)
        assert "'b' has 2 values that are no numbers, the first in data row 200001" in message


FAULTS: dict[str, tuple[bytes, list[str]]] = {
    "text": (f"id,a,b,y\np1,1,{CANARY},2\n".encode(), ["'b'", "1 values", "data row 1"]),
    "texts": (f"id,a,b,y\np1,{CANARY},{CANARY},2\n".encode(), ["'a'", "(1 other columns too)"]),
    "decimal comma": (b'id,a,b,y\np1,"1,5",0,2\n', ["'a' has 1 values that are no numbers"]),
    "repeated id": (
        f"id,a,b,y\n{CANARY},1,0,2\n{CANARY},1,0,2\n".encode(),
        ["1 rows", "data row 2"],
    ),
    "empty id": (b"id,a,b,y\np1,1,0,2\n,1,0,2\n", ["1 rows have no id in 'id'", "data row 2"]),
    "missing id": (b"id,a,b,y\nNA,1,0,2\n", ["have no id"]),
    "no column": (b"id,a,B,y\np1,1,0,2\n", ["no column 'b'", "'id', 'a', 'B', 'y'"]),
    "no id column": (b"ID,a,b,y\np1,1,0,2\n", ["no column 'id'"]),
    "two columns": (b"id,a,b,y,a\np1,1,0,2,3\n", ["2 columns are named 'a'"]),
    "no header": (f"{CANARY},1,0,2\np2,1,0,2\n".encode(), ["no column 'a'", "header line"]),
    "long row": (
        f"id,a,b,y\np1,1,0,2\n{CANARY},1,0,2,3\n".encode(),
        ["line 3 has 5 fields", "has 4"],
    ),
    "short row": (f"id,a,b,y\n{CANARY},1,0\np2,1,0,1\n".encode(), ["line 2 has 3 fields"]),
    "open quote": (f'id,a,b,y\n"{CANARY},1,0,2\n'.encode(), ["line 2", "quotes"]),
    "other encoding": (f"id,a,b,y\n{CANARY}\xe9,1,0,2\n".encode("latin-1"), ["UTF-8"]),
    "late encoding": (
        b"id,a,b,y\n" + b"p,1,0,2\n" * 9000 + f"{CANARY}\xe9,1,0,2\n".encode("latin-1"),
        ["line 9002 is not UTF-8"],
    ),
    "utf-16": ("id,a,b,y\np1,1,0,2\n".encode("utf-16-le"), ["utf-16-le"]),
    "spreadsheet's separator": (b"sep=;\r\nid;a;b;y\r\np1;1;0;2\r\n", ["sep=", "delete it"]),
    "empty file": (b"", ["first line is empty"]),
    "no rows": (b"id,a,b,y\n", ["no rows"]),
    "cut gzip": (gzip.compress(b"id,a,b,y\np1,1,0,2\n" * 999)[:-30], ["gzip is damaged"]),
    "gzip checksum": (gzip.compress(b"id,a,b,y\np1,1,0,2\n")[:-8] + bytes(8), ["gzip is damaged"]),
    "broken parquet": (b"PAR1" + bytes(100), ["cannot be read"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_refused_in_one_line_without_data(tmp_path: Path, fault: str) -> None:
    content, said = FAULTS[fault]
    path = tmp_path / "x.data"
    path.write_bytes(content)
    message = refuse(FileSource(path), tmp_path / "out")
    assert message.startswith(f"{path}: ")
    assert [part for part in said if part not in message] == []


def test_a_csv_called_parquet_is_refused(tmp_path: Path) -> None:
    source = FileSource(write_csv(tmp_path / "x.parquet", ROWS))
    assert "not a Parquet file" in refuse(source, tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            f"p1\n{CANARY}\np2\n{CANARY}\n".encode(),
            "1 lines repeat an earlier id, the first is line 4",
        ),
        (b"p1\n\np2\n", "line 2 is empty"),
        (b"p1\n  \n", "line 2 is empty"),
        (b"", "the roster is empty"),
        (b"p1\n\xe9\n", "not UTF-8"),
        (f"{CANARY}\n".encode(), "no row of a person on the roster"),
    ],
)
def test_a_faulty_roster_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    roster = tmp_path / "ids.txt"
    roster.write_bytes(content)
    assert said in refuse(make_csv(tmp_path), tmp_path / "out", roster=roster)


def test_a_person_on_the_roster_with_two_rows_is_refused(tmp_path: Path) -> None:
    source = FileSource(write_csv(tmp_path / "x.csv", [*ROWS, [CANARY, "1", "1", "1"]] * 2))
    roster = tmp_path / "ids.txt"
    roster.write_text(f"{CANARY}\n")
    message = refuse(source, tmp_path / "out", roster=roster)
    assert "1 rows repeat an earlier id in 'id'; the first is data row 8" in message


def test_a_roster_without_id_column_or_file_is_refused(tmp_path: Path) -> None:
    source, roster = make_csv(tmp_path), tmp_path / "absent"
    assert "needs the id column" in refuse(source, tmp_path / "o", schema=UNNAMED, roster=roster)
    assert "cannot read the roster" in refuse(source, tmp_path / "o", roster=roster)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec 1", "not valid SQL"),
        ("", "one SELECT"),
        ("select 1; select 2", "one SELECT"),
        ("create table t as select 1", "one SELECT"),
        ("copy (select 1) to '/tmp/x'", "one SELECT"),
        ("select ? as a", "one SELECT without parameters"),
        ("select * from nowhere", "does not exist"),
        ("select * from ROWS", "does not exist"),
        ("select nothing from range(3)", "does not exist"),
        ("select * from 'absent.csv'", "cannot be read"),
        (f"select '{CANARY}'::int as a, 0 as b, 0 as y, 'p' as id", "cannot be converted"),
        ("select date '2020-01-01' as a, 0 as b, 0 as y, 'p' as id", "'a' holds DATE values"),
        ("select [1] as a, 0 as b, 0 as y, 'p' as id", "'a' holds INTEGER[] values"),
        ("select 1 as a, 0 as b, 0 as y, 7.0::double as id", "'id' holds floating-point"),
        (f"select '{CANARY}' as a, 0 as b, 0 as y, 'p' as id", "'a' has 1 values"),
        ("install httpfs", "one SELECT"),
        ("select * from 'https://example.invalid/x.parquet'", ""),
    ],
)
def test_a_faulty_query_is_refused(tmp_path: Path, query: str, said: str) -> None:
    message = refuse(QuerySource(query), tmp_path / "out")
    assert message.startswith("the query: ")
    assert said in message


def test_a_query_keeps_its_order(tmp_path: Path) -> None:
    query = "select i::double as a from range(500000) t(i) order by hash(i)"
    schema = Schema(features=(column("a", 0.0, 5e5),))
    ingest(schema, QuerySource(query), out=tmp_path / "out")
    with duckdb.connect() as database:
        wanted = np.asarray(database.execute(query).fetchnumpy()["a"])
    table = Table.open(tmp_path / "out" / FINE_NAME, grid=FINE_GRID)
    assert (table.columns[0] == quantise(wanted, Bounds(0.0, 5e5), grid=FINE_GRID)).all()


def test_a_database_that_others_read_can_be_read_too(tmp_path: Path) -> None:
    source = make_duckdb(tmp_path)
    assert isinstance(source, QuerySource)
    program = (
        "import duckdb, sys; d = duckdb.connect(sys.argv[1], read_only=True); print(); input()"
    )
    reader = [sys.executable, "-c", program, str(source.database)]
    with subprocess.Popen(reader, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ingest(SCHEMA, source, out=tmp_path / "out")
        other.communicate(b"\n")
    assert stored(tmp_path / "out") == expected(NUMBERS)


def test_duckdb_fetches_no_extension_and_sees_no_variable_of_ours(tmp_path: Path) -> None:
    extensions = ("autoinstall_known_extensions", "autoload_known_extensions")
    with connect(tmp_path, n_columns=1) as database:
        for name in (*extensions, "python_enable_replacements"):
            answer = database.execute("select current_setting(?)", [name]).fetchone()
            assert answer == (False,)


@pytest.mark.parametrize(
    ("database", "said"),
    [
        ("absent.duckdb", "no such DuckDB database"),
        ("sqlite:///absent.db", "no such SQLite file"),
        (f"nosuch://user:{CANARY}@host/db", "NoSuchModuleError"),
        (f"postgresql+nodriver://user:{CANARY}@host/db", "NoSuchModuleError"),
    ],
)
def test_an_unusable_database_is_refused_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, said: str
) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    assert said in refuse(QuerySource("select 1", database=database), tmp_path / "out")
    assert not (tmp_path / "absent.db").exists()


def test_a_file_of_another_kind_is_no_database(tmp_path: Path) -> None:
    make_sqlite(tmp_path)
    source = QuerySource("select 1", database=str(tmp_path / "rows.db"))
    assert "cannot be read" in refuse(source, tmp_path / "out")


@pytest.mark.parametrize("query", ["select nothing from people", "delete from people", "selec"])
def test_a_faulty_query_to_a_server_is_refused(tmp_path: Path, query: str) -> None:
    source = make_sqlite(tmp_path)
    assert isinstance(source, QuerySource)
    refuse(QuerySource(query, database=source.database), tmp_path / "out")
    ingest(SCHEMA, source, out=tmp_path / "out")  # and nothing was deleted
    assert stored(tmp_path / "out") == expected(NUMBERS)


def test_values_of_a_server_may_have_any_type(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    query = "select 7 as a union all select 2.5 union all select '3' union all select null"
    schema = Schema(features=(column("a"),))
    ingest(schema, QuerySource(query, database="sqlite://"), out=tmp_path / "out")
    assert stored(tmp_path / "out") == expected([[7.0, 2.5, 3.0, 5.0]], schema)
    blob = QuerySource("select x'37' as a", database="sqlite://")
    assert "'a' has 1 values" in refuse(blob, tmp_path / "out", schema=schema)


def test_a_failing_ingest_leaves_the_earlier_table_untouched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest(SCHEMA, make_csv(tmp_path), out=out)

    def fail(columns: Sequence[Column]) -> Sequence[Column]:
        assert (out / ".ingest").exists()
        raise OSError(28, "No space left on device")

    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(BadInput, match="space"):
        ingest(SCHEMA, make_query(tmp_path), out=out, progress=fail)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_an_interrupted_ingest_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(columns: Sequence[Column]) -> Sequence[Column]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / "out", progress=interrupt)
    assert not (tmp_path / "out").exists()


def test_what_a_killed_ingest_left_is_removed_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / ".ingest" / "spill").mkdir(parents=True)
    (out / ".ingest" / "staging.duckdb").write_text(CANARY)
    (out / f".{COARSE_NAME}.abc.tmp").write_text(CANARY)
    ingest(SCHEMA, make_csv(tmp_path), out=out)
    assert sorted(path.name for path in out.iterdir()) == [COARSE_NAME, FINE_NAME]


def test_two_ingests_into_one_folder_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    other = os.open(tmp_path / "out", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(DatasetBusy):
        ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / "out")
    os.close(other)
    ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / "out")


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    assert "path with '?'" in refuse(make_csv(tmp_path), tmp_path / "out?")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="write"):
        ingest(SCHEMA, make_csv(tmp_path), out=tmp_path / "file" / "out")
