"""One machine and more and more rows: ingest beside DuckDB's own pass, bounds, a moments job.

A Parquet file is written by DuckDB, which then scans and writes it again: the floor. The party
ingests it, buys bounds, and takes part in a job over moments, by real processes, with a second
party of two columns. Before the job its table's pages are dropped from the cache, so that what the
party then reads from the disk is counted by the kernel.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from colonnade.bench.scratch import say
from colonnade.bench.vertical.memory import LARGE, SMALL, found, watched, write_tables
from colonnade.client import JobOptions
from colonnade.client.builder import build_job
from colonnade.core.errors import JobEnded
from colonnade.core.fixedpoint import Bounds
from colonnade.data.schema import Column, Schema
from colonnade.data.table import COARSE_NAME, FINE_NAME
from colonnade.ledger.create import open_ledger
from colonnade.ledger.gate import Gate
from colonnade.party.data.bounding.bounds import buy_bounds
from colonnade.party.data.dataset import open_dataset
from colonnade.party.data.ingest import ingest
from colonnade.party.data.reading.sources import FileSource
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import OsNoise
from colonnade.simulate.federation import Federation
from colonnade.simulate.processes import Processes

SIZES = ((1_000_000, 100), (10_000_000, 20), (100_000_000, 10))
QUICK_SIZES = ((20_000, 20), (200_000, 20))

_BOUNDS = Bounds(-1.0, 1.0)
_BOUNDS_UNITS = units_down(10.0)
_STEPS = ("ingest_s", "bounds_s", "job_s")
_OPTIONS = JobOptions(method="moments", epsilon=1.0)
_TIMEOUT_S = 3600


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return a row for each size of table, and how time grows with values: slopes on log axes."""
    rows = []
    for number, size in enumerate(QUICK_SIZES if quick else SIZES):
        own = folder / str(number)
        rows.append(_one(own, *size))
        say(json.dumps(rows[-1]))  # a later size may take hours, or what the disk has not
        shutil.rmtree(own)
    return {
        "rows": rows,
        "slope": slope(rows, *_STEPS),
        "slopes": {s: slope(rows, s) for s in _STEPS},
    }


def slope(rows: Sequence[dict[str, Any]], *steps: str) -> float:
    """Return the least-squares slope of the log of steps' seconds over the log of values."""
    xs = [math.log(row["n"] * row["d"]) for row in rows]
    ys = [math.log(sum(row[step] for step in steps)) for row in rows]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - x_mean) ** 2 for x in xs)


def _one(folder: Path, n_rows: int, n_features: int) -> dict[str, Any]:
    federation = found(folder / "federation")
    source, data = folder / "source.parquet", federation.folder / LARGE / "data"
    say(f"writing {n_rows} rows and {n_features} columns")
    write_source(source, n_rows, n_features)
    source_bytes = source.stat().st_size
    duckdb_s = _copy_seconds(source, folder / "copy.parquet")
    say("ingesting them")
    with watched(os.getpid()) as ingesting:
        begin = time.perf_counter()
        ingest(schema_of(n_features), FileSource(source), out=data)
        ingest_s = time.perf_counter() - begin
    source.unlink()
    write_tables(federation.folder / SMALL / "data", n_rows, 2)
    say("buying bounds")
    bounds_s = _bounds_seconds(federation, data)
    say("running a job")
    return {
        "n": n_rows,
        "d": n_features,
        "ingest_s": ingest_s,
        "ingest_mb_per_s": source_bytes / ingest_s / 1e6,
        "ingest_vs_duckdb": duckdb_s / ingest_s,
        "ingest_peak_mb": ingesting.anonymous / 1e6,
        "bounds_s": bounds_s,
        **_job(federation, data),
    }


def _bounds_seconds(federation: Federation, data: Path) -> float:
    """Return how long it takes to open a table and buy bounds of all its columns."""
    begin = time.perf_counter()
    with open_dataset(data) as dataset:
        ledger = open_ledger(federation.ledger(LARGE))
        try:
            buy_bounds(dataset, ledger, Gate(ledger, OsNoise()), units=_BOUNDS_UNITS, label=True)
        finally:
            ledger.close()
    return time.perf_counter() - begin


def _job(federation: Federation, data: Path) -> dict[str, Any]:
    """Run a job over moments; return its seconds, the party's memory and what it read."""
    table_bytes = sum(_drop_pages(data / name) for name in (COARSE_NAME, FINE_NAME))
    with Processes(federation, federation.folder / "logs") as processes:
        pid = processes.process(LARGE).pid
        with watched(pid) as peak, processes.client() as client:
            offers = processes.wait_for_parties(client)
            begin = time.perf_counter()
            job = build_job(offers, _OPTIONS, target="y", timeout_s=_TIMEOUT_S)
            for view in client.watch(client.submit(job)):
                if view.ended and view.state != "finished":
                    raise JobEnded(f"the job ended: {view.reason}")
            took, read = time.perf_counter() - begin, _read_bytes(pid)
    return {
        "job_s": took,
        "peak_mb": peak.anonymous / 1e6,
        "read_over_table": None if read is None else read / table_bytes,
    }


def _drop_pages(path: Path) -> int:
    """Have the kernel forget a file's pages, and return the file's size."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return path.stat().st_size


def _read_bytes(pid: int) -> int | None:
    """Return what a process had read from disks, mapped pages too, where the kernel tells."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                return int(line.split()[1])
    return None


def write_source(path: Path, n_rows: int, n_features: int) -> None:
    """Write a Parquet file of numbers from a hash of row and column, without holding it."""
    picks = [f"hash(i, {j}) / 9223372036854775808.0 - 1.0 AS x{j}" for j in range(n_features)]
    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        database.execute(
            f"COPY (SELECT {', '.join(picks)}, (x0 + x1) / 2 AS y FROM range(?) r(i)) "  # noqa: S608
            "TO ? (FORMAT parquet)",
            [n_rows, str(path)],
        )


def schema_of(n_features: int) -> Schema:
    """Return the schema of `write_source`'s files."""
    names = [*(f"x{j}" for j in range(n_features)), "y"]
    *features, label = (Column(name, name, _BOUNDS, 0.0) for name in names)
    return Schema(tuple(features), label)


def _copy_seconds(source: Path, target: Path) -> float:
    """Return how long DuckDB takes to scan a file and write it as Parquet."""
    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        begin = time.perf_counter()
        database.execute(
            "COPY (SELECT * FROM read_parquet(?)) TO ? (FORMAT parquet)",
            [str(source), str(target)],
        )
        took = time.perf_counter() - begin
    target.unlink()
    return took
