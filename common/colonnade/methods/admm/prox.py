"""A client's proximal step, in coordinates of its own rows.

A displacement ``d = prox_(gamma f)(v) - v`` lies in the span of the client's rows. Each client's
matrix is factorised once, ``A = B Q`` with ``r = min(rows, coefficients)`` orthonormal rows of
``Q``, and the step is solved for ``c = Q d``, with ``q = Q v``:

- squared loss: in closed form, ``c = (I + G)**-1 (b - G q)`` with ``G = gamma B'B / rows`` and
  ``b = gamma B'y / rows``;
- logistic loss: Newton's method on ``mean log(1 + exp(-y B (q + c))) + |c|**2 / (2 gamma)``, as
  many steps in any case. The objective is ``1 / gamma``-strongly convex, so ``c`` is within
  ``gamma |gradient|`` of the exact one; tests hold that to ``TOLERANCE gamma L``.

Planned jobs (`admm.recipe`) solve for ``w`` with the client's own intercept free: the squared loss
on rows minus their mean, the logistic loss with one more column, weakly held to the intercept that
was sent, and in few steps. Gradient steps need the rows alone.

Privacy: nothing is claimed of the result. What leaves is bounded by `kernels.to_grid` alone. The
time that factorisation and step take follows from a client's number of rows and not from its
values.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC_CODE
from colonnade.methods.admm.choices import Variant
from colonnade.methods.admm.kernels import displace, orthogonal, ridge
from colonnade.methods.admm.own_kernels import descend, displace_own
from colonnade.methods.admm.recipe import relaxation
from colonnade.methods.admm.spec import AdmmSpec

# The own intercept of a client with the logistic loss costs its square over twice this.
_INTERCEPT_GAMMA = 4.0
# Error of a logistic step in units of gamma L: below a grid step at the default radius.
TOLERANCE = 2.0**-28
# Clients that are factorised together: their arrays stand apart only until these are joined.
_TOGETHER = 1024
# Of the factorisations that a host keeps, in bytes.
_MAX_KEPT = 2**28


@dataclass(frozen=True, slots=True, eq=False)
class ClientRows:
    """One client's rows on the grid, column by column as in a table."""

    columns: Int16Array  # (n_features, n_rows)
    label: Int16Array  # (n_rows,); for the logistic loss its sign counts

    def __post_init__(self) -> None:
        if self.columns.ndim != 2 or self.label.shape != (self.columns.shape[1],):
            raise ValueError("a client needs a label for every row")
        if not self.label.size:
            raise ValueError("a client needs at least one row")


def design(client: ClientRows, spec: AdmmSpec) -> tuple[FloatArray, FloatArray]:
    """Return the client's matrix ``(n_rows, dim)`` and labels as floats."""
    if client.columns.shape[0] != spec.n_features:
        raise ValueError("a client has other features than the job")
    A = np.ascontiguousarray(client.columns.T * (1.0 / GRID))
    if spec.intercept:
        A = np.column_stack([A, np.ones(len(A))])
    if spec.loss.classifies:
        return A, np.where(client.label > 0, 1.0, -1.0)
    return A, client.label / GRID


@dataclass(frozen=True, slots=True, eq=False)
class Problems:
    """The factorised problems of many clients, one after the other in flat arrays."""

    spec: AdmmSpec
    basis: FloatArray  # (sum of r, dim): Q; planned, without the intercept
    matrix: FloatArray  # B of each, for proximal steps of the squared loss (I + G)**-1 G: flat
    vector: FloatArray  # y of each, for proximal steps of the squared loss (I + G)**-1 b
    means: FloatArray  # (n, n_features + 1): of each client's columns and label, where centred
    counts: IntArray  # (n,): rows of each client
    ranks: IntArray  # (n + 1,): where each client's directions begin
    places: IntArray  # (n + 1,): where its matrix begins
    firsts: IntArray  # (n + 1,): where its vector begins

    @property
    def n_bytes(self) -> int:
        """How much memory they take, but for a few numbers a client."""
        return sum(part.nbytes for part in (self.basis, self.matrix, self.vector, self.means))

    def displacements(self, clients: IntArray, v: IntArray, *, round_: int = 1) -> IntArray:
        """Return the clipped answers of ``clients`` to the rows of ``v``, in grid steps."""
        spec, release = self.spec, self.spec.release(round_)
        if v.shape != (clients.size, spec.point_size(round_)):
            raise ValueError("every client needs a vector of the job's size")
        if clients.size and not 0 <= int(clients.min()) <= int(clients.max()) < self.counts.size:
            raise ValueError("a client is not among these")
        out = np.zeros((clients.size, release.code.dim), np.int64)
        logistic = spec.loss.code == LOGISTIC_CODE
        asked = np.ascontiguousarray(clients, np.int64), np.ascontiguousarray(v, np.int64)
        held = self.basis, self.matrix, self.vector
        where = self.counts, self.ranks, self.places, self.firsts
        unit, radius = spec.unit, release.radius
        match spec.variant:
            case Variant.PAPER:
                displace(logistic, *asked, *held, *where, spec.gamma, unit, radius, out)
            case Variant.GRADIENT:
                descend(logistic, *asked, *held, *where, spec.gamma, unit, radius, out)
            case Variant.PLANNED:
                only, column = round_ > spec.steps, _column(spec)
                displace_own(
                    logistic,
                    only,
                    *asked,
                    *held,
                    self.means,
                    *where,
                    spec.gamma,
                    relaxation(spec.loss, spec.gamma),
                    1.0 / column,
                    unit,
                    radius,
                    out,
                )
        return out


