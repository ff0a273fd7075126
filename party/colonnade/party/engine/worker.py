"""What a worker of a cluster does: the partial sum of a kernel over its range of rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.party.engine.base import Arguments, RowRange
from colonnade.party.engine.kernels import chunk_rows
from colonnade.party.engine.ranges import spans, sum_chunks
from colonnade.party.engine.stored import StoredColumns


def range_sum(
    kernel: str,
    stored: Mapping[str, Any],
    span: tuple[int, int],
    start: int,
    arguments: Arguments,
) -> bytes:
    """Return the sum of a kernel over rows of a stored table, as bytes (`sum_from_bytes`).

    Parameters
    ----------
    kernel
        The name of one of `party.engine.kernels`: what is installed here is run, nothing is sent.
    stored
        Says where the columns are (`StoredColumns.plain`).
    span, start
        Rows of the table, and the place of the first of them among the job's.
    """
    columns = StoredColumns.of(stored)
    total = sum_stored(kernel, columns, span, start, arguments)
    return sum_to_bytes(total)


def sum_to_bytes(total: IntArray) -> bytes:
    """Write a sum: how many dimensions it has, their sizes, its integers; eight bytes each."""
    head = np.array([total.ndim, *total.shape], "<i8")
    return head.tobytes() + total.astype("<i8").tobytes()


def sum_from_bytes(body: bytes) -> IntArray:
    """Read a sum; `ValueError` if the bytes are none."""
    found = np.frombuffer(body, "<i8").astype(np.int64)
    n_dims = int(found[0]) if found.size else 0
    if not 1 <= n_dims <= 2:
        raise ValueError("a sum has one dimension or two")
    return found[1 + n_dims :].reshape(found[1 : 1 + n_dims])


def sum_stored(
    kernel: str, columns: StoredColumns, span: tuple[int, int], start: int, arguments: Arguments
) -> IntArray:
    """Return the sum of a kernel over rows of a stored table."""
    first, last = span
    chunk = chunk_rows(arguments, len(columns.places), columns.n_rows)

    def chunks() -> Iterator[RowRange]:
        at = start
        for begin, end in spans(first, last, chunk):
            features, label, presence = columns.read(begin, end)
            yield RowRange(at, features, label, presence)
            at += features.shape[1]

    return sum_chunks(kernel, chunks(), arguments)
