"""Compiled loops over fixed-point columns."""

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.jit import njit
from colonnade.core.threads import over_ranges

# Rows whose residual halves are kept in the second-level cache while all columns pass by.
_BLOCK = 16384
# Products of any int16 and a half of any int16 stay below 2**23: 128 of them fit 32 bits.
_CHUNK = 128


@njit
def _dot32(a: Int16Array, b: Int16Array) -> np.int32:
    # This shape, and no other that was tried, compiles to the 16-bit multiply-add instruction.
    total = np.int32(0)
    for i in range(a.size):
        total = np.int32(total + np.int32(np.int32(a[i]) * np.int32(b[i])))
    return total


@njit
def _score_rows(
    columns: Int16Array, residual: Int16Array, first: int, last: int, out: IntArray
) -> None:
    """Add the products of rows ``first .. last`` to ``out`` in place.

    Each residual is split as ``128 * high + low`` so that sums of 128 products are exact in
    32 bits for every possible ``int16`` input; wider sums are kept in 64 bits.
    """
    high = np.empty(_BLOCK, np.int16)
    low = np.empty(_BLOCK, np.int16)
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        for i in range(begin, end):
            upper = residual[i] >> 7
            high[i - begin] = upper
            low[i - begin] = residual[i] - (upper << 7)
        for j in range(columns.shape[0]):
            total = np.int64(0)
            for at in range(begin, end, _CHUNK):
                stop = min(at + _CHUNK, end)
                a = columns[j, at:stop]
                total += np.int64(128) * np.int64(_dot32(a, high[at - begin : stop - begin]))
                total += np.int64(_dot32(a, low[at - begin : stop - begin]))
            out[j] += total


def score(columns: Int16Array, residual: Int16Array, *, threads: int | None = None) -> IntArray:
    """Return the exact inner product of every column with ``residual``.

    Parameters
    ----------
    columns
        Shape ``(n_features, n_rows)``, each feature contiguous.
    residual
        Shape ``(n_rows,)``.
    threads
        How many threads share the rows; every processor by default.

    Returns
    -------
    IntArray
        Shape ``(n_features,)``; exact for every ``int16`` input up to ``2**32`` rows.

    Examples
    --------
    >>> columns = np.array([[1, 2], [3, 4]], np.int16)
    >>> score(columns, np.array([10, -1], np.int16))
    array([ 8, 26])
    """
    n_features, n_rows = columns.shape
    if columns.dtype != np.int16 or residual.dtype != np.int16:
        raise ValueError("columns and residual must be int16")
    if residual.shape != (n_rows,):
        raise ValueError(f"residual must have shape ({n_rows},), not {residual.shape}")

    def part(first: int, last: int) -> IntArray:
        out = np.zeros(n_features, np.int64)
        _score_rows(columns, residual, first, last, out)
        return out

    parts = over_ranges(part, n_rows, threads=threads, align=_BLOCK)
    total: IntArray = np.sum(parts, axis=0, dtype=np.int64)
    return total
