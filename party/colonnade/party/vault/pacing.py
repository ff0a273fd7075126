"""When a party's answers leave, and whether they are made in time.

Privacy: what a question takes to answer may depend on how many rows clients have and on noise, so
answers leave ``grid_s`` after their questions, or twice that, four times, and so on. That hides
what is shorter than ``grid_s``, and tells of the rest only which of few lengths it had. How long an
answer took is told to the party's own log and metrics, to nobody else.
"""

import logging
import math
import time
from collections import OrderedDict

import numpy as np

from colonnade.data.table import Table
from colonnade.linear.ball import MAX_OUTPUTS, UNIT, Projection, project, triangle
from colonnade.linear.kernels import score
from colonnade.methods.frank_wolfe.residual import TaskParameters, residual
from colonnade.sketching.sparse import SparseSketch
from colonnade.wire.session import public_text

logger = logging.getLogger(__name__)
_REMEMBERED = 1000  # jobs; a coordinator can name any number
_SAMPLE = 2**16  # rows that an estimate is made on
_REPEATS = 3


class Pace:
    """The grid of one party over all its sessions."""

    def __init__(self, grid_s: float) -> None:
        self._grid_s = grid_s
        self._told: OrderedDict[str, None] = OrderedDict()
        self.late = 0  # answers that took longer than the grid to make
        # Whether an answer is being made: how long that takes must be seen by nobody, by whatever
        # changes meanwhile.
        self.answering = False

    def wait_s(self, elapsed: float, job: str) -> float:
        """Return how long an answer still waits; say once a job if it took longer than the grid."""
        if 0.0 < self._grid_s < elapsed:
            self.late += 1
            job = public_text(job, 12)
            if job not in self._told:
                self._told[job] = None
                if len(self._told) > _REMEMBERED:
                    self._told.popitem(last=False)
                logger.warning(
                    "answer_exceeds_grid job=%s ms=%.0f grid_ms=%.0f advice=%s",
                    job,
                    1000.0 * elapsed,
                    1000.0 * self._grid_s,
                    f"set answer_grid_ms to {advised_ms(elapsed)} so that answer times say nothing",
                )
        return to_grid(elapsed, self._grid_s)


def to_grid(elapsed: float, grid: float) -> float:
    """Return how long to wait until ``grid``, or the next double of it, has gone by."""
    return grid * 2 ** math.ceil(math.log2(max(1.0, elapsed / grid))) - elapsed if grid else 0.0


def advised_ms(longest_s: float) -> int:
    """Return a grid for answers of which one took so long: twice that, in whole tens."""
    return 10 * math.ceil(200.0 * longest_s)


def estimated_s(table: Table) -> float:
    """Return how long the longest answer from a table may take here, without noise and ledger.

    Measured on its first rows: a choice among all features, and the Gram matrix of all. Nothing of
    the result is kept.
    """
    n_rows, n_features = min(table.n_rows, _SAMPLE), min(len(table.names), MAX_OUTPUTS - 1)
    columns = table.columns[:n_features, :n_rows]
    sketch = SparseSketch(bytes(32), n_rows, 16)
    public = TaskParameters(np.ones(n_features, np.int64), np.ones(16, np.int64), weight=1, clip=1)
    each = UNIT * np.eye(n_features, dtype=np.int64)
    projection = Projection(each, np.zeros(n_features, np.int64))

    def longest() -> float:
        times = [time.perf_counter()]
        score(columns, residual(columns, None, public, sketch))
        times.append(time.perf_counter())
        triangle(project(columns, None, projection))
        times.append(time.perf_counter())
        return max(times[1] - times[0], times[2] - times[1])

    longest()  # what is compiled or read from a disk is so only once
    return min(longest() for _ in range(_REPEATS)) * table.n_rows / n_rows
