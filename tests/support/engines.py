"""A table in a folder, every kernel over it, and clusters that lose what they are given."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds
from colonnade.data.table import COARSE_NAME, FINE_NAME, Table, TableWriter, open_pair
from colonnade.data.table_header import PRESENCE, TableColumn, TableHeader
from colonnade.linear.ball import UNIT, Projection
from colonnade.methods.frank_wolfe.residual import CLIP_UNIT, COEF_UNIT, WEIGHT_UNIT
from colonnade.party.data.bounding.counts import FineColumns
from colonnade.party.data.columns import ColumnCache, Columns
from colonnade.party.engine.base import Arguments, RowSource
from colonnade.party.engine.kernels import sketch_plain
from colonnade.party.engine.worker import range_sum
from colonnade.sketching.sparse import SparseSketch

WIDE = Bounds(-1.0, 1.0)
N_FEATURES = 4


def write_table(folder: Path, n_rows: int, *, presence: bool = True) -> tuple[Table, Table]:
    """Write random columns, a label and who is there; return both copies."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    columns = [TableColumn(f"x{j}", "feature", WIDE, 0.0) for j in range(N_FEATURES)]
    columns.append(TableColumn("y", "label", WIDE, 0.0))
    there = np.ones(n_rows, bool)
    if presence:
        columns.append(TableColumn(PRESENCE, PRESENCE, WIDE, 0.0))
        there = random.random(n_rows) < 0.8
    version, step = secrets.token_hex(16), FINE_GRID // GRID
    header = {
        grid: TableHeader("0" * 64, n_rows, tuple(columns), grid=grid, dataset_version=version)
        for grid in (GRID, FINE_GRID)
    }
    with (
        TableWriter(folder / FINE_NAME, header[FINE_GRID]) as fine,
        TableWriter(folder / COARSE_NAME, header[GRID]) as coarse,
    ):
        for _ in range(N_FEATURES + 1):
            values = random.integers(-FINE_GRID, FINE_GRID, n_rows, dtype="<i4", endpoint=True)
            values *= there
            fine.append(values)
            coarse.append(((values + step // 2) // step).astype("<i2"))
        if presence:
            fine.append(there.astype("<i4") * np.int32(FINE_GRID))
            coarse.append(there.astype("<i2") * np.int16(GRID))
        coarse.seal(fine_digest=fine.seal())
        fine.publish()
        coarse.publish()
    return open_pair(folder)


def job_columns(tables: tuple[Table, Table], *, holdout: int = 0, tight: bool = False) -> Columns:
    """Return the columns of a job: the table's own, or made under other bounds or without rows."""
    names = [f"x{j}" for j in range(N_FEATURES)]
    bounds = [Bounds(-0.5, 0.25) if tight and j % 2 else WIDE for j in range(N_FEATURES)]
    return ColumnCache(*tables).of_job(names, bounds, ("y", WIDE), holdout=holdout)


def calls(tables: tuple[Table, Table], columns: Columns) -> dict[str, tuple[RowSource, Arguments]]:
    """Return for every kernel a source and arguments that use all that it can do."""
    random = np.random.default_rng(11)
    flags: dict[str, Any] = {"label": True, "presence": columns.has_presence}
    coef = random.integers(-2 * UNIT, 2 * UNIT, (3, N_FEATURES + 1))
    projection = Projection(coef, random.integers(-(2**30), 2**30, 3))
    projected: dict[str, Any] = {"coef": projection.coef, "offset": projection.offset, **flags}
    sketch = {"sketch": sketch_plain(SparseSketch(b"seed", columns.n_rows, 64))}
    thresholds = random.integers(-FINE_GRID, FINE_GRID, (2, 2)).astype(np.int32)
    others = random.integers(-(2**40), 2**40, (2, 64))
    scored: dict[str, Any] = {
        "coef": random.integers(-COEF_UNIT, COEF_UNIT, N_FEATURES),
        "q": random.integers(-(2**30), 2**30, 64),
        "weight": WEIGHT_UNIT // 2,
        "clip": CLIP_UNIT,
        "offset": 12345,
    }
    clipped: dict[str, Any] = {"place": 1, "mean": 0.1, "deviation": 0.4, "clip": 1.5}
    bucketed = {"n_rows": columns.n_rows, "n_buckets": 37, "seed": b"signs"}
    return {
        "means": (columns, flags),
        "gram": (columns, projected),
        "sketches": (columns, projected | sketch),
        "inner": (columns, projected | sketch | {"others": others}),
        "buckets": (columns, projected | bucketed),
        "scores": (columns, scored | flags | sketch),
        "share": (columns, clipped | sketch),
        "counts": (FineColumns(tables[1], (1, N_FEATURES)), {"thresholds": thresholds}),
    }


@dataclass
class FakeCluster:
    """Calls what a worker would, in this process, and loses what a test says.

    Parameters
    ----------
    lose
        Is asked for every number of a range whether its sum comes back.
    """

    threads: int = 3
    lose: Callable[[int], bool] = lambda _number: False
    error: type[Exception] | None = None
    seen: list[tuple[Any, ...]] = field(default_factory=list)
    _pending: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def n_threads(self) -> int:
        return self.threads

    def submit(self, calls: Mapping[int, tuple[Any, ...]]) -> None:
        self.seen += calls.values()
        self._pending |= calls

    def results(self, wait_s: float) -> Mapping[int, bytes] | None:
        if self.error is not None:
            raise self.error("text of a worker")
        if not self._pending:
            return None
        number, arguments = self._pending.popitem()  # the last comes first
        return {} if self.lose(number) else {number: range_sum(*arguments)}

    def forget(self) -> None:
        self._pending.clear()

    def close(self) -> None:
        return
