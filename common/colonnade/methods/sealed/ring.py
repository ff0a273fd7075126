"""Arithmetic in ``Z_q[x] / (x**4096 + 1)``: who multiplies, and nothing else.

A polynomial is a vector of ``DEGREE`` 64-bit integers in ``0 .. MODULUS - 1``. Microsoft SEAL has
the number-theoretic transform and does nothing besides; between transforms, sums of products of
values are taken here, in exact integers. Keys, errors, noise, encryption and decryption are this
package's own, because SEAL's encryptor draws ternary secrets and its decryptor rounds before noise
could be added.

``MODULUS`` is the 54-bit prime that SEAL gives for this degree. The table of the Homomorphic
Encryption Standard (Albrecht et al. 2018) allows 109 bits there at 128 bits of security, and
54 bits already at half the degree.

Time: SEAL transforms two polynomials at a time and raises an exception if the second is zero, and
an exception tells. So a constant is added to the second one's first coefficient and subtracted
afterwards: larger than any coefficient of rows, so that no row decides anything, and drawn by
every process for itself, so that no peer can send what cancels it.
"""

import functools
import hashlib
import importlib.util
import secrets
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import IntArray
from colonnade.core.jit import njit

Words = NDArray[np.uint64]

DEGREE = 4096
MODULUS = 18014398509309953  # 2**54 - 172031, a prime, 1 modulo 2 * DEGREE
COEFFICIENT_BITS = 54
# Coefficients of a small multiplier are smaller in size.
MAX_SMALL = 1 << 9

# SEAL wants some; nothing here depends on it.
_PLAIN_MODULUS = 1 << 49
_BYTES = 8 * DEGREE
# Products of 54-bit values are summed in limbs of 27 bits; so many fit 64 bits.
_Q, _HALF, _LIMB = np.uint64(MODULUS), np.uint64(27), np.uint64((1 << 27) - 1)
_TOGETHER, _SHIFT, _BLOCK = 256, np.uint64(9), 512
# Terms of 36 bits that are summed at a time.
_TERMS = 1 << 16
# Digest of the values of x.
_ORDER = "85295381f60eed7afe9d41b9df03a094acdca4be502103ed2cab4fe25a697e80"


class Ring(Protocol):
    """Transforms polynomials into values, and back: products are then value by value."""

    def forward(self, polynomials: IntArray) -> Words:
        """Return the values, in the transform's order, of polynomials ``(count, DEGREE)``."""

    def inverse(self, values: Words) -> IntArray:
        """Return the polynomials, ``(count, DEGREE)``, that have these values."""


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
        self._constant = MAX_SMALL + secrets.randbelow(MODULUS - 2 * MAX_SMALL)
        # What SEAL writes before coefficients and before values, learned from one pair of each.
        keys = seal.KeyGenerator(self._context)  # thrown away: only the form of a pair is wanted
        pair = seal.Encryptor(self._context, keys.create_public_key()).encrypt_zero()
        self._plain_head = pair.to_string()[: -2 * _BYTES]
        self._evaluator.transform_to_ntt_inplace(pair)
        self._value_head = pair.to_string()[: -2 * _BYTES]
        # Values that are expanded have the transform's order, at all parties the same.
        powers = np.zeros((1, DEGREE), np.int64)
        powers[0, 1] = 1
        if hashlib.sha256(self.forward(powers).tobytes()).hexdigest() != _ORDER:
            raise ImportError("the installed SEAL has another transform; install colonnade[sealed]")

    def forward(self, polynomials: IntArray) -> Words:
        """Return the values, in the transform's order, of polynomials ``(count, DEGREE)``.

        Coefficients may be negative, down to ``-MODULUS``.
        """
        table = np.zeros((len(polynomials) + len(polynomials) % 2, DEGREE), "<i8")
        _into_ring(polynomials, 0, table[: len(polynomials)])
        table[1::2, 0] = (table[1::2, 0] + self._constant) % MODULUS
        found = self._each(table, self._plain_head, self._evaluator.transform_to_ntt_inplace)
        # A constant has the same value everywhere.
        _into_ring(found[1::2], -self._constant, found[1::2])
        return found[: len(polynomials)].view(np.uint64)

    def inverse(self, values: Words) -> IntArray:
        """Return the polynomials, ``(count, DEGREE)``, that have these values."""
        table = np.zeros((len(values) + len(values) % 2, DEGREE), "<i8")
        table[: len(values)] = values.view(np.int64)
        _into_ring(table[1::2], self._constant - MODULUS, table[1::2])
        found = self._each(table, self._value_head, self._evaluator.transform_from_ntt_inplace)
        found[1::2, 0] = (found[1::2, 0] - self._constant) % MODULUS
        return found[: len(values)]

    def _each(self, table: IntArray, head: bytes, transform: Callable[[Any], object]) -> IntArray:
        """Transform two polynomials after the other."""
        out = np.empty(table.shape, np.int64)
        for first in range(0, len(table), 2):
            pair = self._seal.Ciphertext()
            pair.load_bytes(self._context, head + table[first : first + 2].tobytes())
            transform(pair)
            made = pair.to_string()
            words = np.frombuffer(made, "<i8", offset=len(made) - 2 * _BYTES)
            out[first : first + 2] = words.reshape(2, DEGREE)
        return out


