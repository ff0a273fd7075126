"""How much memory a party needs besides the table that it maps.

The tables are written column by column, as an ingest does, and a job is run by real processes while
the kernel's own count of the party's memory is read again and again. A second party with a few
columns takes part, so that the first is sent sketches and rebuilds the others' part of every row.
"""

import contextlib
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.bench.processes import beside, memory_of
from colonnade.bench.scratch import say
from colonnade.bench.vertical.jobs import job_of
from colonnade.core.arrays import AnyArray
from colonnade.core.errors import JobEnded
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds
from colonnade.data.table import COARSE_NAME, FINE_NAME, TableWriter
from colonnade.data.table_header import TableColumn, TableHeader
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.processes import Processes
from colonnade.simulate.sites import Site, SiteColumn

ROWS, FEATURES = 1_000_000, 100
QUICK_ROWS = 200_000

LARGE, SMALL = "large", "small"
_SMALL_FEATURES = 2
_BOUNDS = Bounds(-1.0, 1.0)
_CAP = units_down(100.0)
_UNITS = units_down(0.01)
_ROUNDS, _SHARES, _SKETCH_DIM = 6, 3, 2048
_LOOK_S = 0.01
_TABLES = (COARSE_NAME, FINE_NAME)


@dataclass(slots=True)
class Peak:
    """The most memory that a process was seen to have, in bytes."""

    anonymous: int = 0  # its own pages
    beyond_tables: int = 0  # resident, without the pages of mapped tables
    tables: int = 0  # resident pages of mapped tables
    looks: int = 0

    def look(self, pid: int) -> None:
        """Look once."""
        status = memory_of(pid)
        self.anonymous = max(self.anonymous, status.get("RssAnon", 0))
        tables = _resident_tables(Path(f"/proc/{pid}/smaps").read_text())
        self.tables = max(self.tables, tables)
        self.beyond_tables = max(self.beyond_tables, status.get("VmRSS", 0) - tables)
        self.looks += 1


@contextlib.contextmanager
def watched(pid: int) -> Iterator[Peak]:
    """Look at a process until the end of the block."""
    peak = Peak()

    def watch(stop: threading.Event) -> None:
        while not stop.wait(_LOOK_S):
            with contextlib.suppress(OSError):  # it may have ended
                peak.look(pid)

    with beside(watch):
        yield peak


def party_memory(
    folder: Path,
    n_rows: int = ROWS,
    n_features: int = FEATURES,
) -> dict[str, float]:
    """Run a job and return the party's peak memory.

    Parameters
    ----------
    folder
        Scratch space: 6 bytes for each value.

    Returns
    -------
    dict
        ``memory_mb`` are the party's own (anonymous) pages at their peak; ``resident_mb`` counts
        the code of libraries too; ``mapped_mb`` is the table that every job reads.
    """
    say(f"writing a table of {n_rows} rows and {n_features} columns")
    federation = found(folder / "memory")
    for party, count in ((LARGE, n_features), (SMALL, _SMALL_FEATURES)):
        write_tables(federation.folder / party / "data", n_rows, count)
    say(f"running a job on {n_rows} rows and {n_features} columns")
    with Processes(federation, folder / "memory-logs") as processes:
        pid = processes.process(LARGE).pid
        with watched(pid) as peak, processes.client() as client:
            offers = processes.wait_for_parties(client)
            job = job_of(
                offers,
                rounds=_ROUNDS,
                shares=_SHARES,
                sketch_dim=_SKETCH_DIM,
                units=_UNITS,
                mean_units=_UNITS,
            )
            job_id = client.submit(job, again=True)
            for view in client.watch(job_id):
                if view.ended and view.state != "finished":
                    raise JobEnded(f"the job ended: {view.reason}")
    return {
        "n_rows": n_rows,
        "n_features": n_features,
        "memory_mb": round(peak.anonymous / 1e6, 1),
        "resident_mb": round(peak.beyond_tables / 1e6, 1),
        "mapped_mb": round(2 * n_rows * (n_features + 1) / 1e6, 1),
    }


def _resident_tables(text: str) -> int:
    """Return the resident bytes of mapped tables, from a list of mappings."""
    total, inside = 0, False
    for line in text.splitlines():
        if line[:1].islower() or line[:1].isdigit():  # an address range opens a mapping
            inside = line.endswith(_TABLES)
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def found(folder: Path) -> Federation:
    """Make a federation of two parties whose stand-in tables are to be replaced by larger ones."""
    folder.mkdir(parents=True)
    stand_in, label = (SiteColumn(name, _BOUNDS, np.zeros(1)) for name in ("x0", "y"))
    sites = [Site(party, [stand_in], label) for party in (LARGE, SMALL)]
    return create_federation(folder, sites, cap_units=_CAP)


def write_tables(folder: Path, n_rows: int, n_features: int) -> None:
    """Write a coarse and a fine table of random columns and a label, one column at a time."""
    columns = tuple(
        TableColumn(f"x{place}", "feature", _BOUNDS, 0.0) for place in range(n_features)
    )
    columns += (TableColumn("y", "label", _BOUNDS, 0.0),)
    version, digest = secrets.token_hex(16), "0" * 64
    headers = {
        grid: TableHeader(digest, n_rows, columns, grid=grid, dataset_version=version)
        for grid in (GRID, FINE_GRID)
    }
    with (
        TableWriter(folder / FINE_NAME, headers[FINE_GRID]) as fine,
        TableWriter(folder / COARSE_NAME, headers[GRID]) as coarse,
    ):
        label = np.zeros(n_rows, np.int64)
        for place in range(n_features):
            values = _random_column(n_rows, place)
            if place < _SHARES:
                label += values // _SHARES
            _append(fine, coarse, values)
        _append(fine, coarse, label.astype("<i4"))
        coarse.seal(fine_digest=fine.seal())
        fine.publish()
        coarse.publish()


def _random_column(n_rows: int, place: int) -> AnyArray:
    random = np.random.default_rng(place)
    return random.integers(-FINE_GRID, FINE_GRID, n_rows, dtype="<i4", endpoint=True)


def _append(fine: TableWriter, coarse: TableWriter, values: AnyArray) -> None:
    """Write one column on both grids."""
    step = FINE_GRID // GRID
    fine.append(values)
    coarse.append(((values + step // 2) // step).astype("<i2"))
