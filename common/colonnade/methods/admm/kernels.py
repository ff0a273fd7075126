"""Compiled steps of a client: the clip that privacy rests on, and the solvers of a proximal step.

Privacy: how long any of them takes follows from the shapes of its arguments and not from what they
hold (`core.constant_time`), so that a coordinator that chooses the points learns nothing from
answer times about the rows that meet them. Choices are sums ``m a + (1 - m) b`` with ``m`` 0 or 1.
"""

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.constant_time import TINY, exp_down, flush, inverse_root, reciprocal
from colonnade.core.jit import njit
from colonnade.methods.admm.grid import to_grid, within

# Of a logistic step: Newton's, and how often each looks along its direction.
_STEPS = 12
_LOOKS = 4
# Beyond this a logistic loss is straight: exp(-100) is 2**-144.
_STRAIGHT = 100.0
# A pivot of a factorisation is never smaller, rounding errors apart.
_LEAST_PIVOT = 2.0**-60


@njit
def factor(H: FloatArray) -> None:
    """Factorise ``H`` by Cholesky in place; the diagonal of the factor is kept inverted."""
    for j in range(H.shape[0]):
        for i in range(j):
            total = H[j, i]
            for k in range(i):
                total -= H[j, k] * H[i, k]
            H[j, i] = flush(total * H[i, i])
        total = H[j, j]
        for k in range(j):
            total -= H[j, k] * H[j, k]
        H[j, j] = inverse_root(max(total, _LEAST_PIVOT))


@njit
def substitute(H: FloatArray, x: FloatArray) -> None:
    """Solve ``H x = x`` in place for ``H`` as `factor` left it."""
    n = x.size
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= H[i, k] * x[k]
        x[i] = flush(total * H[i, i])
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= H[k, i] * x[k]
        x[i] = flush(total * H[i, i])


@njit
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit
def orthogonal(A: FloatArray, B: FloatArray, Q: FloatArray) -> None:
    """Write ``A = B Q`` with orthonormal rows of ``Q``, by Householder's reflections.

    ``A`` has no more rows than columns and is overwritten; ``B`` is square and of zeros.
    """
    n, dim = A.shape
    scale = np.empty(n)
    for k in range(n):
        square = dot(A[k, k:], A[k, k:])
        norm = square * inverse_root(max(square, TINY))
        side = 2.0 * np.float64(A[k, k] >= 0.0) - 1.0
        B[k, k] = -side * norm
        scale[k] = reciprocal(max(square + abs(A[k, k]) * norm, TINY))
        A[k, k] += side * norm
        for i in range(k + 1, n):
            _reflect(A[k, k:], scale[k], A[i, k:])
            B[i, k] = flush(A[i, k])
    for k in range(n):
        for j in range(dim):
            Q[k, j] = np.float64(j == k)
    for k in range(n - 1, -1, -1):
        for i in range(k, n):
            _reflect(A[k, k:], scale[k], Q[i, k:])


@njit
def _reflect(normal: FloatArray, scale: float, x: FloatArray) -> None:
    """Reflect ``x`` in place; ``scale`` is 2 over the normal's squared norm."""
    along = scale * dot(normal, x)
    for j in range(x.size):
        x[j] = flush(x[j] - along * normal[j])


@njit
def ridge(B: FloatArray, y: FloatArray, gamma: float, M: FloatArray, m: FloatArray) -> None:
    """Write the squared loss's step ``c = m - M q`` into ``M`` and ``m``.

    ``M = K**-1 G`` and ``m = K**-1 b`` with ``G = gamma B'B / n``, ``b = gamma B'y / n`` and
    ``K = I + G``; both arrays hold zeros before.
    """
    n, r = B.shape
    weight = gamma / n
    K = np.zeros((r, r))
    for i in range(n):
        for j in range(r):
            weighed = weight * B[i, j]
            m[j] += weighed * y[i]
            for k in range(r):
                M[j, k] += weighed * B[i, k]
    for j in range(r):
        for k in range(r):
            K[j, k] = flush(M[j, k]) + np.float64(j == k)
    factor(K)
    substitute(K, m)
    for j in range(r):
        substitute(K, M[j])  # a row of G is one of its columns


@njit
def chances(t: FloatArray, chance: FloatArray, curve: FloatArray) -> None:
    """Write ``1 / (1 + exp(-t))`` and its derivative for every ``t``."""
    for i in range(t.size):  # several at a time: nothing here waits for the one before
        small = exp_down(-within(abs(t[i]), _STRAIGHT))
        inverse = reciprocal(1.0 + small)
        up = np.float64(t[i] >= 0.0)
        chance[i] = (up + (1.0 - up) * small) * inverse
        curve[i] = small * inverse * inverse


