"""The kernels that read rows: each turns some rows and public numbers into integers that add up.

A kernel is a function of this module and goes by its name, so that a worker runs what is installed
there and nothing that was sent to it. Its arguments are plain (`Arguments`).

Privacy: nothing is claimed here; what a kernel adds up is clipped row by row by the functions that
it calls (`linear.ball`, `methods.frank_wolfe.residual`, ...), whose sensitivities and times are
proved and tested there and hold for a sum over any division of the rows.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from colonnade.core.arrays import AnyArray, Int16Array, Int32Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import Projection, project, triangle
from colonnade.linear.kernels import score
from colonnade.linear.sums import sums
from colonnade.methods.bounds import LEVELS, count_at_most
from colonnade.methods.column_moments import shared_column
from colonnade.methods.frank_wolfe.residual import TaskParameters, residual
from colonnade.methods.moments.rows import inner_products
from colonnade.methods.sealed.rows import bucket_sums
from colonnade.party.engine.base import Arguments, RowRange
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.sparse import Sketch, SparseSketch

Kernel: TypeAlias = Callable[..., IntArray]

_CHUNK_VALUES = 2**20  # of a chunk's columns and outputs: a few megabytes for every thread
_LEAST_ROWS, _MOST_ROWS = 4096, 2**16


def means(rows: RowRange, *, label: bool, presence: bool) -> IntArray:
    """Add columns, with the label and then presence last if asked, then their squares."""
    columns = list(rows.features)
    if label:
        columns.append(_held(rows.label))
    if presence:
        present = _present(rows)
        columns = [column * present for column in columns]
        columns.append(present * np.int16(GRID))
    pairs = [sums(column) for column in columns]
    return np.array([part for half in zip(*pairs, strict=True) for part in half], np.int64)


def gram(rows: RowRange, **projection: Any) -> IntArray:
    """Add the weighted triangle of products of the rows in the ball."""
    return triangle(_projected(rows, **projection), threads=1)


def sketches(rows: RowRange, *, sketch: Mapping[str, Any], **projection: Any) -> IntArray:
    """Add the sketches of the rows in the ball, one projected column after the other."""
    projected = _projected(rows, **projection)
    return sketch_of(sketch).apply(projected, start=rows.start, threads=1).reshape(-1)


def inner(
    rows: RowRange, *, sketch: Mapping[str, Any], others: IntArray, **projection: Any
) -> IntArray:
    """Add inner products of the rows in the ball with those that others' sketches give back."""
    projected = _projected(rows, **projection)
    return inner_products(projected, others, sketch_of(sketch), start=rows.start, threads=1)


def buckets(
    rows: RowRange,
    *,
    n_rows: int,
    n_buckets: int,
    seed: bytes,
    total: IntArray | None = None,
    **projection: Any,
) -> IntArray:
    """Add the rows in the ball to their buckets, with public signs: shape (columns, buckets)."""
    projected = _projected(rows, **projection)
    return bucket_sums(
        projected, seed, start=rows.start, n_rows=n_rows, n_buckets=n_buckets, total=total
    )


def scores(
    rows: RowRange,
    *,
    coef: IntArray,
    q: IntArray,
    weight: int,
    clip: int,
    offset: int,
    label: bool,
    presence: bool,
    sketch: Mapping[str, Any],
) -> IntArray:
    """Add the products of every feature with the rows' residuals."""
    public = TaskParameters(coef, q, weight, clip, offset)
    features = np.ascontiguousarray(rows.features)
    held = _held(rows.label) if label else None
    found = residual(features, held, public, sketch_of(sketch), start=rows.start, threads=1)
    if presence:
        found = found * _present(rows)
    return score(features, found, threads=1)


def share(
    rows: RowRange,
    *,
    place: int,
    mean: float,
    deviation: float,
    clip: float,
    sketch: Mapping[str, Any],
) -> IntArray:
    """Add the sketch of one column, the label being the last; clipped if ``clip`` is not 0."""
    column = _held(rows.label) if place == len(rows.features) else rows.features[place]
    if clip:
        column = shared_column(column, mean, deviation, clip)
    exact = sketch_of(sketch).apply(column.reshape(1, -1), start=rows.start, threads=1)
    return exact.reshape(-1)


