"""The engine of one machine: threads over a mapped table, a few rows of it in memory at a time."""

from colonnade.core.arrays import IntArray
from colonnade.core.threads import over_ranges
from colonnade.party.engine.base import Arguments, Engine, RowSource
from colonnade.party.engine.kernels import chunk_rows
from colonnade.party.engine.ranges import added, spans, sum_chunks

__all__ = ["LOCAL", "Engine", "LocalEngine"]

_ALIGN = 64  # rows, so that ranges begin at cache lines


class LocalEngine:
    """Sum over the rows that this machine maps, on every processor."""

    @property
    def reads_shared(self) -> bool:
        """Columns under other bounds are made once, beside the table."""
        return False

    def sum(self, kernel: str, source: RowSource, arguments: Arguments) -> IntArray:
        """Return the sum of a kernel over all rows of ``source``."""
        n_rows = source.n_rows
        chunk = chunk_rows(arguments, source.n_columns, n_rows)

        def part(first: int, last: int) -> IntArray:
            chunks = (source.rows(*span) for span in spans(first, last, chunk))
            return sum_chunks(kernel, chunks, arguments)

        if chunk == n_rows:
            return part(0, n_rows)
        return added(over_ranges(part, n_rows, align=_ALIGN))

    def close(self) -> None:
        """Hold nothing."""


LOCAL: Engine = LocalEngine()
"""The engine of this machine."""