@njit
def _steepness(
    margins: FloatArray, along: FloatArray, length: float, y: FloatArray, work: FloatArray
) -> float:
    """Return the derivative of the mean logistic loss along a move, ``length`` of it taken."""
    for i in range(y.size):
        work[0, i] = -y[i] * (margins[i] + length * along[i])
    chances(work[0], work[1], work[2])
    total, weight = 0.0, 1.0 / y.size
    for i in range(y.size):
        total -= y[i] * work[1, i] * along[i]
    return total * weight


@njit
def _length(
    margins: FloatArray,
    along: FloatArray,
    y: FloatArray,
    start: float,
    steep: float,
    bend: float,
    work: FloatArray,
) -> float:
    """Return how much of a move to take: all of it if it nearly ends the descent, else up to there.

    ``start`` is the derivative at its beginning, ``steep + length * bend`` the ridge's part of it.
    The place where the descent ends is enclosed by secants and halvings in turn, as often in any
    case.
    """
    low, slope_low, high = 0.0, start, 1.0
    slope_high = whole = _steepness(margins, along, 1.0, y, work) + steep + bend
    for look in range(_LOOKS):
        middle = 0.5 * (low + high)
        if look % 2 == 0:
            gap = slope_high - slope_low
            secant = low - slope_low * (high - low) * reciprocal(max(gap, TINY))
            good = np.float64(gap > TINY)
            middle = good * secant + (1.0 - good) * middle
        slope = _steepness(margins, along, middle, y, work) + steep + middle * bend
        down = np.float64(slope <= 0.0)
        low, slope_low = _choice(down, middle, low), _choice(down, slope, slope_low)
        high, slope_high = _choice(down, high, middle), _choice(down, slope_high, slope)
    inner = _choice(np.float64(low > 0.0), low, high)
    return flush(_choice(np.float64(whole <= 0.1 * abs(start)), 1.0, inner))


@njit
def _choice(is_first: float, first: float, second: float) -> float:
    """Return ``first`` for 1 and ``second`` for 0; both are finite."""
    return is_first * first + (1.0 - is_first) * second


@njit
def newton(B: FloatArray, y: FloatArray, q: FloatArray, gamma: float, c: FloatArray) -> float:
    """Minimise over ``c`` in place; return the norm of the gradient before the last step.

    As many steps in any case; with ``gamma`` up to 100 no problem that was tried needed more than
    ten.
    """
    n, r = B.shape
    margins, along, work = np.empty(n), np.empty(n), np.empty((3, n))
    move, grad, H = np.empty(r), np.empty(r), np.empty((r, r))
    inverse = 1.0 / gamma
    weight = 1.0 / n
    c[:] = 0.0
    for i in range(n):
        margins[i] = dot(B[i], q)
    norm2 = 0.0
    for _ in range(_STEPS):
        for j in range(r):
            grad[j] = c[j] * inverse
            for k in range(j + 1):
                H[j, k] = inverse if j == k else 0.0
        for i in range(n):
            work[0, i] = -y[i] * margins[i]
        chances(work[0], work[1], work[2])
        for i in range(n):
            pull, curve = y[i] * work[1, i] * weight, work[2, i] * weight
            for j in range(r):
                grad[j] -= pull * B[i, j]
                weighed = curve * B[i, j]
                for k in range(j + 1):
                    H[j, k] += weighed * B[i, k]
        norm2 = dot(grad, grad)
        for j in range(r):
            move[j] = -grad[j]
        factor(H)
        substitute(H, move)
        for i in range(n):
            along[i] = dot(B[i], move)
        steep, bend = dot(c, move) * inverse, dot(move, move) * inverse
        length = _length(margins, along, y, dot(grad, move), steep, bend, work)
        for j in range(r):
            c[j] = flush(c[j] + length * move[j])
        for i in range(n):
            margins[i] += length * along[i]
    return norm2 * inverse_root(max(norm2, TINY))


@njit
def displace(
    logistic: bool,
    clients: IntArray,
    v: IntArray,
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
    """Write the displacement of every client from its row of ``v`` into its row of ``out``."""
    dim = v.shape[1]
    values, steps = np.empty(dim), 1.0 / unit
    for place in range(clients.size):
        client = clients[place]
        first, last = ranks[client], ranks[client + 1]
        r, n = last - first, counts[client]
        q, c = np.zeros(r), np.zeros(r)
        for a in range(r):
            for j in range(dim):
                q[a] += basis[first + a, j] * float(v[place, j])
            q[a] *= unit
        held = matrix[places[client] : places[client + 1]]
        kept = vector[firsts[client] : firsts[client + 1]]
        if logistic:
            newton(held.reshape((n, r)), kept, q, gamma, c)
        else:
            for a in range(r):
                c[a] = kept[a] - dot(held[a * r : (a + 1) * r], q)
        values[:] = 0.0
        for a in range(r):
            for j in range(dim):
                values[j] += basis[first + a, j] * (c[a] * steps)
        to_grid(values, radius, out[place])
