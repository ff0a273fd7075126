"""Validity of a table in compressed sparse columns or rows."""

import numpy as np

from colonnade.core.arrays import AnyArray, Int32Array, IntArray
from colonnade.core.jit import njit


def check_lines(lines: tuple[AnyArray, AnyArray, IntArray], count: int) -> None:
    """Raise `ValueError` unless there are lines with rising places below ``count``."""
    values, indices, starts = lines
    if values.dtype != np.int16 or indices.dtype != np.int32:
        raise ValueError("values are of type int16 and indices of type int32")
    ends = starts.size and int(starts[0]) == 0 and int(starts[-1]) == values.size
    if values.shape != indices.shape or not ends or (np.diff(starts) < 0).any():
        raise ValueError("values, indices and starts do not fit together")
    if not _rise(indices, starts, count):
        raise ValueError("an index stands twice, out of order, or names what does not exist")


@njit
def _rise(indices: Int32Array, starts: IntArray, count: int) -> bool:
    """Return whether the indices of every line rise, from 0 to below ``count``."""
    for line in range(starts.size - 1):
        before = -1
        for k in range(starts[line], starts[line + 1]):
            if not before < indices[k] < count:
                return False
            before = indices[k]
    return True
