"""Compiled steps of a client whose own intercept is free, and of one that sends gradients.

Privacy: as in `admm.kernels`, how long they take follows from shapes alone.
"""

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.constant_time import flush, reciprocal
from colonnade.core.jit import njit
from colonnade.methods.admm.grid import to_grid, within
from colonnade.methods.admm.kernels import chances, dot, factor, substitute

# Of the search for a client's own intercept, and the farthest it may lie from where it is asked.
_STEPS = 16
_REACH = 8.0
# Of a proximal step, and the least curvature of a row's loss that it believes.
_PROX_STEPS = 3
_LEAST_CURVE = 1e-3


@njit
def own_intercept(margins: FloatArray, y: FloatArray) -> float:
    """Return the ``x`` that minimises the logistic loss of ``margins + x``, weakly held to 0.

    The mean loss plus ``x**2 / (8 n)``, by Newton's method within a bracket, as many steps in any
    case; without the last term a client of one class would have none.
    """
    n = y.size
    work = np.empty((3, n))
    weight = 1.0 / n
    low, high, x = -_REACH, _REACH, 0.0
    for _ in range(_STEPS):
        for i in range(n):
            work[0, i] = -y[i] * within(margins[i] + x, 200.0)
        chances(work[0], work[1], work[2])
        slope, curve = 0.25 * weight * x, 0.25 * weight
        for i in range(n):
            slope -= weight * y[i] * work[1, i]
            curve += weight * work[2, i]
        above = np.float64(slope > 0.0)
        high = above * x + (1.0 - above) * high
        low = above * low + (1.0 - above) * x
        step = x - slope * reciprocal(curve)
        inside = np.float64(step > low) * np.float64(step < high)
        x = flush(inside * within(step, _REACH) + (1.0 - inside) * 0.5 * (low + high))
    return x


@njit
def few_steps(B: FloatArray, y: FloatArray, q: FloatArray, gamma: float, c: FloatArray) -> None:
    """Take few plain Newton steps towards the proximal point, from ``c = 0`` and in place.

    Stopping early holds clients of few rows back, whose exact proximal points are far out: in noise
    that did better than exact ones.
    """
    n, r = B.shape
    inverse, weight = 1.0 / gamma, 1.0 / n
    work, grad, H = np.empty((3, n)), np.empty(r), np.empty((r, r))
    for _ in range(_PROX_STEPS):
        for j in range(r):
            grad[j] = -inverse * c[j]
            for k in range(j + 1):
                H[j, k] = inverse if j == k else 0.0
        for i in range(n):
            margin = 0.0
            for j in range(r):
                margin += B[i, j] * (q[j] + c[j])
            work[0, i] = -y[i] * within(margin, 200.0)
        chances(work[0], work[1], work[2])
        for i in range(n):
            pull, curve = y[i] * work[1, i] * weight, max(work[2, i], _LEAST_CURVE) * weight
            for j in range(r):
                grad[j] += pull * B[i, j]
                weighed = curve * B[i, j]
                for k in range(j + 1):
                    H[j, k] += weighed * B[i, k]
        factor(H)
        substitute(H, grad)
        for j in range(r):
            c[j] = flush(c[j] + grad[j])


@njit
def displace_own(
    logistic: bool,
    only_intercept: bool,
    clients: IntArray,
    points: IntArray,
    basis: FloatArray,
    matrix: FloatArray,
    vector: FloatArray,
    means: FloatArray,
    counts: IntArray,
    ranks: IntArray,
    places: IntArray,
    firsts: IntArray,
    gamma: float,
    relaxed: float,
    inverse_held: float,
    unit: float,
    radius: int,
    out: IntArray,
) -> None:
    """Write what every client answers to its point ``(w, 2 b)`` or ``(w, 2 b, C)``.

    The displacement of ``w`` is ``relaxed`` times that of a proximal step in which the client's own
    intercept is free; that of ``2 b`` leads to the client's own best intercept for the ``w`` that
    it was sent. If ``only_intercept``, that alone is written, in ``radius`` parts of ``C``.
    ``inverse_held`` is one over the column that stands for the intercept in ``matrix``.
    """
    d = basis.shape[1]
    steps = 1.0 / unit
    for place in range(clients.size):
        client = clients[place]
        first, last = ranks[client], ranks[client + 1]
        r, n = last - first, counts[client]
        b = 0.5 * unit * float(points[place, d])
        q = np.zeros(r + 1)
        for a in range(r):
            for j in range(d):
                q[a] += basis[first + a, j] * float(points[place, j])
            q[a] *= unit
        q[r] = b * inverse_held
        part = matrix[places[client] : places[client + 1]]
        kept = vector[firsts[client] : firsts[client + 1]]
        c = np.zeros(r + 1)
        if logistic:
            B = part.reshape((n, r + 1))
            margins = np.empty(n)
            for i in range(n):
                margins[i] = dot(B[i], q)
            own = own_intercept(margins, kept)
            if not only_intercept:
                few_steps(B, kept, q, gamma, c)
        else:
            own = means[client, d] - b
            for j in range(d):
                own -= means[client, j] * (unit * float(points[place, j]))
            for a in range(r):
                c[a] = kept[a] - dot(part[a * r : (a + 1) * r], q[:r])
        if only_intercept:
            values = np.empty(1)
            values[0] = own * float(radius) * reciprocal(unit * float(points[place, d + 1]))
        else:
            values = np.zeros(d + 1)
            for a in range(r):
                for j in range(d):
                    values[j] += basis[first + a, j] * (c[a] * relaxed * steps)
            values[d] = 2.0 * own * steps
        to_grid(values, radius, out[place])


@njit
def descend(
    logistic: bool,
    clients: IntArray,
    points: IntArray,
    basis: FloatArray,
    matrix: FloatArray,
    vector: FloatArray,
    counts: IntArray,
    ranks: IntArray,
    places: IntArray,
    firsts: IntArray,
    gamma: float,
    unit: float,
    radius: int,
    out: IntArray,
) -> None:
    """Write ``-gamma`` times the gradient of every client's mean loss at its point."""
    dim = points.shape[1]
    for place in range(clients.size):
        client = clients[place]
        first, last = ranks[client], ranks[client + 1]
        r, n = last - first, counts[client]
        q = np.zeros(r)
        for a in range(r):
            for j in range(dim):
                q[a] += basis[first + a, j] * float(points[place, j])
            q[a] *= unit
        B = matrix[places[client] : places[client + 1]].reshape((n, r))
        y = vector[firsts[client] : firsts[client + 1]]
        work = np.empty((3, n))
        for i in range(n):
            work[2, i] = dot(B[i], q)
            work[0, i] = -y[i] * work[2, i]
        if logistic:
            slopes = np.empty(n)
            chances(work[0], work[1], slopes)
            for i in range(n):
                slopes[i] = -y[i] * work[1, i]
        else:
            slopes = work[2] - y
        weight = gamma / (n * unit)
        values = np.zeros(dim)
        for a in range(r):
            pull = 0.0
            for i in range(n):
                pull += slopes[i] * B[i, a]
            for j in range(dim):
                values[j] -= basis[first + a, j] * (weight * pull)
        to_grid(values, radius, out[place])
