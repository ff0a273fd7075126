"""DP-SGD as the paper runs it: one record a step, as many steps a pass as there are records.

A baseline in floating point, with seeded noise: not private, and used by the benchmark alone. The
solver of this project (`StochasticDescent`) takes batches, which do far better.
"""

# ruff: noqa: N803 - X is what the papers call it

import math
from functools import lru_cache

import numpy as np

from colonnade.bench.solvers.cases import SolverCase
from colonnade.core.arrays import FloatArray
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.designs.column_kernels import TOP, njit, slope


@njit
def _run(
    kind: int,
    X: FloatArray,
    y: FloatArray,
    coef: FloatArray,
    steps: int,
    step: float,
    clip: float,
    deviation: float,
    l1: float,
    l2: float,
    seed: int,
) -> None:
    """Take ``steps`` proximal steps on single rows, in place."""
    np.random.seed(seed)
    n_rows, n_features = X.shape
    for _ in range(steps):
        i = np.random.randint(n_rows)
        margin, norm2 = 0.0, 0.0
        for j in range(n_features):
            margin += X[i, j] * coef[j]
            norm2 += X[i, j] * X[i, j]
        steep = slope(kind, margin, y[i])
        length = abs(steep) * math.sqrt(norm2)
        if length > clip:
            steep *= clip / length
        for j in range(n_features):
            point = coef[j] - step * (steep * X[i, j] + deviation * np.random.normal())
            shrunk = max(abs(point) - step * l1, 0.0) / (1.0 + step * l2)
            coef[j] = shrunk if point > 0.0 else -shrunk


@lru_cache(maxsize=16)
def _curvature(case: SolverCase) -> float:
    """Return the largest curvature of the mean loss; it takes longer than a short run."""
    largest = np.linalg.eigvalsh(case.X.T @ case.X)[-1] / case.y.size
    return case.problem.loss.curvature * float(largest)


def one_record_error(
    case: SolverCase, plan: BudgetPlan, *, passes: int, step: float, clip: float, seed: int
) -> float:
    """Return the relative error of one run.

    Parameters
    ----------
    step
        In units of one over the largest curvature of the mean loss, which the paper takes as given.
    clip
        In units of the root mean square norm of a row.
    """
    mechanism = plan.mechanism(STEP)
    if not isinstance(mechanism, DiscreteGaussian):
        raise TypeError("SGD adds Gaussian noise")
    n_rows, n_features = case.X.shape
    threshold = clip * math.sqrt(sum(case.squares))
    coef = np.zeros(n_features)
    _run(
        case.problem.loss.code,
        case.X,
        case.y,
        coef,
        passes * n_rows,
        step / _curvature(case),
        threshold,
        threshold * math.sqrt(mechanism.sigma2) / TOP,
        case.problem.elastic.l1,
        case.problem.elastic.l2,
        seed,
    )
    error = case.relative_error(coef)
    return error if math.isfinite(error) else math.inf
