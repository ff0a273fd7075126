"""The residual of every row, where a coordinator's numbers meet a party's data.

Privacy: row ``r`` of the result depends on row ``r`` of the party's table alone and lies within
``+-GRID``, because the clip comes last and everything before it is row-local. So replacing a row
moves each product ``a * residual`` by at most ``2 GRID**2`` (`SCORE_SENSITIVITY`), whatever
coefficients, sketch, weight, offset and clip the coordinator sends, finite or absurd.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.core.jit import njit
from colonnade.core.threads import over_ranges
from colonnade.sketching.sparse import Sketch

# Two numbers within +-GRID each: their product moves by at most twice the largest product.
SCORE_SENSITIVITY = 2 * GRID * GRID

# Fixed point of what the coordinator sends: coefficients and the offset in 2**-32, sketches in
# 2**-16 of a grid step, weight in 2**-30, clip in 2**-20 of the value range.
COEF_UNIT = 2**32
Q_UNIT = 2**16
WEIGHT_UNIT = 2**30
CLIP_UNIT = 2**20
MAX_COEF = 2**52
MAX_Q = 2**56
MAX_CLIP = 2**40


@dataclass(frozen=True, slots=True)
class TaskParameters:
    """The public parameters of a task that shape the residual: bounded integers."""

    coef: IntArray  # shape (n_features,), in COEF_UNIT
    q: IntArray  # shape (dim,), in Q_UNIT of grid steps: the others' part, sketched
    weight: int  # in WEIGHT_UNIT, 0 .. WEIGHT_UNIT
    clip: int  # in CLIP_UNIT, at least 1
    offset: int = 0  # in COEF_UNIT of the value range: added to every row, for the intercept

    @classmethod
    def saturated(
        cls, coef: IntArray, q: FloatArray, *, clip: float, offset: float
    ) -> "TaskParameters":
        """Put a coordinator's numbers into fixed point, at the limits where they pass them.

        ``q`` is in grid steps, ``clip`` in half ranges, ``offset`` in COEF_UNIT.
        """
        return cls(
            coef=coef,
            q=np.rint(np.clip(q * Q_UNIT, -MAX_Q, MAX_Q)).astype(np.int64),
            weight=WEIGHT_UNIT,
            clip=min(max(round(clip * CLIP_UNIT), 1), MAX_CLIP),
            offset=round(min(max(offset, -MAX_COEF), MAX_COEF)),
        )

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= WEIGHT_UNIT:
            raise ValueError("the weight must lie in 0 .. 2**30")
        if not 1 <= self.clip <= MAX_CLIP:
            raise ValueError("the clip must lie in 1 .. 2**40")
        if _exceeds(self.coef, MAX_COEF) or _exceeds(self.q, MAX_Q):
            raise ValueError("a coefficient or a sketch entry is too large")
        if abs(self.offset) > MAX_COEF:
            raise ValueError("the offset is too large")


def _exceeds(values: IntArray, limit: int) -> bool:
    return bool(values.size) and (int(values.max()) > limit or int(values.min()) < -limit)


@njit
def _add_column(column: Int16Array, coef: float, out: FloatArray) -> None:
    for i in range(out.size):
        out[i] += coef * float(column[i])


@njit
def _finish(part: FloatArray, back: IntArray, gain: float, scale: float, out: Int16Array) -> None:
    for i in range(part.size):
        value = np.rint((part[i] + gain * float(back[i])) * scale)
        out[i] = np.int16(min(max(value, -float(GRID)), float(GRID)))


def residual(
    columns: Int16Array,
    label: Int16Array | None,
    public: TaskParameters,
    sketch: Sketch,
    *,
    start: int = 0,
    threads: int | None = None,
) -> Int16Array:
    """Return ``clip(round((o + A x - y + w J' q) / c))`` for every row, in grid steps.

    The arithmetic is binary floating point in a fixed order: offset, own columns by index, label,
    cross term, the factor ``1 / c``, rounding half to even, clip. A row's value never depends on
    another row, nor on how rows are split over threads. Without ``label`` the label's part is in
    ``q``. The first row is row ``start`` of the sketch.

    Privacy: how long it takes does not depend on rows (`core.constant_time`). Sums are multiples of
    ``2**-80`` and the factor lies within ``2**+-20``, so nothing is subnormal.
    """
    n_rows = columns.shape[1]
    coef = public.coef.astype(np.float64) / COEF_UNIT
    gain = public.weight / WEIGHT_UNIT / Q_UNIT / sketch.column_norm2
    scale = CLIP_UNIT / public.clip
    offset = public.offset * (GRID / COEF_UNIT)
    out = np.empty(n_rows, np.int16)

    def part(first: int, last: int) -> None:
        sums = np.full(last - first, offset)
        for feature in np.flatnonzero(coef):
            _add_column(columns[feature, first:last], float(coef[feature]), sums)
        if label is not None:
            _add_column(label[first:last], -1.0, sums)
        if public.weight and public.q.any():
            back = sketch.transpose(public.q, start=start + first, stop=start + last, threads=1)
        else:
            back = np.zeros(last - first, np.int64)
        _finish(sums, back, gain, scale, out[first:last])

    over_ranges(part, n_rows, threads=threads)
    return out
