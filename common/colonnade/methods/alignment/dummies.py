"""Dummy people, which make the counts that an alignment shows differentially private.

What the coordinator sees follows, up to pseudonyms, from how many people have each pattern of
presence: a set of parties that list them. So for every non-empty set its first member draws a
number of dummy ids and lets the other members know them, and all of them list these.

Privacy, against the coordinator alone, if all parties follow the protocol: whatever one person's
pattern is changed to, all counts together are ``(epsilon, delta)``-DP with ``epsilon = 2 / scale``.
Two counts move by one each. A count's noise is ``shift + X``, where ``X`` has the discrete Laplace
law of scale ``scale`` conditioned on ``|X| <= shift``. Where both neighbours have positive
probability their ratio is at most ``exp(1 / scale)`` for each of the two counts; the rest is one
end of each of two laws, ``delta = 2 P(X = shift)`` (the truncated Laplace mechanism: Geng, Ding,
Guo and Kumar 2020, here on integers and shifted).

Privacy, against any parties without the coordinator: they know the dummies of the sets that they
are in. Changing whether one other party ``j`` lists a person moves ``j``'s announced length by one
(noise of the dummies that ``j`` alone has, scale ``b``); given that, the number of rows by one
(phantoms, which the coordinator draws with scale ``2 b``) and the reported counts by three in L1
norm (discrete Laplace noise of scale ``6 b``). Together ``1/b + 1/(2 b) + 3/(6 b) = 2/b``: the same
epsilon, by basic composition (Dwork and Roth 2014, Theorem 3.16).

Neither holds against the coordinator together with a party: those learn who is on that party's
list and where, exactly. Modes other than ``union`` tell the parties which of their people stay.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.privacy.accounting import units_up
from colonnade.privacy.mechanisms import DiscreteLaplace
from colonnade.privacy.sampling import NoiseSource

SEED_BYTES = 32
MAX_SCALE = 1000
MAX_SHIFT = 10**5
# The reported counts have this many times the dummies' scale, and move by this much.
_REPORT_WIDTH, _REPORT_SENSITIVITY = 6, 3


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

    def record(self) -> dict[str, int | str]:
        """Return the name and the integers from which the cost follows."""
        return {"mechanism": self.name, "scale": self.scale, "shift": self.shift}

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``value`` plus numbers in ``0 .. 2 shift``, by rejection, which is exact."""
        drawn = noise.discrete_laplace(self.scale, value.size)
        while (outside := np.flatnonzero(np.abs(drawn) > self.shift)).size:
            drawn[outside] = noise.discrete_laplace(self.scale, outside.size)
        return value + (self.shift + drawn).reshape(value.shape)

    def phantoms(self) -> "MembershipNoise":
        """Return the law of the rows that the coordinator adds for nobody."""
        return MembershipNoise(2 * self.scale, 2 * self.shift)

    def report(self) -> DiscreteLaplace:
        """Return the noise of the counts that are reported."""
        return DiscreteLaplace(_REPORT_WIDTH * self.scale, _REPORT_SENSITIVITY)


def first_member(pattern: int) -> int:
    """Return the lowest party of a set, written as one bit a party."""
    return (pattern & -pattern).bit_length() - 1


def patterns_led_by(party: int, n_parties: int) -> tuple[int, ...]:
    """Return the sets whose first member is ``party``, in order."""
    return tuple(p for p in range(1, 1 << n_parties) if first_member(p) == party)


def patterns_with(party: int, n_parties: int) -> tuple[int, ...]:
    """Return the sets that ``party`` is in, in order."""
    return tuple(p for p in range(1, 1 << n_parties) if p >> party & 1)


@dataclass(frozen=True, slots=True, repr=False)
class PatternDummies:
    """The dummies of one set, as its members know them."""

    pattern: int
    seed: bytes
    count: int

    def ids(self) -> list[bytes]:
        """Return their ids: no real id has this form, for it begins with another byte."""
        return [b"\1" + self.seed + index.to_bytes(4, "big") for index in range(self.count)]
