"""Compiled steps of a client: the clip that privacy rests on, and the solver of a logistic step."""

import math

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.jit import njit

# Of a logistic step: Newton's, and how often each looks along its direction.
_STEPS = 12
_LOOKS = 4
_LOW_HALF = 0xFFFFFFFF


@njit
def to_grid(values: FloatArray, radius: int, out: IntArray) -> None:
    """Write ``values`` clipped to norm ``radius`` and rounded towards zero into ``out``.

    Privacy: on return the sum of the squares of ``out`` is at most ``radius**2``, in exact
    integers, for every input including infinities and NaN (which give zeros). The clip makes that
    so up to a rounding error; what is left of it the loop takes off, one step a coordinate. Squares
    are below ``2**61`` because every coordinate is within ``+-radius``, and are added in two halves
    so that no sum overflows.
    """
    top = 0.0
    finite = True
    for j in range(values.size):
        finite = finite and math.isfinite(values[j])
        top = max(top, abs(values[j]))
    if not finite or top == 0.0:
        out[:] = 0
        return
    norm2 = 0.0  # of values / top: neither overflows nor vanishes
    for j in range(values.size):
        norm2 += (values[j] / top) * (values[j] / top)
    norm = math.sqrt(norm2)
    shrink = 1.0
    if norm > radius / top:
        shrink = radius / top / norm
    for j in range(values.size):
        inside = min(max(values[j] * shrink, -float(radius)), float(radius))
        out[j] = np.int64(inside)  # towards zero
    while exceeds(out, radius):
        for j in range(out.size):
            if out[j] > 0:
                out[j] -= 1
            elif out[j] < 0:
                out[j] += 1


@njit
def exceeds(vector: IntArray, radius: int) -> bool:
    """Tell whether ``|vector| > radius``, exactly; entries must lie within ``+-2**31``."""
    high, low = np.int64(0), np.int64(0)
    for j in range(vector.size):
        square = vector[j] * vector[j]
        high += square >> 32
        low += square & _LOW_HALF
    high += low >> 32
    low &= _LOW_HALF
    limit = np.int64(radius) * np.int64(radius)
    return bool(high > limit >> 32 or (high == limit >> 32 and low > limit & _LOW_HALF))


@njit
def _solve(H: FloatArray, x: FloatArray) -> None:
    """Solve ``H x = x`` in place by Cholesky; ``H`` is positive definite and is overwritten."""
    n = x.size
    for j in range(n):
        for i in range(j):
            for k in range(i):
                H[j, i] -= H[j, k] * H[i, k]
            H[j, i] /= H[i, i]
            H[j, j] -= H[j, i] * H[j, i]
        H[j, j] = math.sqrt(H[j, j])
    for i in range(n):
        for k in range(i):
            x[i] -= H[i, k] * x[k]
        x[i] /= H[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= H[k, i] * x[k]
        x[i] /= H[i, i]


@njit
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit
def _chance(t: float) -> tuple[float, float]:
    """Return ``1 / (1 + exp(-t))`` and its derivative."""
    small = math.exp(-abs(t))
    return (1.0 if t >= 0.0 else small) / (1.0 + small), small / ((1.0 + small) * (1.0 + small))


@njit
def _steepness(margins: FloatArray, along: FloatArray, length: float, y: FloatArray) -> float:
    """Return the derivative of the mean logistic loss along a move, ``length`` of it taken."""
    total = 0.0
    for i in range(y.size):
        chance, _ = _chance(-y[i] * (margins[i] + length * along[i]))
        total -= y[i] * chance * along[i]
    return total / y.size


@njit
def _length(
    margins: FloatArray, along: FloatArray, y: FloatArray, start: float, ridge: float, bend: float
) -> float:
    """Return how much of a move to take: all of it if it nearly ends the descent, else up to there.

    ``start`` is the derivative at its beginning, ``ridge + length * bend`` the ridge's part of it.
    The place where the descent ends is enclosed by secants and halvings in turn, as often in any
    case.
    """
    low, slope_low, high = 0.0, start, 1.0
    slope_high = whole = _steepness(margins, along, 1.0, y) + ridge + bend
    for look in range(_LOOKS):
        middle = 0.5 * (low + high)
        if look % 2 == 0 and slope_high > slope_low:
            middle = low - slope_low * (high - low) / (slope_high - slope_low)
        slope = _steepness(margins, along, middle, y) + ridge + middle * bend
        if slope <= 0.0:
            low, slope_low = middle, slope
        else:
            high, slope_high = middle, slope
    if whole <= 0.1 * abs(start):
        return 1.0
    return low if low > 0.0 else high


@njit
def newton(B: FloatArray, y: FloatArray, q: FloatArray, gamma: float, c: FloatArray) -> float:
    """Minimise over ``c`` in place; return the norm of the gradient before the last step.

    Privacy: the number of operations follows from the shape of ``B`` alone, so that the time it
    takes tells nothing of the values. Hence a fixed number of steps; with ``gamma`` up to 100 no
    problem that was tried needed more than ten.
    """
    n, r = B.shape
    margins, along = np.empty(n), np.empty(n)
    move, grad, H = np.empty(r), np.empty(r), np.empty((r, r))
    c[:] = 0.0
    for i in range(n):
        margins[i] = _dot(B[i], q)
    norm = 0.0
    for _ in range(_STEPS):
        for j in range(r):
            grad[j] = c[j] / gamma
            for k in range(j + 1):
                H[j, k] = 1.0 / gamma if j == k else 0.0
        for i in range(n):
            chance, curve = _chance(-y[i] * margins[i])
            for j in range(r):
                grad[j] -= y[i] * chance / n * B[i, j]
                weighed = curve / n * B[i, j]
                for k in range(j + 1):
                    H[j, k] += weighed * B[i, k]
        norm = math.sqrt(_dot(grad, grad))
        move[:] = -grad
        _solve(H, move)
        for i in range(n):
            along[i] = _dot(B[i], move)
        ridge, bend = _dot(c, move) / gamma, _dot(move, move) / gamma
        length = _length(margins, along, y, _dot(grad, move), ridge, bend)
        for j in range(r):
            c[j] += length * move[j]
        for i in range(n):
            margins[i] += length * along[i]
    return norm


@njit
def displace(
    logistic: bool,
    clients: IntArray,
    v: IntArray,
    basis: FloatArray,
    sizes: FloatArray,
    along: FloatArray,
    rows: FloatArray,
    label: FloatArray,
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
    values = np.empty(dim)
    for place in range(clients.size):
        client = clients[place]
        first, last = ranks[client], ranks[client + 1]
        r, n = last - first, counts[client]
        q, c = np.zeros(r), np.zeros(r)
        for a in range(r):
            for j in range(dim):
                q[a] += basis[first + a, j] * float(v[place, j])
            q[a] *= unit
        if logistic:
            B = rows[places[client] : places[client + 1]].reshape((n, r))
            newton(B, label[firsts[client] : firsts[client + 1]], q, gamma, c)
        else:
            for a in range(r):
                s = sizes[first + a]
                c[a] = -gamma * s * (s * q[a] - along[first + a]) / (n + gamma * s * s)
        values[:] = 0.0
        for a in range(r):
            for j in range(dim):
                values[j] += basis[first + a, j] * (c[a] / unit)
        to_grid(values, radius, out[place])
