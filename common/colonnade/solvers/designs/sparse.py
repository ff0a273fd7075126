"""Tables of which only the non-zeros are stored, column by column or row by row.

Privacy: a sum over rows is bounded because a row has at most one value in a column. So the places
of every column, and of every row, must rise; that is checked when a table is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, Int32Array, IntArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.core.jit import njit
from colonnade.solvers.designs import column_kernels as kernels
from colonnade.solvers.designs.dense import EVERY_ROW, Moved, Rows, check_units, design_units
from colonnade.solvers.designs.lines import check_lines

Lines: TypeAlias = tuple[Int16Array, Int32Array, IntArray]
"""Values line by line (a line is a column or a row), their places, and where each line starts."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseDesign:
    """The non-zeros column by column: values, their rows, and where each column starts.

    Examples
    --------
    >>> values, rows = np.array([5, 7], np.int16), np.array([0, 2], np.int32)
    >>> SparseDesign(values, rows, np.array([0, 2]), 3, np.ones(1)).shape
    (3, 1)
    """

    values: Int16Array
    indices: Int32Array
    starts: IntArray
    n_rows: int
    units: FloatArray

    def __post_init__(self) -> None:
        check_units(self.units, self.starts.size - 1)
        check_lines((self.values, self.indices, self.starts), self.n_rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_rows, self.starts.size - 1

    def _column(self, j: int) -> tuple[Int16Array, Int32Array]:
        part = slice(int(self.starts[j]), int(self.starts[j + 1]))
        return self.values[part], self.indices[part]

    def gradient(
        self, j: int, clip: float, kind: int, margins: FloatArray, label: FloatArray, last: Moved
    ) -> int:
        """Move ``margins`` by ``last``; then sum slope times feature ``j``, in ``clip / TOP``."""
        self.shift(*last, margins)
        factor = float(self.units[j]) / clip * kernels.TOP
        return int(kernels.sparse_gradient(kind, *self._column(j), factor, margins, label))

    def weighted(self, j: int, clip: float, weights: FloatArray) -> int:
        """Sum weight times feature ``j`` over the rows, clipped as above."""
        factor = float(self.units[j]) / clip * kernels.TOP
        return int(kernels.sparse_weighted(*self._column(j), factor, weights))

    def scores(self, residual: Int16Array) -> IntArray:
        """Return the exact inner product of every column of integers with ``residual``."""
        out = np.empty(self.starts.size - 1, np.int64)
        kernels.sparse_scores(self.values, self.indices, self.starts, residual, out)
        return out

    def shift(self, j: int, amount: float, margins: FloatArray) -> None:
        """Add ``amount`` times feature ``j`` to ``margins`` in place."""
        kernels.sparse_shift(*self._column(j), amount * float(self.units[j]), margins)

    def square_sums(self) -> IntArray:
        """Return the exact sum of squares of every column of integers."""
        sums = [kernels.square_sum(self._column(j)[0]) for j in range(self.shape[1])]
        return np.array(sums, np.int64)

    def dense(self, features: IntArray, rows: slice = EVERY_ROW) -> Int16Array:
        """Return some columns of integers, zeros and all, each contiguous."""
        first, last, _ = rows.indices(self.n_rows)
        found = np.zeros((features.size, max(last - first, 0)), np.int16)
        for place, feature in enumerate(features.tolist()):
            values, indices = self._column(feature)
            begin, end = np.searchsorted(indices, (first, last))
            found[place, indices[begin:end] - first] = values[begin:end]
        return found

    def by_columns(self) -> "SparseDesign":
        """Return this."""
        return self

    def by_rows(self) -> Rows:
        """Return the same values row by row: a copy."""
        lines = _transposed((self.values, self.indices, self.starts), self.n_rows)
        return Rows(*lines, False, self.units)


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """The non-zeros row by row, for solvers that read rows.

    Examples
    --------
    >>> values, columns = np.array([5, 7], np.int16), np.array([0, 1], np.int32)
    >>> SparseRows(values, columns, np.array([0, 1, 2]), np.ones(2)).shape
    (2, 2)
    """

    values: Int16Array
    columns: Int32Array
    starts: IntArray
    units: FloatArray

    def __post_init__(self) -> None:
        check_units(self.units, self.units.size)
        check_lines((self.values, self.columns, self.starts), self.units.size)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.starts.size - 1, self.units.size

    def by_columns(self) -> SparseDesign:
        """Return the same values column by column: a copy."""
        lines = _transposed((self.values, self.columns, self.starts), self.units.size)
        return SparseDesign(*lines, self.shape[0], self.units)

    def by_rows(self) -> Rows:
        """Return the same values row by row."""
        return Rows(self.values, self.columns, self.starts, False, self.units)


def sparse_design(
    X: Any, bounds: Sequence[Bounds], *, intercept: bool = False, row_wise: bool = False
) -> SparseDesign | SparseRows:
    """Clip and round the non-zeros of a matrix under declared bounds.

    Beside the matrix itself this needs what the result does: six bytes a value.

    Parameters
    ----------
    X
        A SciPy matrix or array, ``csr`` or ``csc``, no NaN; left as it is.
    bounds
        Symmetric about zero: what is not stored is zero and stays zero.
    intercept
        Whether to append a column of ones.
    row_wise
        Whether to return rows, for a solver that reads rows, instead of columns.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0], [1.0, 0.0]])
    >>> sparse_design(X, [Bounds(-1.0, 1.0), Bounds(-4.0, 4.0)]).values.tolist()
    [16384, 8192]
    """
    n_rows, n_features = X.shape
    if len(bounds) != n_features or any(bound.low != -bound.high for bound in bounds):
        raise ValueError(f"{n_features} bounds are needed, symmetric about zero")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    most = n_features if X.format == "csr" else n_rows
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < most:
        raise ValueError("an index names a row or column that does not exist")
    lines = _laid_out(
        X.data.astype(np.float64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
        np.array([bound.high for bound in bounds]),
        of_rows=X.format == "csr",
        to_rows=row_wise,
        shape=(n_rows, n_features + intercept),
    )
    units = design_units(bounds, intercept=intercept)
    return SparseRows(*lines, units) if row_wise else SparseDesign(*lines, n_rows, units)


def _laid_out(
    data: FloatArray,
    indices: Int32Array,
    indptr: IntArray,
    ends: FloatArray,
    *,
    of_rows: bool,
    to_rows: bool,
    shape: tuple[int, int],
) -> Lines:
    """Return the values as integers, by rows if ``to_rows``; a further column is one of ones."""
    (n_rows, n_columns), ones = shape, shape[1] > ends.size
    # Line `i` starts at `marks[i + 1]`, which moves on as it is filled: at the end the starts are
    # one place to the left, and no second array was needed.
    marks = np.zeros((n_rows if to_rows else n_columns) + 2, np.int64)
    if of_rows == to_rows:
        marks[2 : indptr.size + 1] = np.diff(indptr)
    else:
        _count(indices, marks[2:])
    if ones:
        marks[2:] += 1 if to_rows else 0
        marks[-1] += 0 if to_rows else n_rows
    np.cumsum(marks, out=marks)
    values, places = np.empty(int(marks[-1]), np.int16), np.empty(int(marks[-1]), np.int32)
    _place(data, indices, indptr, ends, of_rows, to_rows, marks[1:], values, places)
    if ones and to_rows:
        values[marks[1:-1]], places[marks[1:-1]] = GRID, n_columns - 1
        marks[1:-1] += 1
    elif ones:
        values[marks[-2] :], places[marks[-2] :] = GRID, np.arange(n_rows)
        marks[-2] += n_rows
    return values, places, marks[:-1]


@njit
def _count(indices: Int32Array, counts: IntArray) -> None:
    """Count every index."""
    for index in indices:
        counts[index] += 1


@njit
def _place(
    data: FloatArray,
    indices: Int32Array,
    indptr: IntArray,
    ends: FloatArray,
    of_rows: bool,
    to_rows: bool,
    marks: IntArray,
    values: Int16Array,
    places: Int32Array,
) -> None:
    """Round every value like `quantise` and put it at the next free place of its line.

    Privacy: as there, the result is within ``+-GRID`` for every float, a NaN included.
    """
    top = float(GRID)
    for line in range(indptr.size - 1):
        for k in range(indptr[line], indptr[line + 1]):
            row, feature = (line, indices[k]) if of_rows else (indices[k], line)
            end = ends[feature]
            above = data[k] if data[k] > -end else -end  # noqa: FURB136 - a NaN is the least
            inside = above if above < end else end  # noqa: FURB136
            scaled = min(max(np.rint(inside / end * top), -top), top)
            at = marks[row] if to_rows else marks[feature]
            if to_rows:
                marks[row] += 1
            else:
                marks[feature] += 1
            values[at] = np.int16(scaled)
            places[at] = feature if to_rows else row


def _transposed(lines: Lines, count: int) -> Lines:
    """Return the same values by their places, ``count`` of them, as lines."""
    values, indices, starts = lines
    marks = np.zeros(count + 2, np.int64)
    _count(indices, marks[2:])
    np.cumsum(marks, out=marks)
    out_values, places = np.empty_like(values), np.empty_like(indices)
    _transpose(values, indices, starts, marks[1:], out_values, places)
    return out_values, places, marks[:-1]


@njit
def _transpose(
    values: Int16Array,
    indices: Int32Array,
    starts: IntArray,
    marks: IntArray,
    out_values: Int16Array,
    out_places: Int32Array,
) -> None:
    """Sort line-wise entries by their places; ``marks`` are the next free place of each."""
    for line in range(starts.size - 1):
        for k in range(starts[line], starts[line + 1]):
            i = indices[k]
            out_values[marks[i]] = values[k]
            out_places[marks[i]] = line
            marks[i] += 1
