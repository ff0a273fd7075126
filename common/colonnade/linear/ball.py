"""Where public numbers meet rows: projections into a ball, in integers only.

Gram matrices, directions and their products all begin with `project`: each row becomes a few
integers, affine in that row alone, then scaled into a ball of radius ``BALL``. Whoever asks (a
coordinator, or a solver at one site) chooses the affine map from public numbers; it cannot choose
the ball. Whatever the map, row ``r`` of the result depends on row ``r`` of the table alone and has
a Euclidean norm of at most ``BALL``.

Privacy: let ``b`` and ``c`` be the projections of one row before and after it is replaced, so
``|b|, |c| <= BALL`` and no other row moves.

Inner products with numbers of the rows ``R_r``, scaled into the ball as well, that are the same for
both tables or follow from the row itself move by at most ``|b| |R_r| + |c| |R'_r|``, that is
``2 BALL**2``: `INNER_SENSITIVITY2`.

The triangle of ``sum b b'`` with weight ``DIAGONAL`` on the diagonal and ``OFF_DIAGONAL`` above it
moves by at most ``DIAGONAL**2 sum_i D_ii**2 + OFF_DIAGONAL**2 sum_{i<j} D_ij**2`` in square, with
``D = b b' - c c'``. As ``OFF_DIAGONAL**2 <= 2 DIAGONAL**2`` (1681 and 1682) that is at most
``DIAGONAL**2 |D|_F**2``, and ``|D|_F**2 = |b|**4 + |c|**4 - 2 (b.c)**2 <= 2 BALL**4``. Hence
`TRIANGLE_SENSITIVITY2` is ``2 DIAGONAL**2 BALL**4``, attained by two rows at a right angle along
the axes. Seen without weights, the noise has variance ``s2`` on the diagonal and ``s2 / 2`` off
it, for ``rho = BALL**4 / s2``.

The ball in integers: with ``v`` the row's integers and ``N`` an integer not below ``|v|`` nor below
``BALL``, each becomes ``floor(|v_j| BALL / N)`` with its sign, so that the squares sum to at most
``BALL**2 |v|**2 / N**2 <= BALL**2``. Root and quotient are found by approximation; that ``N**2`` is
not below ``|v|**2``, and each quotient times ``N`` not above ``|v_j| BALL``, is then checked in
integers, and what failed the check, whatever the arithmetic of a machine, would become 0.

Time: the same operations are done for every row, inside the ball or outside
(`core.constant_time`). The coordinator's map decides which rows are where, so the time must not.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.constant_time import inverse_root, reciprocal
from colonnade.core.fixedpoint import GRID
from colonnade.core.jit import njit
from colonnade.core.threads import over_ranges
from colonnade.linear.kernels import score

BALL = GRID

# Integer weights of a triangle: 41 / 29 is just below the square root of 2.
DIAGONAL, OFF_DIAGONAL = 29, 41

TRIANGLE_SENSITIVITY2 = 2 * DIAGONAL**2 * BALL**4
INNER_SENSITIVITY2 = (2 * BALL * BALL) ** 2

# What the coordinator sends is in 2**-20 of a ball's step; sums of products stay below 2**62.
UNIT = 2**20
_SHIFT = 20
MAX_COEF = 2**34
MAX_OFFSET = 2**60
MAX_COLUMNS = 2**12
MAX_OUTPUTS = 2**12  # of a projection, and sketches of a task
MAX_ROWS = 2**28  # weighted sums of a triangle stay below 2**62

# A row's integers saturate here, far outside the ball: 2**12 of their squares sum to 2**60.
_FAR = 2.0**24
CHUNK = 2**16  # rows that are worked on at a time
_BLOCK = 1024  # rows whose steps stay in the first-level cache
# Makes up for the rounding errors of a root or a quotient, at most ``2**-49``. It cannot lift a
# quotient, below ``2**14``, to the next integer, because that is ``1 / N > 2**-31`` away, and a
# root, below ``2**31``, only to the integer that it is to become.
_UP = 1.0 + 2.0**-48


@dataclass(frozen=True, slots=True)
class Projection:
    """An affine map of a party's rows: bounded integers, all public, chosen by the coordinator."""

    coef: IntArray  # shape (n_outputs, n_columns), in UNIT; the label, if held, is the last column
    offset: IntArray  # shape (n_outputs,), in UNIT of a ball's step

    def __post_init__(self) -> None:
        if self.coef.ndim != 2 or self.offset.shape != self.coef.shape[:1]:
            raise ValueError("a projection is a matrix and one offset for each of its rows")
        if self.coef.dtype != np.int64 or self.offset.dtype != np.int64:
            raise ValueError("a projection is made of 64-bit integers")
        n_outputs, n_columns = self.coef.shape
        check_outputs(n_outputs)
        if not 1 <= n_columns <= MAX_COLUMNS:
            raise ValueError(f"a projection has 1 to {MAX_COLUMNS} columns")
        if exceeds(self.coef, MAX_COEF) or exceeds(self.offset, MAX_OFFSET):
            raise ValueError("a projection's coefficient or offset is too large")