def counts(rows: RowRange, *, thresholds: Int32Array) -> IntArray:
    """Count the rows at or below thresholds of each column of the fine copy.

    Privacy: of a row that is 0 or 1 in every count and follows from the row, its place and public
    numbers, so replacing a row, its presence included, moves a count by at most 1.
    """
    found = count_at_most(np.ascontiguousarray(rows.features), thresholds, threads=1)
    if rows.presence is not None:
        found += _absent(rows.presence, thresholds, rows.start)
    return found.reshape(-1)


KERNELS: dict[str, Kernel] = {
    each.__name__: each for each in (means, gram, sketches, inner, buckets, scores, share, counts)
}


def is_divisible(arguments: Arguments) -> bool:
    """Return whether rows can be divided: a dense sketch transforms all of them at once."""
    sketch = arguments.get("sketch")
    return not isinstance(sketch, Mapping) or bool(sketch["entries"])


def chunk_rows(arguments: Arguments, n_columns: int, n_rows: int) -> int:
    """Return how many rows are worked on at a time: a bounded amount of memory."""
    if not is_divisible(arguments):
        return n_rows
    sketch = arguments.get("sketch")
    coef = arguments.get("coef")
    outputs = coef.shape[0] if isinstance(coef, np.ndarray) else 1
    # A sketch's cells are cleared for every chunk: as many rows as cells, or that would rule.
    cells = int(sketch["dim"]) if isinstance(sketch, Mapping) else 0
    wanted = max(_CHUNK_VALUES // (n_columns + 4 * outputs), min(2 * cells, _MOST_ROWS))
    return min(max(_LEAST_ROWS, min(wanted, _MOST_ROWS) // 64 * 64), n_rows)


def sketch_plain(sketch: Sketch) -> dict[str, bytes | int]:
    """Return a sketch as plain values; one without entries is dense."""
    if isinstance(sketch, SparseSketch):
        entries = sketch.entries
    elif isinstance(sketch, HadamardSketch):
        entries = 0
    else:
        raise TypeError("a kernel knows two kinds of sketches")
    return {"seed": sketch.seed, "n_rows": sketch.n_rows, "dim": sketch.dim, "entries": entries}


def sketch_of(plain: Mapping[str, Any]) -> Sketch:
    """Return a sketch from plain values."""
    if not plain["entries"]:
        return HadamardSketch(plain["seed"], plain["n_rows"], plain["dim"])
    return SparseSketch(plain["seed"], plain["n_rows"], plain["dim"], plain["entries"])


def _projected(
    rows: RowRange, *, coef: IntArray, offset: IntArray, label: bool, presence: bool
) -> Int16Array:
    return project(
        rows.features,
        _held(rows.label) if label else None,
        Projection(coef, offset),
        presence=_held(rows.presence) if presence else None,
        threads=1,
    )


def _held(column: Int16Array | None) -> Int16Array:
    if column is None:
        raise ValueError("a kernel asks for a column that is not there")
    return column


def _present(rows: RowRange) -> Int16Array:
    return (_held(rows.presence) > 0).astype(np.int16)


def _absent(presence: AnyArray, thresholds: Int32Array, start: int) -> IntArray:
    """Return what to add to counts so that quantiles are those of the people who are present.

    An absent row is zeros, in the middle of the declared bounds, and was counted there. Instead a
    level's own share of absent rows, by their places, counts as below every threshold: then the
    count reaches the level's share of all rows where that of present rows does.
    """
    absent = np.asarray(presence) == 0
    counted = int(absent.sum()) * (thresholds >= 0)
    places = np.arange(start, start + absent.size)
    below = [int((absent & (places % q.denominator < q.numerator)).sum()) for q in LEVELS]
    added: IntArray = np.asarray(below, np.int64)[None, :] - counted
    return added
