"""Coordinate-wise smoothness constants: mean squares of columns, bought, given or bounded.

DP-CD takes its step sizes and clipping thresholds from ``M_j``, the loss's curvature times the
mean square of column ``j`` (Mangold et al. 2022, section 5).
"""

import math
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism
from colonnade.solvers.budgets import BudgetPlan, ReleasePart
from colonnade.solvers.designs.dense import Columns
from colonnade.solvers.iteration import Release

KIND = "smoothness"
SHARE = Fraction(1, 10)
Squares: TypeAlias = Literal["private", "bounds"] | tuple[float, ...]
"""Mean squares: bought with a tenth of the budget, the most the bounds allow, or given."""

# A column's mean square is at least this part of the most that its bounds allow.
_LEAST = 2.0**-14


def smoothness_parts(squares: Squares, n_features: int) -> tuple[ReleasePart, ...]:
    """Return the release that buys the mean squares, if it must be bought.

    Privacy: a square on the grid lies in ``0 .. GRID**2``, so replacing one row moves each of the
    ``n_features`` sums by at most ``GRID**2``.
    """
    if squares != "private":
        return ()

    def make(units: int) -> Mechanism:
        return DiscreteGaussian.within(units, l2_sensitivity2=n_features * GRID**4)

    return (ReleasePart(KIND, SHARE, 1, 1, make),)


def mean_squares(
    squares: Squares, design: Columns, plan: BudgetPlan, release: Release
) -> FloatArray:
    """Return the mean square of every column, in the solver's units."""
    n_rows, n_features = design.shape
    most = (design.units * GRID) ** 2
    if squares == "bounds":
        return most
    if squares != "private":
        given = np.asarray(squares, np.float64)
        if given.shape != (n_features,) or not (np.isfinite(given).all() and (given > 0).all()):
            raise ValueError(f"{n_features} mean squares are needed, finite and positive")
        return given
    mechanism = plan.mechanism(KIND)

    def compute() -> IntArray:
        return design.square_sums()

    noisy = release(KIND, 0, mechanism, compute)
    sigma = math.sqrt(mechanism.sigma2) if isinstance(mechanism, DiscreteGaussian) else 0.0
    part = np.maximum(noisy, min(sigma, n_rows * GRID**2)) / (n_rows * GRID**2)
    return most * np.clip(part, _LEAST, 1.0)
