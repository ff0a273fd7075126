"""The duals of clients: of those that have answered, and of no others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray


@dataclass(slots=True, eq=False)
class SparseDuals:
    """A dual vector for each client; zero, and without memory of its own, until it is changed.

    Few of very many clients are asked in a round: memory follows from how many have ever answered.
    """

    dim: int
    _places: NDArray[np.int32]  # (n_clients,): of each client's row, or -1
    _rows: IntArray  # (at least so many, dim)
    _count: int = 0

    @classmethod
    def zero(cls, n_clients: int, dim: int) -> "SparseDuals":
        """Return zero for everybody."""
        return cls(dim, np.full(n_clients, -1, np.int32), np.empty((0, dim), np.int64))

    def __len__(self) -> int:
        return self._places.size

    def of(self, clients: IntArray) -> IntArray:
        """Return the duals of ``clients``, one in a row."""
        places = self._places[clients]
        found = np.zeros((clients.size, self.dim), np.int64)
        there = places >= 0
        found[there] = self._rows[places[there]]
        return found

    def put(self, clients: IntArray, duals: IntArray) -> None:
        """Replace the duals of ``clients``, which all differ."""
        new = clients[self._places[clients] < 0]
        if (count := self._count + new.size) > len(self._rows):
            room = np.empty((min(len(self), max(count, 2 * self._count)), self.dim), np.int64)
            room[: self._count] = self._rows[: self._count]
            self._rows = room
        self._places[new] = np.arange(self._count, count)
        self._count = count
        self._rows[self._places[clients]] = duals

    def changed(self) -> IntArray:
        """Return the clients whose duals are not zero, in rising order."""
        there = np.flatnonzero(self._places >= 0)
        return there[self._rows[self._places[there]].any(axis=1)]

    def copy(self) -> "SparseDuals":
        """Return the same, to be changed by itself."""
        return SparseDuals(self.dim, self._places.copy(), self._rows.copy(), self._count)

    def __array__(self, dtype: object = None, copy: object = None) -> IntArray:
        """Return all duals, one client in a row: for looking at, of few clients."""
        del dtype, copy
        return self.of(np.arange(len(self)))
