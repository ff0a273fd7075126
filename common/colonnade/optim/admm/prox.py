"""A client's proximal step, in coordinates of its own rows.

A displacement ``d = prox_(gamma f)(v) - v`` lies in the span of the client's rows. Each client's
matrix is factorised once, ``A = U S Q'`` with ``r = min(rows, coefficients)`` directions, and the
step is solved for ``c = Q' d``:

- squared loss: in closed form, ``c = -gamma S (S q - U'y) / (rows + gamma S**2)`` with ``q = Q'v``;
- logistic loss: Newton's method on ``mean log(1 + exp(-y B (q + c))) + |c|**2 / (2 gamma)`` with
  ``B = U S``, as many steps in any case. The objective is ``1 / gamma``-strongly convex, so ``c``
  is within ``gamma |gradient|`` of the exact one; tests hold that to ``TOLERANCE gamma L``.

Privacy: nothing is claimed of the result. What leaves is bounded by `kernels.to_grid` alone. The
time that a step takes follows from a client's number of rows and not from its values.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.admm.kernels import displace
from colonnade.optim.admm.spec import AdmmSpec
from colonnade.optim.solvers.losses import LOGISTIC_CODE

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
    A = client.columns.T / GRID
    if spec.intercept:
        A = np.column_stack([A, np.ones(len(A))])
    if spec.loss.classifies:
        return A, np.where(client.label > 0, 1.0, -1.0)
    return A, client.label / GRID


@dataclass(frozen=True, slots=True, eq=False)
class Problems:
    """The factorised problems of many clients, one after the other in flat arrays."""

    spec: AdmmSpec
    basis: FloatArray  # (sum of r, dim): the rows of Q'
    sizes: FloatArray  # (sum of r,): S
    along: FloatArray  # (sum of r,): U'y, for the squared loss
    rows: FloatArray  # (sum of n_rows * r,): B, for the logistic loss
    label: FloatArray  # (sum of n_rows,), for the logistic loss
    counts: IntArray  # (n,): rows of each client
    ranks: IntArray  # (n + 1,): where each client's directions begin
    places: IntArray  # (n + 1,): where its B begins
    firsts: IntArray  # (n + 1,): where its labels begin

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
            self.sizes,
            self.along,
            self.rows,
            self.label,
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
    basis, sizes, along, rows, label, counts = zip(*parts, strict=True)

    def starts(lengths: Iterable[int]) -> IntArray:
        return np.array([0, *itertools.accumulate(lengths)], np.int64)

    return Problems(
        spec,
        np.concatenate(basis),
        np.concatenate(sizes),
        np.concatenate(along),
        np.concatenate(rows),
        np.concatenate(label),
        np.array(counts, np.int64),
        ranks=starts(part.size for part in sizes),
        places=starts(part.size for part in rows),
        firsts=starts(part.size for part in label),
    )


def _factorise(
    client: Client, spec: AdmmSpec
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, int]:
    A, y = design(client, spec)
    U, S, Q = np.linalg.svd(A, full_matrices=False)
    nothing = np.empty(0)
    if spec.loss.code == LOGISTIC_CODE:
        return Q, S, nothing, (U * S).ravel(), y, len(y)
    return Q, S, U.T @ y, nothing, nothing, len(y)
