import hashlib
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.core.arrays import AnyArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, grid_dtype
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, TableWriter, open_pair
from colonnade.data.table_header import TableColumn, TableHeader

N_ROWS = 37  # 74 and 148 bytes: every column needs padding
COLUMNS = (
    TableColumn("age", "feature", bounds=Bounds(0.0, 110.0), fill=55.0),
    TableColumn('od"d, é', "feature", bounds=Bounds(-1e100, 1e100), fill=0.0),
    TableColumn("y", "label", bounds=Bounds(0.0, 1.0), fill=0.5),
)


def header(n_rows: int = N_ROWS, *, grid: int = GRID) -> TableHeader:
    return TableHeader("ab" * 32, n_rows, columns=COLUMNS, grid=grid)


def values(n_rows: int = N_ROWS, *, grid: int = GRID, seed: int = 0) -> AnyArray:
    rng = np.random.default_rng(seed)
    block = rng.integers(-grid, grid, size=(len(COLUMNS), n_rows), endpoint=True)
    return block.astype(grid_dtype(grid))


def write(path: Path, block: AnyArray, *, grid: int = GRID, fine_digest: str | None = None) -> str:
    with TableWriter(path, header(block.shape[1], grid=grid)) as writer:
        for column in block:
            writer.append(column)
        digest = writer.seal(fine_digest)
        writer.publish()
    return digest


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / COARSE_NAME
    write(path, values())
    return path


def refuse(content: bytes, folder: Path) -> str:
    """Return the message with which a file of ``content`` is refused, on opening or checking."""
    path = folder / "faulty.table"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        Table.open(path).verify()
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("grid", [GRID, FINE_GRID])
def test_what_is_written_is_read(tmp_path: Path, grid: int) -> None:
    block = values(grid=grid)
    digest = write(tmp_path / "t", block, grid=grid)
    table = Table.open(tmp_path / "t", grid=grid)
    table.verify()
    assert table.label is not None
    assert (table.columns == block[:2]).all()
    assert (table.label == block[2]).all()
    assert table.columns.dtype == table.label.dtype == grid_dtype(grid)
    assert table.columns.shape == (2, N_ROWS)
    assert (table.n_rows, table.names) == (N_ROWS, ("age", 'od"d, é'))
    assert table.bounds == (Bounds(0.0, 110.0), Bounds(-1e100, 1e100))
    assert table.header.columns == COLUMNS
    assert table.content_digest == digest == hashlib.sha256(block.tobytes()).hexdigest()


