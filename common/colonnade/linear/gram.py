"""Penalised least squares from a Gram matrix: free of privacy cost, being arithmetic on releases.

All minimise ``x' G x / 2 - c' x`` plus a penalty, or within a set, in standard deviations of
features and label. Iteration counts are fixed, so the same numbers give the same solution.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray

_STEPS = 400
Prox = Callable[[FloatArray, float], FloatArray]  # point and step to the next point


@dataclass(frozen=True, slots=True)
class Path:
    """Solutions for a decreasing sequence of L1 penalties.

    Examples
    --------
    >>> Path(np.array([1.0]), np.zeros((1, 3))).coefs.shape
    (1, 3)
    """

    penalties: FloatArray
    coefs: FloatArray  # (n_penalties, n_features)


def floored(matrix: FloatArray, least: float) -> FloatArray:
    """Return the symmetric matrix with its eigenvalues raised to at least ``least``.

    Examples
    --------
    >>> floored(np.diag([2.0, -1.0]), 0.5)
    array([[2. , 0. ],
           [0. , 0.5]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    raised: FloatArray = (vectors * np.maximum(values, least)) @ vectors.T
    return raised


def lasso(gram: FloatArray, target: FloatArray, penalty: float) -> FloatArray:
    """Minimise with ``penalty * |x|_1``.

    Examples
    --------
    >>> lasso(np.eye(2), np.array([1.0, 0.2]), 0.5)
    array([0.5, 0. ])
    """
    return elastic_net(gram, target, l1=penalty, l2=0.0)


def ridge(gram: FloatArray, target: FloatArray, penalty: float) -> FloatArray:
    """Minimise with ``penalty * |x|_2**2 / 2``.

    Examples
    --------
    >>> ridge(np.eye(2), np.array([1.0, 0.2]), 1.0)
    array([0.5, 0.1])
    """
    return np.linalg.solve(gram + penalty * np.eye(len(target)), target).astype(np.float64)


def elastic_net(gram: FloatArray, target: FloatArray, *, l1: float, l2: float) -> FloatArray:
    """Minimise with ``l1 * |x|_1 + l2 * |x|_2**2 / 2``.

    Examples
    --------
    >>> elastic_net(np.eye(2), np.array([1.0, 0.2]), l1=0.5, l2=1.0)
    array([0.25, 0.  ])
    """
    return minimise(
        gram + l2 * np.eye(len(target)),
        target,
        lambda point, step: _shrink(point, step * l1),
    )


def within_box(
    gram: FloatArray, target: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Minimise with every coefficient between its bounds.

    Examples
    --------
    >>> within_box(np.eye(2), np.array([1.0, 0.2]), np.zeros(2), np.full(2, 0.5))
    array([0.5, 0.2])
    """
    if np.any(low > high):
        raise ValueError("a coefficient's bounds are in the wrong order")
    return minimise(gram, target, lambda point, _: np.clip(point, low, high))


def within_ball(
    gram: FloatArray, target: FloatArray, radius: float, *, l1: float = 0.0
) -> FloatArray:
    """Minimise with ``l1 * |x|_1`` and ``|x|_1 <= radius``.

    Examples
    --------
    >>> within_ball(np.eye(2), np.array([1.0, 0.2]), 0.5).round(9)
    array([0.5, 0. ])
    """
    if radius <= 0.0:
        raise ValueError("a radius must be positive")
    # Shrinking towards 0 and then onto the ball is one shrinking: the steps of both compose.
    return minimise(gram, target, lambda point, step: onto_ball(_shrink(point, step * l1), radius))


def lasso_path(
    gram: FloatArray, target: FloatArray, *, count: int = 30, least: float = 1e-3
) -> Path:
    """Return LASSO solutions from the penalty that leaves nothing down to ``least`` of it.

    Examples
    --------
    >>> path = lasso_path(np.eye(2), np.array([1.0, 0.2]), count=3, least=0.1)
    >>> path.coefs[-1]
    array([0.9, 0.1])
    """
    most = float(np.abs(target).max())
    penalties = most * np.geomspace(1.0, least, count)
    return Path(penalties, np.stack([lasso(gram, target, penalty) for penalty in penalties]))


def _shrink(point: FloatArray, amount: float) -> FloatArray:
    shrunk: FloatArray = np.sign(point) * np.maximum(np.abs(point) - amount, 0.0)
    return shrunk


def onto_ball(point: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the L1 ball (Duchi et al. 2008).

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra (2008). Efficient projections onto the l1-ball for
    learning in high dimensions. ICML.

    Examples
    --------
    >>> onto_ball(np.array([3.0, -1.0]), 2.0)
    array([ 2., -0.])
    """
    size = np.abs(point)
    if float(size.sum()) <= radius:
        return point
    sorted_ = np.sort(size)[::-1]
    excess = np.cumsum(sorted_) - radius
    place = np.flatnonzero(sorted_ * np.arange(1, size.size + 1) > excess)[-1]
    return _shrink(point, float(excess[place]) / (int(place) + 1))


def minimise(gram: FloatArray, target: FloatArray, prox: Prox) -> FloatArray:
    """Minimise with a penalty or a set that is known by its proximal map.

    Accelerated proximal gradient steps with restarts (Beck and Teboulle 2009).

    References
    ----------
    Beck and Teboulle (2009). A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems. SIAM Journal on Imaging Sciences.

    Examples
    --------
    >>> minimise(np.eye(2), np.array([1.0, -0.2]), lambda point, step: np.maximum(point, 0.0))
    array([1., 0.])
    """
    step = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-12)
    x = ahead = prox(np.zeros(len(target)), step)
    momentum = 1.0
    for _ in range(_STEPS):
        gradient = gram @ ahead - target
        moved = prox(ahead - step * gradient, step)
        if np.array_equal(ahead, moved) and np.array_equal(x, moved):
            return x  # so would all further steps
        if float((ahead - moved) @ (moved - x)) > 0.0:  # overshot: begin the momentum anew
            momentum = 1.0
        following = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        ahead = moved + (momentum - 1.0) / following * (moved - x)
        x, momentum = moved, following
    return x
