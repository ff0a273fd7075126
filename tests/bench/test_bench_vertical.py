"""The benchmark's own arithmetic, its floor, and both of its measurements on tiny sizes."""

import asyncio
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.bench.vertical.echo import Order, Server, Syncs
from colonnade.bench.vertical.memory import Peak, _resident_tables, party_memory, write_tables
from colonnade.bench.vertical.speed import SpeedEffort, measure_speed
from colonnade.bench.vertical.uplink import JobSize, ratios_of, uplink_ratios
from colonnade.data.table import open_pair


class Stream:
    """A client's stream that answers at once and remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reads = 0

    async def write(self, message: bytes) -> None:
        self.sent.append(message)

    async def read(self) -> bytes:
        self.reads += 1
        return b""


class CountedSyncs(Syncs):
    """Counts what is made durable."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes: list[int] = []

    def commit(self, size: int = 4096) -> None:
        self.sizes.append(size)
        super().commit(size)


def test_a_floor_round_is_one_message_each_way_for_each_party_and_one_commit(
    tmp_path: Path,
) -> None:
    syncs = CountedSyncs(tmp_path / "raw")

    async def measure() -> tuple[float, list[Stream]]:
        server, streams = Server(syncs), [Stream() for _ in range(3)]
        opened: Any = server._streams
        opened.extend(streams)
        order = Order(parties=2, rounds=5, task_bytes=366, submission_bytes=292)
        return await server.measure(order), streams

    seconds, streams = asyncio.run(measure())
    syncs.close()
    assert seconds > 0.0
    task = struct.pack("<I", 292).ljust(366, b"\0")
    for stream in streams[:2]:
        assert stream.sent == [task] * 5
        assert stream.reads == 5
    assert streams[2].sent == []
    assert syncs.sizes == [2 * (366 + 292)] * 5


def test_a_large_commit_stays_within_the_blocks_that_the_file_has(tmp_path: Path) -> None:
    syncs = Syncs(tmp_path / "raw")
    size = (tmp_path / "raw").stat().st_size
    for asked in (1, 4096, 200_000, 100_000, 10**7):
        syncs.commit(asked)
    syncs.close()
    assert (tmp_path / "raw").stat().st_size == size


@pytest.mark.slow
def test_speed_compares_real_processes_with_an_echo_of_the_same_sizes(tmp_path: Path) -> None:
    (row,) = measure_speed(tmp_path, (2,), effort=SpeedEffort(rounds=8, repeats=1))
    assert row["parties"] == 2
    assert row["ratio"] == pytest.approx(row["floor_rounds_per_s"] / row["rounds_per_s"], rel=0.02)
    assert row["rounds_per_s"] > 0.0
    assert row["floor_rounds_per_s"] > 0.0
    # A task has 256 zeros of one byte, a job's name of 64 and four coefficients of 1 to 6 bytes; a
    # submission has the name twice, a receipt of 120 to 130 bytes and a choice of 4.
    assert 256 + 64 + 4 < row["task_bytes"] < 256 + 64 + 4 * 6 + 40
    assert 2 * 64 + 120 + 4 < row["submission_bytes"] < 2 * 64 + 130 + 4 + 60


def test_uplink_ratios_are_those_computed_by_hand() -> None:
    # Each of 4 parties shares 3 features of 2048 entries of 6 bits (1536 bytes), chooses 24 times
    # (4 bytes each) and opens with two sums of 12 bits for each of its 15 features (45 bytes); the
    # first adds the label (48 bytes).
    ours = 12 * 1536 + 4 * 24 * 4 + 3 * 45 + 48
    row = ratios_of(JobSize(n_rows=100_000).spec())
    assert row["payload_bytes"] == ours
    assert row["vs_columns"] == round(100_000 * 60 * 4 / ours, 2)
    assert row["vs_one_shot"] == round(60 * 1536 / ours, 2)
    assert row["vs_float64"] == round(12 * 2048 * 8 / ours, 2)


def test_uplink_grows_by_little_while_columns_grow_tenfold() -> None:
    small, large = uplink_ratios()
    assert (small["n"], large["n"]) == (100_000, 1_000_000)
    assert small["payload_bytes"] <= large["payload_bytes"] < 1.05 * small["payload_bytes"]
    assert large["vs_columns"] > 9.5 * small["vs_columns"]


def test_only_mapped_tables_count_as_tables() -> None:
    mappings = """\
7f00-7f10 r--s 00001000 fe:00 12 /home/party/data/coarse.table
Size:                100 kB
Rss:                  40 kB
Pss:                  40 kB
7f20-7f30 rw-p 00000000 00:00 0
Rss:                   8 kB
7f40-7f50 r--s 00001000 fe:00 13 /home/party/data/fine.table
Rss:                   2 kB
VmFlags: rd mr me ms
"""
    assert _resident_tables(mappings) == 42 * 1024


def test_a_look_sees_memory_that_was_taken() -> None:
    before, after = Peak(), Peak()
    before.look(os.getpid())
    taken = np.ones(8 << 20)  # 64 MiB
    after.look(os.getpid())
    # A few MiB may be given back meanwhile.
    assert after.anonymous - before.anonymous > taken.nbytes - (8 << 20)
    assert after.beyond_tables >= after.anonymous


def test_written_tables_are_a_pair_and_whole(tmp_path: Path) -> None:
    write_tables(tmp_path, 1000, 5)
    for table in open_pair(tmp_path):
        table.verify()
        assert table.columns.shape == (5, 1000)
        assert table.label is not None


@pytest.mark.slow
def test_party_memory_is_measured_while_a_job_runs(tmp_path: Path) -> None:
    found = party_memory(tmp_path, 2000, 5)
    # An interpreter with NumPy, numba and gRPC has tens of megabytes; the table has 24 kB.
    assert 20.0 < found["memory_mb"] < found["resident_mb"] < 400.0
    assert found["mapped_mb"] == 0.0
