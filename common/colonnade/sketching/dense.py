"""A dense sketch: the subsampled randomised Hadamard transform, in integers."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.jit import njit
from colonnade.sketching.sparse import check_columns, check_dim, check_rows, derive_key, hash_words


@njit
def _walsh_hadamard(x: IntArray) -> None:
    """Transform ``x`` in place; its size is a power of two."""
    h = 1
    while h < x.size:
        for i in range(0, x.size, 2 * h):
            for j in range(i, i + h):
                a, b = x[j], x[j + h]
                x[j], x[j + h] = a + b, a - b
        h *= 2


@dataclass(frozen=True, slots=True)
class HadamardSketch:
    """A subsampled randomised Hadamard transform with integer entries ``+-1``.

    The squared column norm is ``dim`` exactly. With ``dim`` equal to the padded number of rows
    the matrix is orthogonal up to scale: ``J' J = dim * I``, so nothing is lost.
    """

    seed: bytes
    n_rows: int
    dim: int
    _size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.n_rows < 1:
            raise ValueError("a sketch needs at least one row")
        size = 1 << (self.n_rows - 1).bit_length()
        if not 1 <= self.dim <= size:
            raise ValueError(f"the sketch dimension must lie in 1 .. {size} for {self.n_rows} rows")
        object.__setattr__(self, "_size", size)

    @property
    def column_norm2(self) -> int:
        """Squared norm of every column."""
        return self.dim

    def _random(self, use: str, count: int) -> NDArray[np.uint64]:
        words = np.empty(count, np.uint64)
        hash_words(derive_key(self.seed, use), 0, words)
        return words

    def _signs(self) -> IntArray:
        odd = (self._random("hadamard signs", self.n_rows) >> np.uint64(63)).astype(np.int64)
        return 1 - 2 * odd

    def _rows(self) -> IntArray:
        order = np.argsort(self._random("hadamard rows", self._size), kind="stable")
        return order[: self.dim].astype(np.int64)

    def apply(
        self,
        columns: Int16Array,
        *,
        start: int = 0,
        threads: int | None = None,  # noqa: ARG002 - one transform a column
    ) -> IntArray:
        """Return the sketch of each column, shape ``(n_columns, dim)``."""
        n_columns, rows = check_columns(columns)
        check_rows(self.n_rows, start, start + rows)
        signs, chosen = self._signs()[start : start + rows], self._rows()
        out = np.empty((n_columns, self.dim), np.int64)
        for column in range(n_columns):
            x = np.zeros(self._size, np.int64)
            x[start : start + rows] = columns[column] * signs
            _walsh_hadamard(x)
            out[column] = x[chosen]
        return out

    def transpose(
        self,
        q: IntArray,
        *,
        start: int = 0,
        stop: int | None = None,
        threads: int | None = None,  # noqa: ARG002 - one transform serves all rows
    ) -> IntArray:
        """Return rows ``start .. stop`` of ``J' q``; ``|q| * dim`` below ``2**62`` is exact."""
        stop = self.n_rows if stop is None else stop
        check_rows(self.n_rows, start, stop)
        check_dim(q, self.dim)
        x = np.zeros(self._size, np.int64)
        x[self._rows()] = q
        _walsh_hadamard(x)
        out: IntArray = x[: self.n_rows] * self._signs()
        return out[start:stop]
