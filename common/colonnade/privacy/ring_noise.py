"""Mechanisms of a sealed exchange: noise on raw coefficients of a ring, before any rounding.

A raw coefficient is an integer in ``0 .. modulus - 1`` that stands for
``low_step * low + high_step * high``: two numbers, packed, plus an error of a few units. Noise is
added to it as ``n_low + high_step * n_high``, modulo ``modulus``, ``n_low`` having ``low_step``
times the deviation of ``n_high``. Rounding, splitting, wrapping and clipping come afterwards, in a
release's encoding, and see noisy values only: the released bytes are a function of
``(low_step * low + error + n_low, high + n_high)``, hence post-processing of two Gaussian releases.
Were a value wrapped or rounded first, one row could move it by the whole field.

What these mechanisms promise holds against peers that follow the protocol and are computationally
bounded, not against everybody (`methods/sealed/charges.py`). The record of each says all from which
its cost follows, so that an export can be checked.
"""

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.privacy.accounting import RHO_UNIT
from colonnade.privacy.sampling import NoiseSource

# The account that pays for shields: what is left if peers do not follow the protocol.
HOSTILE = "hostile"

# Noise on the low number, in raw units: with less the Hint-RLWE argument has no room.
LEAST_LOW_SIGMA2 = 1 << 34
# Noise on the high number, in steps: wider than any field. A sample times the high step, which is
# at most 2**30, then reaches 2**62 with a probability below exp(-2**15).
_MAX_SIGMA2 = 1 << 48
_MAX_HIGH_STEP = 1 << 30


@dataclass(frozen=True, slots=True)
class SealedCiphertext:
    """Add the error of an encryption to ``message - a * s``, polynomial by polynomial.

    Privacy: costs nothing. No bounded adversary tells the result from uniform coefficients
    (ring learning with errors: Lyubashevsky, Peikert and Regev 2010), if ``s`` and the errors are
    discrete Gaussians of variance ``error_sigma2``, ``a`` comes from a random oracle, and a key and
    index serve once. What is later opened under the key is charged when it is opened.
    """

    name: ClassVar[str] = "sealed_ciphertext"
    modulus: int
    degree: int
    polynomials: int
    error_sigma2: int
    key: str  # names the secret key; not the key
    peers: str  # who are to multiply, a line each

    def __post_init__(self) -> None:
        _check_positive(self.modulus, self.degree, self.polynomials, self.error_sigma2)
        if not all(type(text) is str and text for text in (self.key, self.peers)):
            raise ValueError("a ciphertext names its key and its peers")

    @property
    def cost(self) -> int:
        """Nothing: the claim is computational."""
        return 0

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return the ciphertexts' coefficients."""
        _check_raw(value, (self.polynomials, self.degree), self.modulus)
        error = noise.discrete_gaussian(self.error_sigma2, value.size).reshape(value.shape)
        return _add(value, error, self.modulus)