@njit
def _into_ring(table: IntArray, constant: int, out: IntArray) -> None:
    """Write ``table + constant``, which lies above ``-MODULUS`` and below it, modulo that."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            value = table[i, j] + constant
            out[i, j] = value + ((value >> 63) & MODULUS)  # no branch is made of it


def times(ring: Ring, values: Words, small: IntArray) -> IntArray:
    """Return each of the polynomials that have ``(count, DEGREE)`` values times a small one."""
    factor = ring.forward(small[None, :])
    found = np.zeros((len(values), DEGREE), np.uint64)
    for place, each in enumerate(values):
        add_products(each[None, None, :], factor, found[place : place + 1])
    return ring.inverse(found)


def dot(small: IntArray, large: IntArray) -> IntArray:
    """Return inner products of small coefficients and those of the ring, modulo ``MODULUS``.

    Of each row of ``small`` with each of ``large``, whose coefficients are below ``MAX_SMALL`` and
    ``MODULUS`` in size.
    """
    total = np.zeros((len(small), len(large)), np.uint64)
    for first in range(0, large.shape[1], _TERMS):
        span = slice(first, first + _TERMS)
        middle, low = np.zeros((2, *total.shape), np.int64)
        _add_halves(small[:, span], large[:, span], middle, low)
        for sums in (middle, low):  # below 2**52 in size, hence the modulus
            _into_ring(sums, 0, sums)
        high = np.zeros(total.size, np.uint64)
        upper, lower = (each.view(np.uint64).reshape(-1) for each in (middle, low))
        _reduce(high, upper, lower, total.reshape(-1))
    return total.view(np.int64)


@njit
def _add_halves(small: IntArray, large: IntArray, middle: IntArray, low: IntArray) -> None:
    """Add inner products of the upper halves of ``large`` to ``middle``, of the lower to ``low``.

    In blocks that stay in the first-level cache. Factors are cut to 32 bits, which they do not
    exceed: so the compiler takes the quick multiplication.
    """
    for first in range(0, large.shape[1], _BLOCK):
        last = min(first + _BLOCK, large.shape[1])
        for j in range(large.shape[0]):
            for i in range(small.shape[0]):
                up, down = np.int64(0), np.int64(0)
                for k in range(first, last):
                    factor, term = np.int64(np.int32(small[i, k])), large[j, k]
                    up += np.int64(np.int32(term >> 27)) * factor
                    down += np.int64(np.int32(term & 0x7FFFFFF)) * factor
                middle[i, j] += up
                low[i, j] += down


def reversed_at(polynomial: IntArray, places: IntArray) -> IntArray:
    """Return what coefficients are multiplied with for those of a product at ``places``.

    Shape ``(places, DEGREE)``: times another polynomial's coefficients these are the product's.
    """
    twice = np.concatenate([polynomial, -polynomial])[::-1]  # of x**DEGREE = -1
    return np.stack([np.roll(twice, place + 1)[:DEGREE] for place in places.tolist()])


@njit
def add_products(tables: Words, factors: Words, out: Words) -> None:
    """Add ``sum over i of tables[i] * factors[i]``, value by value modulo ``MODULUS``, to ``out``.

    ``tables`` has shape ``(count, parts, DEGREE)``, ``factors`` ``(count, DEGREE)`` and ``out``
    ``(parts, DEGREE)``. The same operations for every value.
    """
    sums = np.empty((3, _BLOCK), np.uint64)
    high, middle, low = sums[0], sums[1], sums[2]
    for part in range(tables.shape[1]):
        for first in range(0, DEGREE, _BLOCK):
            span = slice(first, first + _BLOCK)
            for start in range(0, tables.shape[0], _TOGETHER):
                sums[:] = np.uint64(0)
                for i in range(start, min(start + _TOGETHER, tables.shape[0])):
                    _add_limbs(tables[i, part, span], factors[i, span], high, middle, low)
                _reduce(high, middle, low, out[part, span])


@njit
def _add_limbs(one: Words, two: Words, high: Words, middle: Words, low: Words) -> None:
    """Add products to sums of ``2**54 high + 2**27 middle + low``."""
    for i in range(one.size):  # the masks tell the compiler that factors have fewer than 32 bits
        a, b = (one[i] >> _HALF) & _LIMB, one[i] & _LIMB
        c, d = (two[i] >> _HALF) & _LIMB, two[i] & _LIMB
        high[i] += a * c
        middle[i] += a * d + b * c
        low[i] += b * d


@njit
def _reduce(high: Words, middle: Words, low: Words, out: Words) -> None:
    """Add ``2**54 high + 2**27 middle + low`` to ``out``, modulo ``MODULUS``."""
    for i in range(high.size):
        total = high[i] % _Q
        for _ in range(3):
            total = (total << _SHIFT) % _Q
        total = (total + middle[i] % _Q) % _Q
        for _ in range(3):
            total = (total << _SHIFT) % _Q
        out[i] = (out[i] + total + low[i] % _Q) % _Q
