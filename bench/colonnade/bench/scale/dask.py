"""A cluster of workers on this machine: equal integers, also after a kill, and what it costs.

Every kind of sum that the methods use is computed on a cluster and on this machine alone. The
overhead is the cluster's time over this machine's, for a Gram matrix, once both are warm: with as
many workers as processors it is what scheduling, TLS and separate processes cost.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.memory import write_tables
from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import Bounds
from colonnade.core.threads import cpu_count
from colonnade.data.table import open_pair
from colonnade.linear.ball import UNIT, Projection
from colonnade.party.data.columns import ColumnCache, Columns
from colonnade.party.engine.base import Engine
from colonnade.party.engine.cluster import DaskCluster, start_cluster
from colonnade.party.engine.dask import DaskEngine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.own_rows import OwnRows
from colonnade.sketching.sparse import SparseSketch

_ROWS, _QUICK_ROWS, _FEATURES = 20_000_000, 500_000, 20
_REPEATS = 3
_WIDE = Bounds(-1.0, 1.0)


class Killing:
    """A cluster one of whose workers is killed once the first sum of a range has come."""

    def __init__(self, cluster: DaskCluster) -> None:
        self._cluster, self.killed = cluster, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def results(self, wait_s: float) -> Mapping[int, bytes] | None:
        """Return sums of ranges; the first time, then kill a worker."""
        found = self._cluster.results(wait_s)
        if found and not self.killed:
            os.kill(self._cluster.worker_pids()[0], signal.SIGKILL)
            self.killed = True
        return found


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return whether sums are equal, also after a worker was killed, and the overhead."""
    n_rows, workers = _QUICK_ROWS if quick else _ROWS, max(2, cpu_count())
    say(f"writing {n_rows} rows and {_FEATURES} columns")
    write_tables(folder, n_rows, _FEATURES)
    names = [f"x{place}" for place in range(_FEATURES)]
    columns = ColumnCache(*open_pair(folder)).of_job(names, [_WIDE] * _FEATURES, ("y", _WIDE))
    sums = _sums(columns)
    say(f"starting {workers} workers")
    cluster = start_cluster(workers)
    try:
        engine, killing = DaskEngine(cluster), Killing(cluster)
        here = {name: sum_(LOCAL) for name, sum_ in sums.items()}
        equal = all(np.array_equal(sum_(engine), here[name]) for name, sum_ in sums.items())
        alone, together = (_seconds(sums["gram"], each) for each in (LOCAL, engine))
        # Many small ranges, so that the kill comes in the middle of them.
        many = DaskEngine(killing, least_rows=n_rows // 64)
        after = np.array_equal(sums["gram"](many), here["gram"])
    finally:
        cluster.close()
    found = {
        "workers": workers,
        "n": n_rows,
        "d": _FEATURES,
        "equal": equal,
        "equal_after_kill": bool(after) and killing.killed,
        "overhead": together / alone,
    }
    return {"dask": found}


def _sums(columns: Columns) -> dict[str, Callable[[Engine], IntArray]]:
    size = _FEATURES + 1
    projection = Projection(np.eye(size, dtype=np.int64) * (UNIT // 4), np.zeros(size, np.int64))
    sketch = SparseSketch(b"bench", columns.n_rows, 2048)

    def rows(engine: Engine) -> OwnRows:
        return OwnRows(columns, True, False, engine)

    return {
        "means": lambda engine: rows(engine).sums(label=True),
        "gram": lambda engine: rows(engine).gram(projection),
        "sketches": lambda engine: rows(engine).sketches(projection, sketch),
    }


def _seconds(call: Callable[[Engine], object], engine: Engine) -> float:
    took = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        call(engine)
        took.append(time.perf_counter() - begin)
    return statistics.median(took)
