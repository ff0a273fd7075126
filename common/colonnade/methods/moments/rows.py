"""What a party sums over its rows in a moments job, once they lie in the ball (`linear.ball`).

Privacy: let ``b`` and ``c`` be the projections of one row before and after it is replaced, so
``|b|, |c| <= BALL`` and no other row moves.

Sketches ``J b`` of all coordinates of the projection move by ``J[:, r] (b - c)'``, whose Frobenius
norm is ``|J[:, r]| |b - c| <= 2 BALL |J[:, r]|``: `sketch_sensitivity2`.

Inner products with rows ``R_r`` that follow from earlier releases alone (so they are the same for
both tables) and are scaled into the ball as well move by ``(b - c) R_r'``, whose norm is at most
``2 BALL**2``: `INNER_SENSITIVITY2` of `linear.ball`, which also has that of Gram matrices.
"""

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.threads import over_ranges
from colonnade.linear.ball import BALL, CHUNK, check_outputs, into_ball
from colonnade.linear.kernels import score
from colonnade.sketching.sparse import Sketch

MAX_SKETCH = 2**56


def sketch_sensitivity2(sketch: Sketch) -> int:
    """Return the squared sensitivity of the sketches of a projection, jointly."""
    return (2 * BALL) ** 2 * sketch.column_norm2


def back_rows(sketches: IntArray, sketch: Sketch, *, start: int, stop: int) -> Int16Array:
    """Return rows of ``J' q`` for each ``q``, in the ball: shape ``(n_sketches, stop - start)``."""
    check_outputs(len(sketches))
    sums = np.stack([sketch.transpose(q, start=start, stop=stop, threads=1) for q in sketches])
    out = np.empty(sums.shape, np.int16)
    into_ball(sums, out)
    return out


def inner_products(
    rows: Int16Array,
    sketches: IntArray,
    sketch: Sketch,
    *,
    start: int = 0,
    threads: int | None = None,
) -> IntArray:
    """Return ``rows R'`` with ``R`` from the sketches, flat, output by output: exact.

    The first row is row ``start`` of the sketch.
    """
    n_outputs, n_rows = rows.shape

    def part(first: int, last: int) -> IntArray:
        total = np.zeros((n_outputs, len(sketches)), np.int64)
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            others = back_rows(sketches, sketch, start=start + begin, stop=start + end)
            mine = np.ascontiguousarray(rows[:, begin:end])
            for place in range(len(others)):
                total[:, place] += score(mine, others[place], threads=1)
        return total

    summed: IntArray = np.sum(over_ranges(part, n_rows, threads=threads), axis=0, dtype=np.int64)
    return summed.reshape(-1)