def check_outputs(count: int) -> None:
    """Refuse more numbers a row than can be scaled into the ball together.

    Privacy: their squares must sum to less than ``2**63``, or the norm would not be one.
    """
    if not 1 <= count <= MAX_OUTPUTS:
        raise ValueError(f"a projection or a task's sketches are 1 to {MAX_OUTPUTS}, not {count}")


def exceeds(values: IntArray, limit: int) -> bool:
    """Return whether any integer is larger in size; the least integer has no absolute value."""
    return bool(values.size) and (int(values.max()) > limit or int(values.min()) < -limit)


def triangle_size(n_outputs: int) -> int:
    """Return how many numbers a triangle has."""
    return n_outputs * (n_outputs + 1) // 2


@njit
def _add(column: Int16Array, coef: int, out: IntArray) -> None:
    for i in range(out.size):
        out[i] += np.int64(coef) * np.int64(column[i])


@njit
def into_ball(sums: IntArray, out: Int16Array) -> None:
    """Round each row's sums to steps and scale them into the ball.

    Rows are taken in blocks that stay in the first-level cache, column by column, so that the
    compiler works on several rows at a time.
    """
    steps, norm2 = np.empty((sums.shape[0], _BLOCK), np.int32), np.empty(_BLOCK, np.int64)
    length, inverse = np.empty(_BLOCK), np.empty(_BLOCK)
    for begin in range(0, sums.shape[1], _BLOCK):
        size = min(_BLOCK, sums.shape[1] - begin)
        for i in range(size):
            norm2[i] = 0
        for j in range(sums.shape[0]):
            for i in range(size):
                value = (sums[j, begin + i] + np.int64(UNIT // 2)) >> np.int64(_SHIFT)
                step = np.int32(min(max(np.float64(value), -_FAR), _FAR))
                steps[j, i] = step
                norm2[i] += np.int64(step) * np.int64(step)
        for i in range(size):
            length[i], inverse[i] = _divisor(norm2[i])
        for j in range(sums.shape[0]):
            for i in range(size):
                out[j, begin + i] = _scaled(steps[j, i], length[i], inverse[i])


@njit
def _divisor(norm2: int) -> tuple[float, float]:
    """Return the least integer ``N`` that is neither below the norm nor below ``BALL``, and 1/N.

    Privacy: ``N * N >= norm2`` is checked in integers; were it not so, the inverse would be 0, and
    the row with it.
    """
    square = max(np.float64(norm2), 1.0)
    root = np.int64(square * inverse_root(square) * _UP)  # the integer below the root, or above it
    length = max(np.float64(root + np.int64(root * root < norm2)), float(BALL))
    N = np.int64(length)
    return length, reciprocal(length) * (_UP * np.float64(norm2 <= N * N))


@njit
def _scaled(value: np.int32, length: float, inverse: float) -> np.int16:
    """Return ``value * BALL / length`` rounded towards zero.

    Privacy: the result times ``length`` is no larger than ``value * BALL``, which is checked in
    integers (below ``2**53``, so that floats hold them exactly); were it not so, the result would
    be 0.
    """
    dividend = np.float64(value) * BALL
    quotient = np.trunc(dividend * inverse)
    kept = np.float64(abs(quotient) * length <= abs(dividend))
    return np.int16(np.int32(quotient * kept))


def project(
    features: Int16Array,
    label: Int16Array | None,
    projection: Projection,
    *,
    presence: Int16Array | None = None,
    threads: int | None = None,
) -> Int16Array:
    """Return every row's image in the ball, shape ``(n_outputs, n_rows)``.

    Rows whose ``presence`` is not above 0 become 0, offset and all: nobody is no average person.
    Privacy: that is a function of the row, into the ball, as any other; a person who comes or goes
    is the replacement of a row.

    Integer arithmetic throughout: the same on every machine, however rows are split over threads.
    """
    columns = [*features, *([] if label is None else [label])]
    n_outputs, n_columns = projection.coef.shape
    if n_columns != len(columns):
        raise ValueError(f"a projection of {n_columns} columns meets a table of {len(columns)}")
    n_rows = columns[0].size
    out = np.empty((n_outputs, n_rows), np.int16)

    def part(first: int, last: int) -> None:
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            sums = np.empty((n_outputs, end - begin), np.int64)
            for output in range(n_outputs):
                sums[output] = projection.offset[output]
                for place in np.flatnonzero(projection.coef[output]):
                    coef = int(projection.coef[output, place])
                    _add(columns[place][begin:end], coef, sums[output])
            if presence is not None:
                sums *= presence[begin:end] > 0  # the same multiplications for every row
            into_ball(sums, out[:, begin:end])

    over_ranges(part, n_rows, threads=threads)
    return out


def triangle(rows: Int16Array, *, threads: int | None = None) -> IntArray:
    """Return the weighted upper triangle of ``rows rows'``, row by row: exact."""
    parts = []
    for place in range(rows.shape[0]):
        weights = np.full(rows.shape[0] - place, OFF_DIAGONAL, np.int64)
        weights[0] = DIAGONAL
        parts.append(weights * score(rows[place:], rows[place], threads=threads))
    return np.concatenate(parts)