class Displacing(Protocol):
    """Clients' problems, however they are kept."""

    def displacements(self, clients: IntArray, v: IntArray, *, round_: int = 1) -> IntArray:
        """Return the clipped answers of ``clients`` to the rows of ``v``, in grid steps."""


@dataclass(slots=True, eq=False)
class KeptProblems:
    """The problems of ``n_clients`` clients, factorised when they are first asked.

    Memory follows from who is asked and not from how many there are: beyond ``limit`` bytes, what
    is kept is dropped and made again when it is needed. That changes no answer.

    Parameters
    ----------
    client
        Reads the rows of a client.
    """

    spec: AdmmSpec
    n_clients: int
    client: Callable[[int], ClientRows]
    limit: int = _MAX_KEPT
    _segments: list[Problems] = field(default_factory=list)  # one after the other
    _places: NDArray[np.int32] = field(init=False)  # of each client in them, or -1

    def __post_init__(self) -> None:
        if self.n_clients < 1:
            raise ValueError("there are no clients")
        self._places = np.full(self.n_clients, -1, np.int32)

    def displacements(self, clients: IntArray, v: IntArray, *, round_: int = 1) -> IntArray:
        """Return the clipped answers of ``clients`` to the rows of ``v``, in grid steps."""
        if clients.size and not 0 <= int(clients.min()) <= int(clients.max()) < self.n_clients:
            raise ValueError("a client is not among these")
        if sum(each.n_bytes for each in self._segments) > self.limit:
            self._segments.clear()
            self._places.fill(-1)
        self._keep(np.unique(clients[self._places[clients] < 0]))
        out = np.zeros((clients.size, self.spec.release(round_).code.dim), np.int64)
        first = 0
        for held in self._segments:
            places = self._places[clients] - first
            (rows,) = np.nonzero((places >= 0) & (places < held.counts.size))
            out[rows] = held.displacements(places[rows].astype(np.int64), v[rows], round_=round_)
            first += held.counts.size
        return out

    def _keep(self, new: IntArray) -> None:
        """Factorise more clients; few segments remain, and each client is rarely moved."""
        if not new.size:
            return
        have = sum(each.counts.size for each in self._segments)
        self._segments.append(factorise(map(self.client, new.tolist()), self.spec))
        self._places[new] = np.arange(have, have + new.size)
        while len(self._segments) > 1 and (
            self._segments[-2].counts.size <= 2 * self._segments[-1].counts.size
        ):
            self._segments[-2:] = [_joined(self._segments[-2:])]


def factorise(clients: Iterable[ClientRows], spec: AdmmSpec) -> Problems:
    """Factorise every client's matrix."""
    one_by_one = iter(clients)
    parts = list[Problems]()
    while some := [_factorise(each, spec) for each in itertools.islice(one_by_one, _TOGETHER)]:
        parts.append(_together(some, spec))
    if not parts:
        raise ValueError("there are no clients")
    return _joined(parts)


def _together(
    parts: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]], spec: AdmmSpec
) -> Problems:
    basis, matrix, vector, means, counts = zip(*parts, strict=True)

    def starts(lengths: Iterable[int]) -> IntArray:
        return np.array([0, *itertools.accumulate(lengths)], np.int64)

    return Problems(
        spec,
        np.concatenate(basis),
        np.concatenate([part.ravel() for part in matrix]),
        np.concatenate(vector),
        np.stack(means),
        np.array(counts, np.int64),
        ranks=starts(map(len, basis)),
        places=starts(part.size for part in matrix),
        firsts=starts(part.size for part in vector),
    )


def _joined(parts: list[Problems]) -> Problems:
    """Return the clients of ``parts``, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def starts(arrays: list[IntArray]) -> IntArray:
        ends = [0, *itertools.accumulate(int(each[-1]) for each in arrays)]
        moved = [each[1:] + end for each, end in zip(arrays, ends, strict=False)]
        return np.concatenate([np.zeros(1, np.int64), *moved])

    return Problems(
        parts[0].spec,
        np.concatenate([part.basis for part in parts]),
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.vector for part in parts]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.counts for part in parts]),
        ranks=starts([part.ranks for part in parts]),
        places=starts([part.places for part in parts]),
        firsts=starts([part.firsts for part in parts]),
    )


def _column(spec: AdmmSpec) -> float:
    """Return the column that stands for a client's own intercept, under the common ridge."""
    return math.sqrt(_INTERCEPT_GAMMA / spec.gamma)


def _factorise(
    client: ClientRows, spec: AdmmSpec
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]:
    """Return ``Q``, matrix and vector of a step, means where rows are centred, and how many."""
    A, y = design(client, spec)
    logistic, planned = spec.loss.code == LOGISTIC_CODE, spec.variant is Variant.PLANNED
    means = np.zeros(spec.n_features + 1)
    if planned:
        A = np.ascontiguousarray(A[:, : spec.n_features])
    if planned and not logistic:
        means[:-1], means[-1] = A.mean(axis=0), y.mean()
        A, y = A - means[:-1], y - means[-1]
    rows, dim = A.shape
    if rows <= dim:
        B, Q = np.zeros((rows, rows)), np.empty((rows, dim))
        orthogonal(A, B, Q)
    else:  # any basis does
        B, Q = A, np.eye(dim)
    if logistic and planned:
        B = np.column_stack([B, np.full(rows, _column(spec))])
    if logistic or spec.variant is Variant.GRADIENT:
        return Q, B, y, means, rows
    M, m = np.zeros((len(Q), len(Q))), np.zeros(len(Q))
    ridge(B, y, spec.gamma, M, m)
    return Q, M, m, means, rows
