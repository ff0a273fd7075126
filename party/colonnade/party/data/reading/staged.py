"""Staged rows, read back in the order of the table: whole columns, or all columns of some rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadInput
from colonnade.data.encoding import Encoding
from colonnade.data.kinds import UNKNOWN, Number
from colonnade.party.data.division import Division
from colonnade.party.data.quantising import Part
from colonnade.party.data.reading.in_place import RowsInPlace
from colonnade.party.data.reading.sources import MAIN, ROWS
from colonnade.party.data.reading.values import texts_of, unknown_texts
from colonnade.party.data.roster import pair

_FETCH_VALUES = 2**20  # 8 MB
_BLOCK_VALUES = 2**22  # of all columns of the rows that are read together
_PLACE_VALUES = 2**23  # the same in place, where each block looks through all row groups
_VECTOR_ROWS = 2048  # DuckDB reads so many at a time
_GATHER_ROWS = 2**23  # a column that is put in order in memory has at most so many
_PLACES, _SORTED = "colonnade_places", f"{MAIN}.sorted"


@dataclass(frozen=True, slots=True)
class StagedColumns:
    """Give the staged columns in the order of the table.

    Parameters
    ----------
    index
        Staged row of each person on the roster, -1 for the absent; None keeps the staged order.
    division
        Who owns the rows, if they are divided among clients; then clients' rows stand together.
    origin, row
        Where the rows come from, and SQL for the number that they have there.
    in_place
        The rows, if they were not staged because they can be read where they are.
    """

    database: duckdb.DuckDBPyConnection
    n_rows: int
    n_absent: int
    index: IntArray | None
    division: Division | None = None
    origin: str = ""
    row: str = "rowid + 1"
    n_left_out: int = 0  # rows of the source that the order of the table has no place for
    zero_absent: bool = False  # absent people are zero rows, not fills
    in_place: RowsInPlace | None = None

    @property
    def absent(self) -> NDArray[np.bool_] | None:
        """Which rows are zero: those of absent people, if an alignment says who is."""
        return self.index < 0 if self.zero_absent and self.index is not None else None

    def parts(
        self, encodings: Sequence[Encoding], progress: Callable[[Sequence[Any]], Iterable[Any]]
    ) -> Iterator[list[Part]]:
        """Yield what the columns are read as, in parts that cover all of them once.

        Rows whose order is that of the table are read some at a time, however many there are. Few
        enough rows in another order are read column by column; more are sorted on disk first.
        """
        if self.in_place is not None:
            yield from _parts_in_place(self.in_place, len(encodings), progress)
            return
        if not self._in_order():
            if self.n_rows <= _GATHER_ROWS:
                columns = self.columns(encodings)
                for place in progress(range(len(encodings))):
                    yield [(place, 0, next(columns))]
                return
            yield from self._sorted().parts(encodings, progress)
            return
        n_together = max(1, _BLOCK_VALUES // len(encodings) // _VECTOR_ROWS) * _VECTOR_ROWS
        for first in progress(range(0, self.n_rows, n_together)):
            block = self._block(first, min(first + n_together, self.n_rows), encodings)
            yield [(place, first, numbers) for place, numbers in enumerate(block)]

    def columns(self, encodings: Sequence[Encoding]) -> Iterator[FloatArray]:
        """Yield what the columns are read as, in the order of the schema; NaN is missing.

        Short columns are fetched several at a time, because a statement costs milliseconds.
        """
        n_staged = self.n_rows - self.n_absent
        n_together = max(1, _FETCH_VALUES // n_staged)
        for start in range(0, len(encodings), n_together):
            asked = range(start, min(start + n_together, len(encodings)))
            numbers = [f"v{i}" for i in asked if isinstance(encodings[i].kind, Number)]
            fetched = {}
            if numbers:
                sql = f"SELECT {', '.join(numbers)} FROM {ROWS}"  # noqa: S608
                fetched = self.database.execute(sql).fetchnumpy()
            for i in asked:
                if (name := f"v{i}") in fetched:
                    yield self._arranged(np.ma.getdata(fetched.pop(name)))
                else:
                    yield self._arranged(self._read(i, encodings[i], n_staged))

    def _in_order(self) -> bool:
        """Return whether people who are there are staged in the order of the table."""
        if self.index is None:
            return True
        there = self.index[self.index >= 0]
        return bool(there[0] == 0 and (np.diff(there) == 1).all())

    def _sorted(self) -> "StagedColumns":
        """Sort the staged rows on disk; DuckDB spills what does not fit into its memory."""
        if self.index is None:
            return self
        places = np.flatnonzero(self.index >= 0)
        number = ", rowid + 1 AS source_row" if self.row != "source_row" else ""
        with self.database.cursor() as own:  # the connection may have a result yet to be fetched
            own.execute("SET enable_progress_bar = false")
            own.register(_PLACES, {"staged_row": self.index[places], "target": places})
            own.execute(
                f"CREATE TABLE {_SORTED} AS SELECT r.* FROM (SELECT *, rowid AS staged_row{number} "  # noqa: S608
                f"FROM {ROWS}) r JOIN {_PLACES} USING (staged_row) ORDER BY target"
            )
        self.database.execute(f"DROP TABLE {ROWS}")
        self.database.execute(f'ALTER TABLE {_SORTED} RENAME TO "rows"')
        index = np.full(self.n_rows, -1, dtype=np.int64)
        index[places] = np.arange(places.size)
        return replace(self, index=index, row="source_row")

    def _block(self, first: int, last: int, encodings: Sequence[Encoding]) -> list[FloatArray]:
        """Return what rows ``first .. last`` of the table are read as, column by column."""
        there = None if self.index is None else np.flatnonzero(self.index[first:last] >= 0)
        span = (first, last)
        if there is not None and self.index is not None:
            if not there.size:
                return [np.full(last - first, np.nan) for _ in encodings]
            staged = self.index[first:last][there]
            span = int(staged[0]), int(staged[-1]) + 1
        names = ", ".join(f"v{place}" for place in range(len(encodings)))
        sql = f"SELECT {names} FROM {ROWS} WHERE rowid >= ? AND rowid < ?"  # noqa: S608
        fetched = self.database.execute(sql, span).fetchnumpy()
        block = []
        for place, encoding in enumerate(encodings):
            held = fetched.pop(f"v{place}")
            if isinstance(encoding.kind, Number):
                numbers = np.ma.getdata(held)
            else:
                numbers = encoding.read(texts_of(held), span[1] - span[0])
                if (numbers == UNKNOWN).any():
                    self._refuse_unknown(encodings)
            if there is not None and there.size < last - first:
                arranged = np.full(last - first, np.nan)
                arranged[there] = numbers
                numbers = arranged
            block.append(numbers)
        return block

    def _refuse_unknown(self, encodings: Sequence[Encoding]) -> None:
        """Say of the first column that has texts which are not declared how many there are."""
        for place, encoding in enumerate(encodings):
            if not isinstance(encoding.kind, Number):
                self._read(place, encoding, self.n_rows - self.n_absent)

    def _read(self, place: int, encoding: Encoding, n_staged: int) -> FloatArray:
        """Read a column of texts, or say that it has one that is not declared."""
        sql = f"SELECT v{place} AS text FROM {ROWS} WHERE rowid >= ? AND rowid < ? ORDER BY rowid"  # noqa: S608
        numbers, n_chunk = np.empty(n_staged), _FETCH_VALUES // 8
        for first in range(0, n_staged, n_chunk):
            last = min(first + n_chunk, n_staged)
            texts = self.database.execute(sql, [first, last]).fetchnumpy()["text"]
            numbers[first:last] = encoding.read(texts_of(texts), last - first)
        unknown = np.flatnonzero(numbers == UNKNOWN)
        if unknown.size:
            row = pair(
                self.database.execute(
                    f"SELECT {self.row}, 0 FROM {ROWS} WHERE rowid = ?",  # noqa: S608
                    [int(unknown[0])],
                ).fetchone()
            )[0]
            raise BadInput(
                f"{self.origin}: {unknown_texts(encoding.source, encoding, unknown.size, row)}"
            )
        return numbers

    def _arranged(self, values: FloatArray) -> FloatArray:
        if self.index is None:
            return values
        arranged = np.full(self.n_rows, np.nan)
        present = self.index >= 0
        arranged[present] = values[self.index[present]]
        return arranged


def _parts_in_place(
    rows: RowsInPlace, n_columns: int, progress: Callable[[Sequence[Any]], Iterable[Any]]
) -> Iterator[list[Part]]:
    """Yield all rows, then refuse them if they changed meanwhile."""
    for span in progress(rows.spans(n_columns, block_values=_PLACE_VALUES)):
        n_together = max(1, _PLACE_VALUES // (span.last - span.first))
        for start in range(0, n_columns, n_together):
            columns = range(start, min(start + n_together, n_columns))
            read = zip(columns, rows.read(span, columns), strict=True)
            yield [(column, span.place, numbers) for column, numbers in read]
    rows.check_unchanged()
