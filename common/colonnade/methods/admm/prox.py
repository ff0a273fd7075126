"""A client's proximal step, in coordinates of its own rows.

A displacement ``d = prox_(gamma f)(v) - v`` lies in the span of the client's rows. Each client's
matrix is factorised once, ``A = B Q`` with ``r = min(rows, coefficients)`` orthonormal rows of
``Q``, and the step is solved for ``c = Q d``, with ``q = Q v``:

- squared loss: in closed form, ``c = (I + G)**-1 (b - G q)`` with ``G = gamma B'B / rows`` and
  ``b = gamma B'y / rows``;
- logistic loss: Newton's method on ``mean log(1 + exp(-y B (q + c))) + |c|**2 / (2 gamma)``, as
  many steps in any case. The objective is ``1 / gamma``-strongly convex, so ``c`` is within
  ``gamma |gradient|`` of the exact one; tests hold that to ``TOLERANCE gamma L``.

Privacy: nothing is claimed of the result. What leaves is bounded by `kernels.to_grid` alone. The
time that factorisation and step take follows from a client's number of rows and not from its
values.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC_CODE
from colonnade.methods.admm.kernels import displace, orthogonal, ridge
from colonnade.methods.admm.spec import AdmmSpec

# Error of a logistic step in units of gamma L: below a grid step at the default radius.
TOLERANCE = 2.0**-28


@dataclass(frozen=True, slots=True, eq=False)
class Client:
    """One client's rows on the grid, column by column as in a table."""

    columns: Int16Array  # (n_features, n_rows)
    label: Int16Array  # (n_rows,); for the logistic loss its sign counts

    def __post_init__(self) -> None:
        if self.columns.ndim != 2 or self.label.shape != (self.columns.shape[1],):
            raise ValueError("a client needs a label for every row")
        if not self.label.size:
            raise ValueError("a client needs at least one row")


def design(client: Client, spec: AdmmSpec) -> tuple[FloatArray, FloatArray]:
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
    basis: FloatArray  # (sum of r, dim): Q
    matrix: FloatArray  # B of each, for the squared loss (I + G)**-1 G: flat
    vector: FloatArray  # y of each, for the squared loss (I + G)**-1 b
    counts: IntArray  # (n,): rows of each client
    ranks: IntArray  # (n + 1,): where each client's directions begin
    places: IntArray  # (n + 1,): where its matrix begins
    firsts: IntArray  # (n + 1,): where its vector begins

    def displacements(self, clients: IntArray, v: IntArray) -> IntArray:
        """Return the clipped displacements of ``clients`` from the rows of ``v``, in grid steps."""
        spec = self.spec
        if v.shape != (clients.size, spec.dim):
            raise ValueError("every client needs a vector of the job's size")
        if clients.size and not 0 <= int(clients.min()) <= int(clients.max()) < self.counts.size:
            raise ValueError("a client is not among these")
        out = np.zeros(v.shape, np.int64)
        displace(
            spec.loss.code == LOGISTIC_CODE,
            np.ascontiguousarray(clients, np.int64),
            np.ascontiguousarray(v, np.int64),
            self.basis,
            self.matrix,
            self.vector,
            self.counts,
            self.ranks,
            self.places,
            self.firsts,
            spec.gamma,
            spec.unit,
            spec.radius,
            out,
        )
        return out


def factorise(clients: Iterable[Client], spec: AdmmSpec) -> Problems:
    """Factorise every client's matrix."""
    parts = [_factorise(client, spec) for client in clients]
    if not parts:
        raise ValueError("there are no clients")
    basis, matrix, vector = zip(*parts, strict=True)

    def starts(lengths: Iterable[int]) -> IntArray:
        return np.array([0, *itertools.accumulate(lengths)], np.int64)

    return Problems(
        spec,
        np.concatenate(basis),
        np.concatenate([part.ravel() for part in matrix]),
        np.concatenate(vector),
        np.array([len(part) for part in matrix], np.int64),
        ranks=starts(map(len, basis)),
        places=starts(part.size for part in matrix),
        firsts=starts(part.size for part in vector),
    )


def _factorise(client: Client, spec: AdmmSpec) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``Q``, and matrix and vector of a step."""
    A, y = design(client, spec)
    rows, dim = A.shape
    if rows <= dim:
        B, Q = np.zeros((rows, rows)), np.empty((rows, dim))
        orthogonal(A, B, Q)
    else:  # any basis does
        B, Q = A, np.eye(dim)
    if spec.loss.code == LOGISTIC_CODE:
        return Q, B, y
    M, m = np.zeros((len(Q), len(Q))), np.zeros(len(Q))
    ridge(B, y, spec.gamma, M, m)
    return Q, M, m
