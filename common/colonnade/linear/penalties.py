"""Penalties: separable, with a proximal map each; they never read data.

Solvers may work on scaled features. The penalty applies to ``scales * w``, the coefficients in the
users' units, whatever the solver's own; a coordinate of scale 0 (the intercept) is free.
"""

import math
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Penalty:
    """``l1 |w| + l2 |w|**2 / 2`` within the box ``|w_j| <= bound``."""

    l1: float = 0.0
    l2: float = 0.0
    bound: float = math.inf

    def __post_init__(self) -> None:
        strengths = (self.l1, self.l2)
        if not all(math.isfinite(strength) and strength >= 0.0 for strength in strengths):
            raise ValueError("the strength of a penalty is finite and not negative")
        if not self.bound > 0.0:
            raise ValueError("a box has a positive bound")

    @property
    def name(self) -> str:
        """What it is called: none, l1, l2, elastic net, with or without a box."""
        kind = {(0, 0): "none", (1, 0): "l1", (0, 1): "l2", (1, 1): "elastic net"}
        base = kind[int(self.l1 > 0.0), int(self.l2 > 0.0)]
        if math.isinf(self.bound):
            return base
        return "box" if base == "none" else f"{base} in a box"

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return self.l1 == 0.0 and math.isinf(self.bound)

    def value(self, coef: FloatArray, scales: FloatArray) -> float:
        """Return the penalty of ``coef``; infinite outside the box."""
        size = np.abs(scales * coef)
        if np.any(size > self.bound * (1.0 + 1e-9)):
            return math.inf
        return float(self.l1 * size.sum() + 0.5 * self.l2 * (size**2).sum())

    def prox(self, point: FloatArray, step: FloatArray, scales: FloatArray) -> FloatArray:
        """Return ``argmin_w penalty(w) + (w - point)**2 / (2 step)``, coordinate by coordinate.

        In one dimension the box only projects the minimum of the rest.
        """
        shrunk = np.abs(point) - step * self.l1 * scales
        moved = np.sign(point) * np.maximum(shrunk, 0.0) / (1.0 + step * self.l2 * scales**2)
        if math.isinf(self.bound):
            return moved
        most = np.divide(self.bound, scales, out=np.full_like(moved, math.inf), where=scales > 0)
        return np.clip(moved, -most, most)

    def prox_one(self, point: float, step: float, scale: float) -> float:
        """Return the proximal map of one coordinate; the same as `prox`, without arrays."""
        shrunk = max(abs(point) - step * self.l1 * scale, 0.0)
        moved = math.copysign(shrunk / (1.0 + step * self.l2 * scale * scale), point)
        if self.bound == math.inf or scale == 0.0:
            return moved
        most = self.bound / scale
        return min(max(moved, -most), most)


def no_penalty() -> Penalty:
    """Return no penalty at all."""
    return Penalty()


def lasso(alpha: float) -> Penalty:
    """Return ``alpha |w|_1``."""
    return Penalty(l1=alpha)


def ridge(alpha: float) -> Penalty:
    """Return ``alpha |w|**2 / 2``."""
    return Penalty(l2=alpha)


def elastic_net(alpha: float, l1_ratio: float) -> Penalty:
    """Return the mixture that scikit-learn calls by these two numbers."""
    if not 0.0 <= l1_ratio <= 1.0:
        raise ValueError("l1_ratio lies between 0 and 1")
    return Penalty(l1=alpha * l1_ratio, l2=alpha * (1.0 - l1_ratio))


def box(bound: float) -> Penalty:
    """Return the constraint ``|w_j| <= bound``."""
    return Penalty(bound=bound)
