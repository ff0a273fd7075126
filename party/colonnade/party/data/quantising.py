"""Read numbers on their way into both tables: clipped, filled, quantised, at their places.

Parts are quantised by all processors while the next ones are read. A part is worked on in pieces
that stay in cache, and at most a few parts are in memory.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.fixedpoint import FINE_GRID, GRID, Bounds, grid_dtype, quantise_on
from colonnade.core.threads import cpu_count
from colonnade.data.kinds import Category, Number
from colonnade.data.schema import Column
from colonnade.data.table import TableWriter

_PIECE_ROWS = 2**15  # a quarter of a megabyte of floats
_MANY_VALUES = 2**25  # so many take longer than loading a compiled kernel
_IN_FLIGHT = 2  # parts that wait or are worked on, besides the one that is read

Part = tuple[int, int, FloatArray]
"""The place of a column in the schema, the first row, and what the rows were read as."""


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """Count what was changed in a column."""

    clipped: int = 0
    missing: int = 0
    other: int = 0

    def __add__(self, more: "ChangedValues") -> "ChangedValues":
        return ChangedValues(
            self.clipped + more.clipped, self.missing + more.missing, self.other + more.other
        )


class Quantiser:
    """Write the columns of a schema into a coarse and a fine table.

    Parameters
    ----------
    absent
        Which rows are zero because the party does not have these people; None for no such rows.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        coarse: TableWriter,
        fine: TableWriter,
        *,
        absent: NDArray[np.bool_] | None,
    ) -> None:
        self._columns, self._absent = columns, absent
        self._tables = (coarse, fine)
        self._compiled = coarse.n_rows * len(columns) >= _MANY_VALUES
        self.counts = [ChangedValues() for _ in columns]
        self._places = [0]
        for column in columns:
            self._places.append(self._places[-1] + len(column.encoding().names))

    def write(self, parts: Iterable[Sequence[Part]]) -> None:
        """Write all parts, then who is there, and complete both tables."""
        with ThreadPoolExecutor(cpu_count(), thread_name_prefix="ingest") as pool:
            waiting = deque[list[tuple[int, Future[ChangedValues]]]]()
            for together in parts:
                waiting.append([(part[0], pool.submit(self._put, *part)) for part in together])
                if len(waiting) > _IN_FLIGHT:
                    self._count(waiting.popleft())
            for done in waiting:
                self._count(done)
            self._put_presence()
            for digest in [pool.submit(table.finish) for table in self._tables]:
                digest.result()

    def _count(self, done: Iterable[tuple[int, Future[ChangedValues]]]) -> None:
        for place, counted in done:
            self.counts[place] += counted.result()

    def _put(self, place: int, first: int, numbers: FloatArray) -> ChangedValues:
        column, counts = self._columns[place], ChangedValues()
        if self._compiled and isinstance(column.kind, Number) and not column.missing_indicator:
            return self._put_numbers(place, first, numbers)
        grouped = bool(column.encoding().group)
        for begin in range(0, numbers.size, _PIECE_ROWS):
            piece, row = numbers[begin : begin + _PIECE_ROWS], first + begin
            counts += _counted(column, piece)
            for at, (filled, bounds) in enumerate(encoded(column, piece), self._places[place]):
                made = quantise_on(filled, bounds, grids=(GRID, FINE_GRID))
                for table, values, grid in zip(self._tables, made, (GRID, FINE_GRID), strict=True):
                    table.put(at, row, self._without(values, row, -grid if grouped else 0))
        return counts

    def _put_numbers(self, place: int, first: int, numbers: FloatArray) -> ChangedValues:
        """Do as `_put` for a column that stands for itself, in one pass over its values."""
        from colonnade.data.requantise import quantise_both  # noqa: PLC0415 - takes a second

        column, counts = self._columns[place], ChangedValues()
        (fill,), (bounds,) = column.fills(), column.limits()
        for begin in range(0, numbers.size, _PIECE_ROWS):
            made = quantise_both(numbers[begin : begin + _PIECE_ROWS], bounds, fill=fill)
            counts += ChangedValues(clipped=made.clipped, missing=made.missing)
            row, at = first + begin, self._places[place]
            grids: tuple[AnyArray, ...] = made.coarse, made.fine
            for table, values in zip(self._tables, grids, strict=True):
                table.put(at, row, self._without(values, row, 0))
        return counts

    def _without(self, values: AnyArray, row: int, code: int) -> AnyArray:
        """Return values with ``code`` for people whom the party does not have.

        Privacy: so that a person's absence is the replacement of a row, and every cap covers it. It
        is the middle of the bounds for a number, and no level for a category: in any other code all
        columns of a category would move when a person vanishes, and `methods.groups` counts two.
        """
        if self._absent is not None:
            values[self._absent[row : row + values.size]] = code
        return values

    def _put_presence(self) -> None:
        if self._absent is None:
            return
        for table, grid in zip(self._tables, (GRID, FINE_GRID), strict=True):
            here = np.where(self._absent, 0, grid).astype(grid_dtype(grid))
            table.put(self._places[-1], 0, here)


def encoded(column: Column, numbers: FloatArray) -> Iterator[tuple[FloatArray, Bounds]]:
    """Yield the columns that read values become, without missing values, and their bounds."""
    spread = column.encoding().spread(numbers)
    for values, fill, bounds in zip(spread, column.fills(), column.limits(), strict=True):
        yield np.where(np.isnan(values), fill, values), bounds


def _counted(column: Column, numbers: FloatArray) -> ChangedValues:
    missing = int(np.count_nonzero(np.isnan(numbers)))
    if isinstance(column.kind, Category):
        other = int(np.count_nonzero(numbers == len(column.kind.levels)))
        return ChangedValues(missing=missing, other=other)
    outside = (numbers < column.bounds.low) | (numbers > column.bounds.high)
    return ChangedValues(clipped=int(np.count_nonzero(outside)), missing=missing)
