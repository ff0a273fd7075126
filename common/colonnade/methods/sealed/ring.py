"""Arithmetic in ``Z_q[x] / (x**4096 + 1)``: who multiplies, and nothing else.

A polynomial is a vector of ``DEGREE`` 64-bit integers in ``0 .. MODULUS - 1``. Microsoft SEAL
multiplies them by its number-theoretic transform and does nothing besides: keys, errors, noise,
encryption and decryption are this package's own, because SEAL's encryptor draws ternary secrets
and its decryptor rounds before noise could be added.

``MODULUS`` is the 54-bit prime that SEAL gives for this degree. The table of the Homomorphic
Encryption Standard (Albrecht and others 2018) allows 109 bits there at 128 bits of security, and
54 bits already at half the degree.

Time: a multiplier of zeros makes SEAL raise an exception, and an exception tells. So a public
constant is added to every multiplier's first coefficient, larger than any coefficient can be, and
its part is subtracted from the result; no row is looked at to decide anything.
"""

import functools
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from colonnade.core.arrays import IntArray

DEGREE = 4096
MODULUS = 18014398509309953  # 2**54 - 172031, a prime, 1 modulo 2 * DEGREE
COEFFICIENT_BITS = 54
# Coefficients of a small multiplier are smaller in size.
_SHIFT_BITS = 9
MAX_SMALL = 1 << _SHIFT_BITS

# SEAL reads small multipliers modulo this; any power of two between them and the modulus serves.
_PLAIN_MODULUS = 1 << 49


class Ring(Protocol):
    """Multiplies polynomials by small ones."""

    def times(self, polynomials: Sequence[IntArray], small: IntArray) -> list[IntArray]:
        """Return each polynomial times ``small``, whose coefficients are below ``MAX_SMALL``."""

    def prepare(self, pairs: Sequence[tuple[IntArray, IntArray]]) -> "Prepared":
        """Return pairs of polynomials in the form in which they are multiplied many times."""

    def multiplier(self, small: IntArray) -> Any:
        """Return a small polynomial in the form in which it multiplies many times."""


class Prepared(Protocol):
    """Pairs of polynomials that wait for multipliers."""

    def dot(self, multipliers: Sequence[Any]) -> tuple[IntArray, IntArray]:
        """Return the sum over all pairs of both parts times the pair's `Ring.multiplier`."""


def add(one: IntArray, two: IntArray) -> IntArray:
    """Return the sum modulo ``MODULUS``; no step's time depends on the values."""
    total = one + two
    reduced: IntArray = total - MODULUS * (total >= MODULUS)
    return reduced


def subtract(one: IntArray, two: IntArray) -> IntArray:
    """Return the difference modulo ``MODULUS``; no step's time depends on the values."""
    left = one - two
    reduced: IntArray = left + MODULUS * (left < 0)
    return reduced


def available() -> bool:
    """Return whether the library that multiplies is installed (extra ``sealed``)."""
    try:
        return importlib.util.find_spec("seal") is not None
    except ImportError:  # a finder that refuses it
        return False


@functools.cache
def seal_ring() -> "SealRing":
    """Return the ring of this process; `ImportError` without the extra ``sealed``."""
    return SealRing()


