"""Distributed noise: each masker adds a share of a discrete Gaussian, and the sum protects.

A sum of discrete Gaussians is not one, but hardly differs. For ``h`` parts of variance ``s**2``,
``s >= 1/2``, in each of ``d`` coordinates and L2 sensitivity ``D`` the sum has ``epsilon**2 / 2``
zCDP with

    epsilon**2 = D**2 / (h s**2) + tau d / 2,
    tau = 10 sum_{k=1}^{h-1} exp(-2 pi**2 s**2 k / (k+1))

(Kairouz, Liu and Steinke 2021, Proposition 14). With ``s >= 4`` the second term is below ``1e-60``;
it is charged all the same, rounded up. `tests/statistical/test_distributed_noise.py` computes the
exact divergence of the sum beside it.
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from colonnade.core.arrays import IntArray
from colonnade.privacy.accounting import units_up
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.privacy.sampling import NoiseSource

# Below that the parts of a sum are too coarse.
MIN_DEVIATION = 4


def tau(deviation: float, parts: int) -> float:
    """Return by how much a sum of so many discrete Gaussians differs from one, and never 0.

    For fine parts the terms are too small for a float; the least one bounds them.
    """
    rate = 2.0 * math.pi**2 * deviation**2
    terms = (math.exp(-rate * k / (k + 1)) for k in range(1, parts))
    return 10.0 * sum(max(term, sys.float_info.min) for term in terms)


@dataclass(frozen=True, slots=True)
class GaussianShare:
    """Add one of several parts of the noise to an integer vector, which leaves under a mask.

    Privacy: holds if named peers follow the protocol (`masking.cohort`). What opens is a sum with
    at least ``parts`` honest shares of variance ``sigma2``, for which the price is that above. If
    all others collude, this party's own part is left, at `cost_alone`.
    """

    name: ClassVar[str] = "gaussian_share"
    sigma2: int  # of one part
    parts: int
    l2_sensitivity2: int
    dim: int

    def __post_init__(self) -> None:
        values = (self.sigma2, self.parts, self.l2_sensitivity2, self.dim)
        if not all(type(value) is int and value > 0 for value in values):
            raise ValueError("a mechanism takes positive integers")
        if self.sigma2 < MIN_DEVIATION**2:
            raise ValueError(f"a part of the noise has a deviation of at least {MIN_DEVIATION}")
        DiscreteGaussian(self.sigma2, self.l2_sensitivity2)  # whose noise can be drawn

    @classmethod
    def of(cls, whole: DiscreteGaussian, parts: int, dim: int) -> "GaussianShare":
        """Return a part of ``whole``: any ``parts`` of them have its variance."""
        return cls(-(-whole.sigma2 // parts), parts, whole.l2_sensitivity2, dim)

    @property
    def cost(self) -> int:
        """Price of the opened sum in units of ``2**-50`` rho, rounded up."""
        exact = Fraction(self.l2_sensitivity2, 2 * self.parts * self.sigma2)
        excess = Fraction(tau(math.sqrt(self.sigma2), self.parts)) * self.dim / 4
        return units_up(exact + excess)

    @property
    def cost_alone(self) -> int:
        """Price if everybody else colludes: nobody's noise but this party's is left."""
        return DiscreteGaussian(self.sigma2, self.l2_sensitivity2).cost

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return a copy of ``value`` with this party's part of the noise."""
        return value + noise.discrete_gaussian(self.sigma2, value.size).reshape(value.shape)


@dataclass(frozen=True, slots=True)
class MaskingMessage:
    """Hand out a message of the masking protocol: keys, shares under seals, signatures.

    Privacy: costs nothing. What is handed out follows from fresh secrets and public sets. Shares
    open a masked vector, which was paid for when it left, opened or not. It passes the gate so that
    it is stored before it leaves, and no second message goes out under one key.
    """

    name: ClassVar[str] = "masking_message"

    @property
    def cost(self) -> int:
        """Return 0: the masked vector is paid for."""
        return 0

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``value``."""
        del noise
        return value
