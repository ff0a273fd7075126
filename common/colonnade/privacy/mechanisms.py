"""Mechanisms: what each adds, what it costs, and why.

A mechanism is a frozen value of integers. Its price follows from those integers alone, so a party
computes it before any row is read and an auditor recomputes it from the ledger's export. One whose
noise the samplers could not draw is not made at all: what was charged can be released.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import Field, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.constant_time import exp_down
from colonnade.core.jit import njit
from colonnade.privacy.accounting import RHO_UNIT, units_up
from colonnade.privacy.sampling import MAX_LOG2_SCALE, NoiseSource

_MAX_NOISE = 2**MAX_LOG2_SCALE
# Scores are below 2**61 in size, so beyond this a choice is hardly better than a guess.
_MAX_SCORE_SCALE = 2**62


class Mechanism(Protocol):
    """A priced way to make an integer vector safe to release: a frozen dataclass."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return what may be released of ``value``."""


def record_of(mechanism: Mechanism) -> dict[str, int | str]:
    """Return a mechanism's name and fields: what its cost follows from, and rebuilds it."""
    names = (each.name for each in fields(mechanism))
    return {"mechanism": mechanism.name} | {name: getattr(mechanism, name) for name in names}


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to an integer vector.

    Privacy: ``l2_sensitivity2 / (2 * sigma2)`` zCDP per release under replacement of one row, if
    that moves the vector by at most ``sqrt(l2_sensitivity2)`` in L2 norm (Canonne, Kamath and
    Steinke 2020, Theorem 4 and its multivariate form).

    Examples
    --------
    >>> count = DiscreteGaussian.within(RHO_UNIT // 100, l2_sensitivity2=1)  # rho of 0.01
    >>> count.sigma2, count.cost <= RHO_UNIT // 100
    (51, True)
    """

    name: ClassVar[str] = "discrete_gaussian"
    sigma2: int
    l2_sensitivity2: int

    def __post_init__(self) -> None:
        _check_positive(self.sigma2, self.l2_sensitivity2)
        _check_width(self.sigma2, _MAX_NOISE**2)

    @classmethod
    def within(cls, cost: int, *, l2_sensitivity2: int) -> "DiscreteGaussian":
        """Return the mechanism with the least noise that costs at most ``cost`` units."""
        _check_positive(cost)
        return cls(-(-l2_sensitivity2 * RHO_UNIT // (2 * cost)), l2_sensitivity2)

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""
        return -(-self.l2_sensitivity2 * RHO_UNIT // (2 * self.sigma2))

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return a noisy copy of ``value``."""
        return value + noise.discrete_gaussian(self.sigma2, value.size).reshape(value.shape)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Add discrete Laplace noise to an integer vector.

    Privacy: ``epsilon``-DP with ``epsilon = l1_sensitivity / scale``, hence ``epsilon**2 / 2``
    zCDP, under replacement of one row, if that moves the vector by at most ``l1_sensitivity`` in
    L1 norm (Ghosh, Roughgarden and Sundararajan 2009; Bun and Steinke 2016, Proposition 1.4).

    Examples
    --------
    >>> DiscreteLaplace(scale=10, l1_sensitivity=1).cost == -(-RHO_UNIT // 200)  # epsilon 0.1
    True
    """

    name: ClassVar[str] = "discrete_laplace"
    scale: int
    l1_sensitivity: int

    def __post_init__(self) -> None:
        _check_positive(self.scale, self.l1_sensitivity)
        _check_width(self.scale, _MAX_NOISE)

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""
        return units_up(Fraction(self.l1_sensitivity, self.scale) ** 2 / 2)

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return a noisy copy of ``value``."""
        return value + noise.discrete_laplace(self.scale, value.size).reshape(value.shape)


# A candidate's weight is floor(2**62 exp(x)) with x clipped below at -41 ln 2, so it lies between
# 2**21 and 2**62 and is within a factor 1 +- 2**-20.9 of the exact one.
_TOP = 2.0**62
_LOWEST = -41.0 * math.log(2.0)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@njit
def _weigh(
    scores: IntArray, inverse_scale: float, weights: NDArray[np.uint64]
) -> tuple[np.uint64, np.uint64]:
    """Write the weight of every signed candidate; return their sum as two 32-bit halves.

    Candidate ``2 i`` is feature ``i`` with score ``+scores[i]``, candidate ``2 i + 1`` the same
    with ``-scores[i]``. The time it takes does not depend on the scores (`core.constant_time`).
    """
    top = np.int64(0)
    for i in range(scores.size):
        top = max(top, abs(scores[i]))
    high, low = np.uint64(0), np.uint64(0)
    for i in range(scores.size):
        for sign in range(2):
            signed = (1 - 2 * sign) * scores[i]
            x = float(signed - top) * inverse_scale  # the difference is exact: 64-bit integers
            weight = np.uint64(np.int64(_TOP * exp_down(max(x, _LOWEST))))
            weights[2 * i + sign] = weight
            high += weight >> _HALF
            low += weight & _LOW_HALF
    return high, low


@njit
def _pick(weights: NDArray[np.uint64], high: np.uint64, low: np.uint64) -> int:
    """Count the prefixes whose sum is at most ``high * 2**32 + low``, over all candidates."""
    sum_high, sum_low, picked = np.uint64(0), np.uint64(0), 0
    for i in range(weights.size):
        sum_high += weights[i] >> _HALF
        sum_low += weights[i] & _LOW_HALF
        upper, lower = sum_high + (sum_low >> _HALF), sum_low & _LOW_HALF
        picked += int((upper < high) | ((upper == high) & (lower <= low)))
    return picked


@dataclass(frozen=True, slots=True)
class SignedSelection:
    """Choose the feature whose score is largest in size, and its sign, privately.

    The exponential mechanism over the ``2 d`` signed candidates, which is report-noisy-max with
    Gumbel noise of scale ``scale``: candidate ``i`` is chosen with probability proportional to
    ``exp(score_i / scale)``. Sampled from integer weights with a uniform integer below their sum,
    so the choice is exact for those weights.

    Privacy: if replacing one row moves every score by at most ``sensitivity``, the weights' ratio
    of probabilities has range ``epsilon = 2 * sensitivity / scale + 2**-18``, hence
    ``epsilon**2 / 8`` zCDP (Cesar and Rogers 2021, bounded range). The factor 2 is needed because
    the two signs move oppositely. ``2**-18`` covers the weights: each is within a factor
    ``1 +- 2**-20.9`` of the exact one, and four such factors enter a ratio of ratios. Clipping a
    score at a distance below the largest keeps the sensitivity, both being moved by at most that.

    Examples
    --------
    >>> choice = SignedSelection(scale=200, sensitivity=10)
    >>> round(float(choice.epsilon), 4)
    0.1
    """

    name: ClassVar[str] = "signed_selection"
    scale: int
    sensitivity: int

    def __post_init__(self) -> None:
        _check_positive(self.scale, self.sensitivity)
        _check_width(self.scale, _MAX_SCORE_SCALE)

    @classmethod
    def within(cls, cost: int, *, sensitivity: int) -> "SignedSelection":
        """Return the mechanism with the least noise that costs at most ``cost`` units."""
        # epsilon**2 / 8 <= cost, that is 2 sensitivity / scale <= sqrt(8 cost / U) - 2**-18.
        root = math.isqrt(8 * cost * RHO_UNIT)  # in units of epsilon, rounded down
        slack = root - (RHO_UNIT >> 18)
        if slack <= 0:
            raise ValueError("a selection cannot cost so little")
        return cls(-(-2 * sensitivity * RHO_UNIT // slack), sensitivity)

    @property
    def epsilon(self) -> Fraction:
        """Range of the privacy loss."""
        return Fraction(2 * self.sensitivity, self.scale) + Fraction(1, 2**18)

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""
        return _selection_cost(self)

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return ``[feature, sign]``, the sign being that of the chosen score."""
        if value.size == 0 or int(value.max()) >= 2**61 or int(value.min()) <= -(2**61):
            raise ValueError("a selection needs at least one score, all below 2**61 in size")
        weights = np.empty(2 * value.size, np.uint64)
        high, low = _weigh(value, 1.0 / self.scale, weights)
        point = noise.below((int(high) << 32) + int(low))
        chosen = _pick(weights, np.uint64(point >> 32), np.uint64(point & 0xFFFFFFFF))
        return np.array([chosen // 2, 1 - 2 * (chosen % 2)], np.int64)


@functools.lru_cache(maxsize=256)  # a release asks for it several times; fractions are slow
def _selection_cost(mechanism: SignedSelection) -> int:
    return units_up(mechanism.epsilon**2 / 8)


def perturb_each(
    mechanism: Mechanism, values: Sequence[IntArray], noise: NoiseSource
) -> list[IntArray]:
    """Return what may be released of each of ``values``, with noise of its own."""
    if not isinstance(mechanism, DiscreteGaussian | DiscreteLaplace):
        return [mechanism.perturb(value, noise) for value in values]
    # Every integer has noise of its own, so whose it is does not matter: all are drawn at once.
    noisy = mechanism.perturb(np.concatenate([value.ravel() for value in values]), noise)
    ends = itertools.accumulate(value.size for value in values)
    return [
        noisy[end - value.size : end].reshape(value.shape)
        for value, end in zip(values, ends, strict=True)
    ]


def _check_positive(*values: int) -> None:
    if not all(type(value) is int and value > 0 for value in values):
        raise ValueError("a mechanism takes positive integers")


def _check_width(width: int, most: int) -> None:
    """Refuse noise that the samplers do not reach, before anyone pays for it."""
    if width > most:
        raise ValueError(
            "a release cannot cost so little: its noise would be wider than can be drawn"
        )
