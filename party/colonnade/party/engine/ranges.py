"""Partial sums of a kernel over a range of rows, a chunk at a time."""

from collections.abc import Iterable, Iterator

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.party.engine.base import Arguments, RowRange
from colonnade.party.engine.kernels import KERNELS

IN_PLACE = frozenset({"buckets"})


def sum_chunks(kernel: str, chunks: Iterable[RowRange], arguments: Arguments) -> IntArray:
    """Return the sum of a kernel over chunks of rows."""
    function = KERNELS[kernel]
    if kernel in IN_PLACE:  # what they return is large, and a chunk touches little of it
        total: IntArray | None = None
        for chunk in chunks:
            total = function(chunk, total=total, **arguments)
        return np.empty(0, np.int64) if total is None else total
    return added(function(chunk, **arguments) for chunk in chunks)


def added(parts: Iterable[IntArray]) -> IntArray:
    """Return the sum of exact partial sums, as they come."""
    left = iter(parts)
    total = next(left).astype(np.int64)  # a copy: it is added to
    for part in left:
        total += part
    return total


def spans(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of ``size`` that ``first .. last`` falls into."""
    for begin in range(first, last, size):
        yield begin, min(begin + size, last)
