"""The engine of many machines: Dask's workers sum over ranges of rows of a table that they share.

What is shipped is the name of an installed kernel, a description of columns and public numbers;
what comes back are integers. If workers are killed, the scheduler gives their ranges to others; if
nobody is left, the head computes what is missing itself. The sum is the same in every case, so a
release that was paid for is never lost to a cluster.

Privacy: scheduler and workers see rows and partial sums without noise. They belong to the
organization, as its disk does (see the threat model). Ledger, noise, keys and gate are not shipped.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from colonnade.core.arrays import IntArray
from colonnade.party.engine.base import Arguments, RowSource
from colonnade.party.engine.kernels import is_divisible
from colonnade.party.engine.local import LOCAL
from colonnade.party.engine.ranges import added
from colonnade.party.engine.stored import StoredColumns
from colonnade.party.engine.worker import sum_from_bytes, sum_stored

logger = logging.getLogger(__name__)

_RANGES = 4  # for each processor of the cluster, so that the slowest has little left at the end
_LEAST_ROWS = 2**16
_PATIENCE_S = 30.0  # without any worker, before the head goes on alone
_LOOK_S = 5.0


class Cluster(Protocol):
    """Processes that compute for the head."""

    def n_threads(self) -> int:
        """Return how many ranges are computed at once; 0 if nobody is there."""

    def submit(self, calls: Mapping[int, tuple[Any, ...]]) -> None:
        """Have `range_sum` called; ``calls`` are its arguments by the number of a range."""

    def results(self, wait_s: float) -> Mapping[int, bytes] | None:
        """Wait for sums of ranges; empty if none came in time, None if no more will come."""

    def forget(self) -> None:
        """Let go of all that was submitted."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """Sum over rows on a cluster."""

    cluster: Cluster
    patience_s: float = _PATIENCE_S
    least_rows: int = _LEAST_ROWS

    @property
    def reads_shared(self) -> bool:
        """Workers quantise columns under other bounds as they read them."""
        return True

    def sum(self, kernel: str, source: RowSource, arguments: Arguments) -> IntArray:
        """Return the sum of a kernel over all rows of ``source``."""
        stored = source.stored
        if stored is None or not is_divisible(arguments):
            return LOCAL.sum(kernel, source, arguments)
        missing = dict(enumerate(_ranges(stored, self.cluster.n_threads(), self.least_rows)))
        parts = list[IntArray]()
        for number, part in self._computed(kernel, stored, missing, arguments):
            if not parts or part.shape == parts[0].shape:
                parts.append(part)
                del missing[number]
        if missing:
            logger.warning("engine_alone kernel=%s ranges=%d", kernel, len(missing))
            parts += [
                sum_stored(kernel, stored, span, start, arguments)
                for span, start in missing.values()
            ]
        return added(parts)

    def _computed(
        self,
        kernel: str,
        stored: StoredColumns,
        ranges: Mapping[int, tuple[tuple[int, int], int]],
        arguments: Arguments,
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield sums of ranges as the cluster computes them, until nobody does any more."""
        plain, waited = stored.plain(), 0.0
        calls = {
            number: (kernel, plain, span, start, arguments)
            for number, (span, start) in ranges.items()
        }
        try:
            self.cluster.submit(calls)
            while calls and waited < self.patience_s:
                if (found := self.cluster.results(_LOOK_S)) is None:
                    return
                waited = 0.0 if found or self.cluster.n_threads() else waited + _LOOK_S
                for number, body in found.items():
                    if calls.pop(number, None) is not None:
                        yield number, sum_from_bytes(body)
        except Exception as error:  # noqa: BLE001 - whatever a cluster does, the head can go on
            # Without its text, which may come from a worker and quote what it read.
            logger.warning("engine_failed kernel=%s error=%s", kernel, type(error).__name__)
        finally:
            self.cluster.forget()

    def close(self) -> None:
        """Disconnect."""
        self.cluster.close()


def _ranges(
    stored: StoredColumns, n_threads: int, least_rows: int
) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield ranges of the table's rows, and the place of the first of each among the job's."""
    size = max(least_rows, -(-stored.n_rows // max(1, _RANGES * n_threads)))
    start = 0
    for first in range(0, stored.n_rows, size):
        last = min(first + size, stored.n_rows)
        yield (first, last), start
        start += stored.kept_between(first, last)