class SealRing:
    """The ring through ``seal-python``."""

    def __init__(self) -> None:
        import seal

        self._seal = seal
        parameters = seal.EncryptionParameters(seal.scheme_type.bfv)
        parameters.set_poly_modulus_degree(DEGREE)
        moduli = seal.CoeffModulus.Create(DEGREE, [COEFFICIENT_BITS])
        if moduli[0].value() != MODULUS:
            raise ImportError("the installed SEAL has another modulus; install colonnade[sealed]")
        parameters.set_coeff_modulus(moduli)
        parameters.set_plain_modulus(_PLAIN_MODULUS)
        self._context = seal.SEALContext(parameters)
        self._evaluator = seal.Evaluator(self._context)
        # What SEAL writes before the coefficients, learned from one object of each type.
        self._plain_head = seal.Plaintext(DEGREE).to_bytes()[: -8 * DEGREE]
        self._pair_head = self._learn_pair_head()
        self._form = self._transformed(_ONE, _ONE).parms_id()

    def times(self, polynomials: Sequence[IntArray], small: IntArray) -> list[IntArray]:
        """Return each polynomial times ``small``, whose coefficients are below ``MAX_SMALL``."""
        plain, products = self.multiplier(small), []
        for polynomial in polynomials:
            # The other part is 1: SEAL refuses a pair whose second part is 0, and a peer may have
            # chosen the polynomial.
            made = self._evaluator.multiply_plain(self._transformed(polynomial, _ONE), plain)
            products.append(self._left(made, polynomial, _ONE)[0])
        return products

    def prepare(self, pairs: Sequence[tuple[IntArray, IntArray]]) -> "SealPrepared":
        """Return pairs of polynomials in the form in which they are multiplied many times."""
        first = second = np.zeros(DEGREE, np.int64)
        for one, two in pairs:
            first, second = add(first, one), add(second, two)
        return SealPrepared(self, [self._transformed(*pair) for pair in pairs], first, second)

    def _learn_pair_head(self) -> bytes:
        seal = self._seal
        keys = seal.KeyGenerator(self._context)  # thrown away: only the form of a pair is wanted
        made = seal.Encryptor(self._context, keys.create_public_key()).encrypt_zero().to_string()
        head: bytes = made[: -2 * 8 * DEGREE]
        return head

    def multiplier(self, small: IntArray) -> Any:
        """Return a small polynomial in the form in which it multiplies many times."""
        shifted = small.astype(np.int64)
        shifted[0] += MAX_SMALL
        plain = self._seal.Plaintext()
        words = (shifted + _PLAIN_MODULUS * (shifted < 0)).astype("<u8").tobytes()
        plain.load_bytes(self._context, self._plain_head + words)
        self._evaluator.transform_to_ntt_inplace(plain, self._form)
        return plain

    def _transformed(self, one: IntArray, two: IntArray) -> Any:
        made = self._seal.Ciphertext()
        words = one.astype("<u8").tobytes() + two.astype("<u8").tobytes()
        made.load_bytes(self._context, self._pair_head + words)
        self._evaluator.transform_to_ntt_inplace(made)
        return made

    def _left(self, made: Any, one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
        """Return both parts of a product, less what the public constant added."""
        self._evaluator.transform_from_ntt_inplace(made)
        words = np.frombuffer(made.to_string()[-2 * 8 * DEGREE :], "<u8").astype(np.int64)
        return subtract(words[:DEGREE], _shifted(one)), subtract(words[DEGREE:], _shifted(two))


@dataclass(frozen=True, slots=True)
class SealPrepared:
    """Pairs in SEAL's transformed form, and their plain sums."""

    ring: SealRing
    pairs: Sequence[Any]
    first: IntArray
    second: IntArray

    def dot(self, multipliers: Sequence[Any]) -> tuple[IntArray, IntArray]:
        """Return the sum over all pairs of both parts times the pair's `Ring.multiplier`."""
        evaluator, total = self.ring._evaluator, None  # noqa: SLF001 - its other half
        for pair, multiplier in zip(self.pairs, multipliers, strict=True):
            product = evaluator.multiply_plain(pair, multiplier)
            if total is None:
                total = product
            else:
                evaluator.add_inplace(total, product)
        return self.ring._left(total, self.first, self.second)  # noqa: SLF001


_ONE = np.zeros(DEGREE, np.int64)
_ONE[0] = 1


def _shifted(polynomial: IntArray) -> IntArray:
    """Return ``MAX_SMALL`` times a polynomial: doubled so many times."""
    for _ in range(_SHIFT_BITS):
        polynomial = add(polynomial, polynomial)
    return polynomial
