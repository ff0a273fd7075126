"""Differentially private membership in an alignment: truncated discrete Laplace dummy counts.

`methods.alignment.dummies` says what the dummies are and against whom they protect; here are the
law, its price and its record, so that a ledger can pay for them and an auditor recompute the price.

Delta is no part of the price. The law ends at both sides, so no zCDP parameter covers what happens
there with probability ``delta``: a run is ``delta``-approximate ``rho``-zCDP (Bun and Steinke 2016,
Definition 8.1). Both parameters add up under composition (their Lemma 8.2), so what a ledger has
paid for is ``sum(delta)``-approximate ``sum(rho)``-zCDP, and hence ``(epsilon_of(rho, d), d + sum(
delta))``-DP for every ``d`` (their Lemma 8.8 with the conversion of `privacy.accounting`). The sum
of the deltas follows from the mechanisms in the ledger's entries; summaries state it beside rho,
and a party refuses an alignment with which it would be too large.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.privacy.accounting import rho_from_units, rounded, units_up
from colonnade.privacy.mechanisms import DiscreteLaplace
from colonnade.privacy.sampling import NoiseSource

MEMBERSHIP = "membership"  # the account that pays, and the kind of the release that is paid for
MAX_SCALE = 1000
MAX_SHIFT = 10**5
# The reported counts have this many times the dummies' scale, and move by this much.
_REPORT_WIDTH, _REPORT_SENSITIVITY = 6, 3


def format_run(units: int, *, left: bool = False) -> str:
    """Return the price of one alignment for people: its epsilon, with rho in brackets.

    Examples
    --------
    >>> format_run(2**49)
    'epsilon 1 (rho 0.5)'
    """
    rho = rho_from_units(units)
    epsilon, shown = (rounded(each, down=left) for each in (math.sqrt(2.0 * rho), rho))
    return f"epsilon {epsilon} (rho {shown})"


@dataclass(frozen=True, slots=True)
class MembershipNoise:
    """Add a shifted, truncated discrete Laplace number to each count of people.

    Privacy: ``(2 / scale, delta)``-DP under a change of one person's pattern of presence, hence
    ``delta``-approximate ``epsilon**2 / 2`` zCDP (Bun and Steinke 2016, section 8); see the module.
    The cost is that of the zCDP part; ``delta`` is paid once a run, besides.
    """

    name: ClassVar[str] = "membership_dummies"
    scale: int
    shift: int

    def __post_init__(self) -> None:
        if type(self.scale) is not int or type(self.shift) is not int:
            raise ValueError("a mechanism takes positive integers")
        if not 1 <= self.scale <= MAX_SCALE or not self.scale <= self.shift <= MAX_SHIFT:
            raise ValueError(
                f"dummies need a scale of 1 to {MAX_SCALE} and a shift of at least the scale and "
                f"at most {MAX_SHIFT}"
            )

    @classmethod
    def within(cls, epsilon: float, delta: float) -> "MembershipNoise":
        """Return the least noise that costs at most ``epsilon`` and ``delta``.

        Examples
        --------
        >>> MembershipNoise.within(1.0, 1e-9)
        MembershipNoise(scale=2, shift=45)
        """
        if not 0.0 < epsilon < math.inf or not 0.0 < delta < 1.0:
            raise ValueError("epsilon must be positive and delta lie strictly between 0 and 1")
        scale = math.ceil(2 / Fraction(epsilon))
        return cls(scale, math.ceil(scale * math.log(4.0 / delta)))

    @property
    def epsilon(self) -> Fraction:
        """What a run costs each party."""
        return Fraction(2, self.scale)

    @property
    def delta(self) -> float:
        """The probability, rounded up, with which a count shows more than epsilon says."""
        with localcontext() as context:
            context.prec = 40
            ratio = (Decimal(-1) / self.scale).exp()
            total = (1 + ratio - 2 * ratio ** (self.shift + 1)) / (1 - ratio)
            return math.nextafter(float(2 * ratio**self.shift / total), 1.0)

    @property
    def cost(self) -> int:
        """Price of a run in units of ``2**-50`` rho, rounded up."""
        return units_up(self.epsilon**2 / 2)

    @property
    def most(self) -> int:
        """The most dummies of one pattern."""
        return 2 * self.shift

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``value`` plus numbers in ``0 .. 2 shift``, by rejection, which is exact."""
        drawn = noise.discrete_laplace(self.scale, value.size)
        while (outside := np.flatnonzero(np.abs(drawn) > self.shift)).size:
            drawn[outside] = noise.discrete_laplace(self.scale, outside.size)
        return value + (self.shift + drawn).reshape(value.shape)

    def phantoms(self) -> "MembershipNoise":
        """Return the law of the rows that the coordinator adds for nobody."""
        return MembershipNoise(2 * self.scale, 2 * self.shift)

    def deviation(self, n_counts: int) -> float:
        """Return the standard deviation of a sum of reported counts: dummies and report's noise.

        That of a discrete Laplace number is just below ``sqrt(2)`` times its scale.

        Examples
        --------
        >>> round(MembershipNoise(scale=2, shift=45).deviation(1), 1)
        17.2
        """
        return self.scale * math.sqrt(2 * n_counts * (1 + _REPORT_WIDTH**2))

    def report(self) -> DiscreteLaplace:
        """Return the noise of the counts that are reported."""
        return DiscreteLaplace(_REPORT_WIDTH * self.scale, _REPORT_SENSITIVITY)


@dataclass(frozen=True, slots=True)
class Covered:
    """Hand out what the dummies of the same job were paid for to cover.

    Privacy: points and tags under the secrets of a run, and lengths with dummies in them, are
    functions of what `MembershipNoise` made private and of fresh secrets, so they cost nothing
    more. That holds for an alignment alone. A ledger therefore takes such a charge only in a job
    whose dummies it has charged before (`ledger.state`).
    """

    name: ClassVar[str] = "covered_by_dummies"

    @property
    def cost(self) -> int:
        """Return 0: it was paid for."""
        return 0

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``value``: what makes it safe is in it."""
        del noise
        return value