def test_a_table_without_label_has_none(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t", replace(header(), columns=COLUMNS[:1])) as writer:
        writer.append(values()[0])
        writer.seal()
        writer.publish()
    table = Table.open(tmp_path / "t")
    assert table.label is None
    assert (table.columns == values()[:1]).all()


def test_a_million_rows_survive(tmp_path: Path) -> None:
    block = values(10**6)
    write(tmp_path / "t", block)
    table = Table.open(tmp_path / "t")
    table.verify()
    assert (table.columns == block[:2]).all()


def test_columns_are_contiguous_aligned_and_read_only(written: Path) -> None:
    table = Table.open(written)
    for column in table.columns:
        assert column.flags.c_contiguous
        assert column.ctypes.data % 64 == 0
    assert table.columns.ctypes.data % 4096 == 0
    with pytest.raises(ValueError, match="read-only"):
        table.columns[0, 0] = 1


@pytest.mark.slow
def test_every_damaged_byte_before_the_columns_is_noticed(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    for position in range(4096):
        damaged = bytearray(content)
        damaged[position] ^= 1
        assert "ingest" in refuse(bytes(damaged), tmp_path)  # what to do about it


@settings(deadline=None)  # a busy machine is no failure
@given(position=st.integers(0, 3 * 2 * N_ROWS - 1), bit=st.integers(0, 7))
def test_every_damaged_bit_of_a_column_is_noticed(
    written: Path, tmp_path_factory: pytest.TempPathFactory, position: int, bit: int
) -> None:
    column, offset = divmod(position, 2 * N_ROWS)
    damaged = bytearray(written.read_bytes())
    damaged[4096 + column * 128 + offset] ^= 1 << bit
    message = refuse(bytes(damaged), tmp_path_factory.mktemp("damaged"))
    assert "damaged" in message or "off the grid" in message


def test_every_shorter_file_is_refused(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    for size in [*range(0, 1500, 7), 4095, 4096, 4097, len(content) - 64, len(content) - 1]:
        assert "ingest" in refuse(content[:size], tmp_path)


def test_each_fault_has_its_own_words(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    assert "foreign bytes" in refuse(content + b"\0", tmp_path)
    assert "cut short" in refuse(content[:-1], tmp_path)
    assert "not a Colonnade table" in refuse(b"PAR1" + bytes(8192), tmp_path)
    assert "not a Colonnade table" in refuse(b"", tmp_path)
    assert "format version 1" in refuse(content[:8] + b"\1\0\0\0" + content[12:], tmp_path)
    assert "header is damaged" in refuse(content.replace(b'"age"', b'"agf"', 1), tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"dtype":"int16"', b'"dtype":"int32"'),
        (b'"grid":16384', b'"grid":16385'),
        (b'"n_rows":37', b'"n_rows":0 '),
        (b'"n_rows":37', b'"n_rows":-1'),
        (b'"role":"label"', b'"role":"lapel"'),
        (b'"low":0.0', b'"low":NaN'),
        (b'"low":0.0', b'"lov":0.0'),
        (b'"name":"y"', b'"nama":"y"'),
        (b'"n_rows":37', b'"n_rows" :7'),
        (b'{"client_ids"', b'["client_ids"'),
        (b'"client_ids":""', b'"client_ids":[]'),
        (b'"client_ids":""', b'"client_ids": 7'),
    ],
)
def test_a_strange_header_is_refused_even_with_a_right_digest(
    written: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    content = written.read_bytes()
    assert old in content
    assert len(old) == len(new)
    n_text = int.from_bytes(content[12:16], "little")
    head = content[: 16 + n_text].replace(old, new)
    strange = head + hashlib.sha256(head).digest() + content[len(head) + 32 :]
    assert "header" in refuse(strange, tmp_path)


def test_the_fine_table_is_not_taken_for_the_coarse_one(tmp_path: Path) -> None:
    write(tmp_path / "t", values(grid=FINE_GRID), grid=FINE_GRID)
    with pytest.raises(BadInput, match=r"int32.*int16"):
        Table.open(tmp_path / "t")


@pytest.mark.parametrize("name", ["absent", "file/coarse.table"])
def test_a_folder_without_a_table_is_refused_and_told_how_to_get_one(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="party ingest"):
        Table.open(tmp_path / name)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="read"):
        Table.open(tmp_path / ".")


def test_a_pair_of_different_ingests_is_refused(tmp_path: Path) -> None:
    fine = write(tmp_path / FINE_NAME, values(grid=FINE_GRID), grid=FINE_GRID)
    write(tmp_path / COARSE_NAME, values(), fine_digest=fine)
    assert [table.header.grid for table in open_pair(tmp_path)] == [GRID, FINE_GRID]
    write(tmp_path / FINE_NAME, values(grid=FINE_GRID, seed=1), grid=FINE_GRID)
    with pytest.raises(BadInput, match="different ingests"):
        open_pair(tmp_path)


def test_files_are_private_to_the_user(written: Path) -> None:
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_a_writer_left_early_leaves_the_earlier_table_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, values())
    before = path.read_bytes()
    with TableWriter(path, header()) as writer:
        writer.append(values(seed=1)[0])
    with TableWriter(path, header()) as writer:
        for column in values(seed=1):
            writer.append(column)
        writer.seal()  # and never published
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "column",
    [
        np.zeros(N_ROWS - 1, dtype=np.int16),
        np.zeros(N_ROWS, dtype=np.int32),
        np.zeros((N_ROWS, 1), dtype=np.int16),
        np.full(N_ROWS, GRID + 1, dtype=np.int16),
        np.full(N_ROWS, -(2**15), dtype=np.int16),
    ],
)
def test_a_column_of_other_shape_type_or_range_is_refused(tmp_path: Path, column: AnyArray) -> None:
    with (
        TableWriter(tmp_path / "t", header()) as writer,
        pytest.raises(ValueError, match=r"column|grid"),
    ):
        writer.append(column)


def test_a_table_that_lacks_columns_cannot_be_sealed(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t", header()) as writer:
        writer.append(values()[0])
        with pytest.raises(ValueError, match="1 of 3"):
            writer.seal()


@pytest.mark.parametrize(
    ("n_rows", "columns"),
    [(0, COLUMNS), (5, ()), (5, COLUMNS[2:]), (5, COLUMNS[::-1]), (5, (*COLUMNS, COLUMNS[2]))],
)
def test_a_header_without_rows_or_features_or_with_two_labels_is_refused(
    n_rows: int, columns: tuple[TableColumn, ...]
) -> None:
    with pytest.raises(ValueError, match="table"):
        TableHeader("ab" * 32, n_rows, columns=columns)


def test_strided_columns_are_written_in_order(tmp_path: Path) -> None:
    block = np.ascontiguousarray(values().T).T
    assert not block[0].flags.c_contiguous
    write(tmp_path / "t", block)
    assert (Table.open(tmp_path / "t").columns == values()[:2]).all()


def test_parts_in_any_order_make_the_same_file(tmp_path: Path) -> None:
    block = values()
    write(tmp_path / "t", block)
    with TableWriter(tmp_path / "u", header()) as writer:
        for place in (2, 0, 1):
            writer.put(place, 10, block[place][10:])
            writer.put(place, 0, block[place][:10])
        writer.seal()
        writer.publish()
    assert (tmp_path / "u").read_bytes() == (tmp_path / "t").read_bytes()


@pytest.mark.parametrize(
    ("place", "first", "column"),
    [
        (3, 0, np.zeros(2, np.int16)),
        (0, N_ROWS - 1, np.zeros(2, np.int16)),
        (0, -1, np.zeros(2, np.int16)),
        (0, 0, np.zeros(2, np.int32)),
        (0, 0, np.full(2, GRID + 1, np.int16)),
    ],
)
def test_a_part_of_other_place_type_or_range_is_refused(
    tmp_path: Path, place: int, first: int, column: AnyArray
) -> None:
    with (
        TableWriter(tmp_path / "t", header()) as writer,
        pytest.raises(ValueError, match=r"column|grid"),
    ):
        writer.put(place, first, column)


def test_a_table_that_lacks_rows_cannot_be_sealed(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t", header()) as writer:
        for place, column in enumerate(values()):
            writer.put(place, 0, column[: N_ROWS - (place == 1)])
        with pytest.raises(ValueError, match="2 of 3"):
            writer.seal()