@dataclass(frozen=True, slots=True)
class Field:
    """How two numbers share a raw coefficient."""

    modulus: int
    low_step: int
    high_step: int

    def noise(self, sigma2: int, shape: tuple[int, ...], source: NoiseSource) -> IntArray:
        """Draw ``n_low + high_step * n_high``, both of variance ``sigma2`` in their own steps."""
        size = math.prod(shape)
        low = source.discrete_gaussian(sigma2 * self.low_step**2, size)
        high = source.discrete_gaussian(sigma2, size)
        return (low + self.high_step * high).reshape(shape)

    def masked(self, sigma2: int, shape: tuple[int, ...], source: NoiseSource) -> IntArray:
        """Draw ``n_low + high_step * u`` with ``u`` uniform over the whole high field."""
        size, values = math.prod(shape), -(-self.modulus // self.high_step)
        low = source.discrete_gaussian(sigma2 * self.low_step**2, size)
        high = np.array([source.below(values) for _ in range(size)], np.int64)
        return (low + self.high_step * high).reshape(shape)


@dataclass(frozen=True, slots=True)
class SealedReply:
    """Add noise and the last error of a re-randomisation to products under encryption.

    A value has one row a polynomial: the wanted raw coefficients of ``c0``, ``lanes`` for each of
    the encryptor's pairs of columns, then all coefficients of ``c1``.

    Privacy: ``l2_sensitivity2 / (2 sigma2)`` zCDP under replacement of one of the replier's rows,
    against a bounded encryptor and everybody it tells, if they follow the protocol. Replacing a
    row moves the replier's integers by at most ``sqrt(move2)``. The encryptor's row that these
    are multiplied with has norm ``sqrt(radius2)`` at most, in steps, and carries errors that act
    on the low numbers like a row of norm ``error`` raw units at most; hence
    ``l2_sensitivity2 = move2 (sqrt(radius2) + error / low_step)**2``, rounded up. That ``c1``, and
    what a fresh encryption of zero adds to ``c0``, tell no more is Hint-RLWE.
    """

    name: ClassVar[str] = "sealed_reply"
    sigma2: int
    move2: int
    radius2: int
    error: int
    columns: int  # of the encryptor
    lanes: int
    polynomials: int
    degree: int
    mask_sigma2: int
    modulus: int
    low_step: int
    high_step: int

    def __post_init__(self) -> None:
        _check_positive(*asdict(self).values())
        _check_noise(self.sigma2, self.low_step, self.high_step)

    @property
    def l2_sensitivity2(self) -> int:
        """Squared sensitivity in steps of the numbers, rounded up."""
        return reply_sensitivity2(
            self.move2, self.radius2, error=self.error, low_step=self.low_step
        )

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""
        return -(-self.l2_sensitivity2 * RHO_UNIT // (2 * self.sigma2))

    @property
    def slots(self) -> int:
        """Wanted coefficients of a polynomial."""
        return (self.columns + 1) // 2 * self.lanes

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return the reply's coefficients with noise on the wanted and an error on all others."""
        _check_raw(value, (self.polynomials, self.slots + self.degree), self.modulus)
        field = Field(self.modulus, self.low_step, self.high_step)
        # An odd last column has no neighbour in the high field. An encryptor that does not follow
        # the protocol would read that field without noise, so it is made uniform.
        alone = self.lanes * (self.columns % 2)
        added = np.empty(value.shape, np.int64)
        both = self.slots - alone
        added[:, :both] = field.noise(self.sigma2, (len(value), both), noise)
        added[:, both : self.slots] = field.masked(self.sigma2, (len(value), alone), noise)
        error = noise.discrete_gaussian(self.mask_sigma2, len(value) * self.degree)
        added[:, self.slots :] = error.reshape(len(value), self.degree)
        return _add(value, added, self.modulus)


@dataclass(frozen=True, slots=True)
class SealedOpening:
    """Add noise to raw coefficients that were decrypted, before they are rounded to numbers.

    Privacy: ``move2 radius2 / (2 sigma2)`` zCDP under replacement of one of the encryptor's rows,
    against everybody who follows the protocol, if replacing it moves the encryptor's integers by
    at most ``sqrt(move2)`` and the replier's row that these are multiplied with has norm at most
    ``sqrt(radius2)``. The encryptor's errors do not depend on its rows. The replier's own noise is
    not counted.
    """

    name: ClassVar[str] = "sealed_opening"
    sigma2: int
    move2: int
    radius2: int
    numbers: int  # raw coefficients
    modulus: int
    low_step: int
    high_step: int

    def __post_init__(self) -> None:
        _check_positive(*asdict(self).values())
        _check_noise(self.sigma2, self.low_step, self.high_step)

    @property
    def l2_sensitivity2(self) -> int:
        """Squared sensitivity in steps of the numbers."""
        return self.move2 * self.radius2

    @property
    def cost(self) -> int:
        """Price of one release in units of ``2**-50`` rho, rounded up."""
        return -(-self.l2_sensitivity2 * RHO_UNIT // (2 * self.sigma2))

    def perturb(self, value: IntArray, noise: NoiseSource) -> IntArray:
        """Return the raw coefficients with noise: still not rounded, split or clipped."""
        _check_raw(value, (self.numbers,), self.modulus)
        field = Field(self.modulus, self.low_step, self.high_step)
        return _add(value, field.noise(self.sigma2, value.shape, noise), self.modulus)


def reply_sensitivity2(move2: int, radius2: int, *, error: int, low_step: int) -> int:
    """Return ``move2 (sqrt(radius2) + error / low_step)**2``, rounded up."""
    mixed = math.isqrt(4 * low_step**2 * error**2 * radius2) + 1
    reach2 = low_step**2 * radius2 + mixed + error**2
    return -(-move2 * reach2 // low_step**2)


def _add(value: IntArray, added: IntArray, modulus: int) -> IntArray:
    """Return the sum modulo ``modulus``; no step's time depends on the value."""
    total = value + added % modulus
    reduced: IntArray = total - modulus * (total >= modulus)
    return reduced


def _check_raw(value: IntArray, shape: tuple[int, ...], modulus: int) -> None:
    if value.shape != shape or int(value.min()) < 0 or int(value.max()) >= modulus:
        raise ValueError("raw coefficients have another shape, or lie outside the ring")


def _check_positive(*values: object) -> None:
    if not all(type(value) is int and value > 0 for value in values):
        raise ValueError("a mechanism takes positive integers")


def _check_noise(sigma2: int, low_step: int, high_step: int) -> None:
    """Refuse noise that is too narrow for the encryption or too wide for the samplers."""
    if not low_step < high_step <= _MAX_HIGH_STEP:
        raise ValueError("two numbers of a raw coefficient would overlap, or not fit")
    if sigma2 * low_step**2 < LEAST_LOW_SIGMA2:
        raise ValueError("a sealed release cannot cost so much: the encryption needs its noise")
    if sigma2 > _MAX_SIGMA2:
        raise ValueError(
            "a release cannot cost so little: its noise would be wider than can be drawn"
        )
