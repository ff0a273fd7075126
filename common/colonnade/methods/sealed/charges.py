"""What a sealed exchange costs, on what it rests, and what a key may open.

Three statements of different strength, never to be mixed.

Charged. Against peers that follow the protocol and are computationally bounded, what all of them
see together is indistinguishable from ideal releases that are zCDP at the charged rho: replies and
openings, each party's charge counting its own noise alone (`privacy.ring_noise`). Rho is summed
over the ideal releases and converted once: ``(epsilon, delta + (1 + e**epsilon) advantage)``. The
transcript itself is not zCDP (computational differential privacy: Mironov et al. 2009).

Assumed. Ring learning with errors, with hints: a replier's reply hides behind a mask of which the
encryptor sees noisy linear functions, and the encryptor's key behind errors of which everybody sees
noisy linear functions in the openings. With secrets of variance ``s2``, noise of variance ``n2`` on
the hints and ``B`` bounding the largest eigenvalue of the hints' ``M' M``, this is as hard as
without hints at variance ``v``, ``1 / v = 2 (1 / s2 + B / n2)`` (Kim, Lee, Seo and Song 2023, for
ring products; here ``M`` has the rows of the wanted coefficients). `check_hints` asks for ``v`` of
at least ``3.2**2``, the deviation of the Homomorphic Encryption Standard, which is above the
smoothing parameter that the theorem needs. The random oracle for ``a``. How far this was checked
is said in docs/concepts/sealed.md; outside review is wanted: the method is experimental.

Not promised. A peer that does not follow the protocol. An opening decrypts what a replier sent, and
each number that is published carries at most `capacity` bits about whatever a hostile replier
chose: for noise that is narrow beside the field ``log2(field / (sqrt(2 pi e) sigma))``, and never
0. `MAX_KEY_BITS` bounds the sum under one key. A coefficient of the secret has
``log2(sqrt(2 pi e 41)) = 4.7`` bits, so that at least 3600 of its 4096 coefficients stay unknown,
and the standard's table is content with 2048 at this modulus.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from colonnade.methods.sealed.packing import HIGH_FIELD, HIGH_STEP, LOW_FIELD, LOW_STEP, Layout
from colonnade.methods.sealed.ring import DEGREE, MODULUS
from colonnade.methods.sealed.rows import RowScale
from colonnade.methods.sealed.scheme import ERROR_SIGMA2
from colonnade.privacy.accounting import RHO_UNIT
from colonnade.privacy.ring_noise import (
    SealedCiphertext,
    SealedOpening,
    SealedReply,
    reply_sensitivity2,
)

MAX_KEY_BITS = 2300
# What one reply may carry to a peer that sealed something else than its columns: 1 KiB, about twice
# what plans for usual tables need.
MAX_REPLY_BITS = 8192

# Norms of what peers draw exceed the bounds below with probability 2**-80 each, at most.
_TAIL = 56  # above 80 ln 2
_HINT_VARIANCE = Fraction(1024, 100)  # 3.2**2
_MILLI = 1000
_MARGIN = 4
_ROOT2 = math.sqrt(2.0)
# Noise below this part of a field wraps seldom; three wraps have then a probability below 1e-90.
_NARROW, _WRAPS, _TERMS = 0.1, 3, 8


def norm2_bound(sigma2: int, count: int) -> int:
    """Return what the squared norm of ``count`` discrete Gaussians exceeds with at most 2**-80.

    They are subgaussian (Canonne, Kamath and Steinke 2020), so
    ``sigma2 (count + 2 sqrt(count t) + 2 t)`` is exceeded with at most ``exp(-t)`` (Hsu, Kakade and
    Zhang 2012, Theorem 2.1).
    """
    return sigma2 * (count + math.isqrt(4 * count * _TAIL) + 1 + 2 * _TAIL)


def error_bound(layout: Layout) -> int:
    """Return the norm of a row, in raw units, as which an encryptor's errors act on a reply.

    With one lane, row ``s`` of a replier is multiplied with the errors beside row ``s``, one a
    pair: their norm. With several, each product also gets errors from the places of other lanes:
    a row's products with them are a convolution, bounded by the sum of the errors' sizes, which is
    at most the root of their number times their norm. Groups have errors of their own.
    """
    count = layout.slots + layout.lanes - 1
    spread = 1 if layout.lanes == 1 else count
    return math.isqrt(spread * norm2_bound(ERROR_SIGMA2, layout.groups * count)) + 1


@dataclass(frozen=True, slots=True)
class Product:
    """A product between two parties: who seals, who multiplies, and how it lies in polynomials."""

    sealed: RowScale
    multiplied: RowScale
    layout: Layout

    @property
    def numbers(self) -> int:
        """Raw coefficients that are opened."""
        return self.layout.slots * self.layout.replies(self.multiplied.columns)

    @property
    def reply2(self) -> int:
        """Squared sensitivity of a reply to the replier's row."""
        error = error_bound(self.layout)
        return reply_sensitivity2(
            self.multiplied.move2, self.sealed.radius2, error=error, low_step=LOW_STEP
        )

    @property
    def opening2(self) -> int:
        """Squared sensitivity of an opening to the encryptor's row."""
        return self.sealed.move2 * self.multiplied.radius2

    def sensitivity2(self, *, opens: bool) -> int:
        """Squared sensitivity of the opening, or of the reply."""
        return self.opening2 if opens else self.reply2

    def reply(self, sigma2: int) -> SealedReply:
        """Return the mechanism of the reply."""
        return SealedReply(
            sigma2=sigma2,
            move2=self.multiplied.move2,
            radius2=self.sealed.radius2,
            error=error_bound(self.layout),
            columns=self.layout.width,
            lanes=self.layout.lanes,
            polynomials=self.layout.replies(self.multiplied.columns),
            degree=DEGREE,
            mask_sigma2=ERROR_SIGMA2,
            modulus=MODULUS,
            low_step=LOW_STEP,
            high_step=HIGH_STEP,
        )

    def opening(self, sigma2: int) -> SealedOpening:
        """Return the mechanism of the opening."""
        return SealedOpening(
            sigma2=sigma2,
            move2=self.sealed.move2,
            radius2=self.multiplied.radius2,
            numbers=self.numbers,
            modulus=MODULUS,
            low_step=LOW_STEP,
            high_step=HIGH_STEP,
        )


def ciphertext(polynomials: int, *, key: str, peers: Sequence[str]) -> SealedCiphertext:
    """Return the mechanism of a body of so many polynomials."""
    return SealedCiphertext(
        modulus=MODULUS,
        degree=DEGREE,
        polynomials=polynomials,
        error_sigma2=ERROR_SIGMA2,
        key=key,
        peers="\n".join(peers),
    )


def sigma2_within(units: int, sensitivities2: Sequence[int]) -> int:
    """Return the least variance at which releases of these sensitivities cost ``units`` together.

    Each release's price is rounded up by itself, so that they may cost a unit more each.
    """
    if units < 1:
        raise ValueError("a sealed release needs a price")
    return -(-sum(sensitivities2) * RHO_UNIT // (2 * units))


def capacity(field: int, sigma2: int) -> float:
    """Return the most bits that a number of a field carries through Gaussian noise of ``sigma2``.

    A hostile peer chooses ``x``, and ``x + noise`` modulo the field is published, after which
    nothing adds information. The mutual information is at most ``log2 field - H(noise mod field)``,
    because a uniform output has the largest entropy and that of the noise does not depend on ``x``.
    Two lower bounds of that entropy hold for every ``sigma``, each where it is the better one:

    - The noise is its remainder and a number of wraps, so that
      ``H(noise mod field) >= H(noise) - H(wraps)``, with ``H(noise) = log2(sqrt(2 pi e) sigma)``.
    - No entropy is below the collision entropy (Rényi 1961), which by Poisson's summation is
      ``log2 field - log2(1 + 2 sum over k > 0 of exp(-(2 pi k sigma / field)**2))``.
    """
    ratio = math.sqrt(sigma2) / field
    odds = [
        (math.erfc((k - 0.5) / ratio / _ROOT2) - math.erfc((k + 0.5) / ratio / _ROOT2)) / 2.0
        for k in range(-_WRAPS, _WRAPS + 1)
    ]
    wraps = -sum(odd * math.log2(odd) for odd in odds if odd > 0.0)
    shannon = wraps - math.log2(math.sqrt(2.0 * math.pi * math.e) * ratio)
    if ratio < _NARROW:
        return shannon
    theta = sum(math.exp(-((2.0 * math.pi * k * ratio) ** 2)) for k in range(1, _TERMS))
    collision = math.log1p(2.0 * theta) / math.log(2.0)
    return min(shannon, collision) if ratio < 1.0 else collision


@functools.lru_cache(maxsize=256)
def millibits(field: int, sigma2: int) -> int:
    """Return at least the capacity of a published number, in thousandths of a bit; never 0.

    `_MARGIN` covers what the formula leaves out. Noise is discrete, of deviation ``2**17`` raw
    units or more, and rounding is of doubles: below ``1e-9`` bits. Both numbers of a raw
    coefficient are counted by themselves, though they wrap at a modulus that is 172,031 less than
    the product of their fields: of the high noise's values one at most, of probability at most
    ``1 / (sqrt(2 pi) 2**12)``, brings the low number to where that happens, and at most its 30 bits
    with it: 0.003 bits.
    """
    return math.ceil(capacity(field, sigma2) * _MILLI) + _MARGIN


def opened_millibits(products: Sequence[Product], sigma2: int) -> int:
    """Return what all openings under one key, that of a group, carry to hostile repliers."""
    total = 0
    for product in products:
        low, high = (product.layout.width + 1) // 2, product.layout.width // 2
        each = low * millibits(LOW_FIELD, sigma2) + high * millibits(HIGH_FIELD, sigma2)
        total += product.multiplied.columns * each
    return total


def check_key(products: Sequence[Product], sigma2: int) -> None:
    """Raise `ValueError` if a key would open more than a key may, or its errors hide too little."""
    if (found := opened_millibits(products, sigma2)) > MAX_KEY_BITS * _MILLI:
        raise ValueError(
            f"the job would open {-(-found // _MILLI)} bits under one key, more than "
            f"{MAX_KEY_BITS}; use more groups, fewer columns or a smaller budget"
        )
    mask2 = norm2_bound(ERROR_SIGMA2, DEGREE)
    bound = sum(
        product.numbers * 2 * mask2
        + product.layout.lanes * product.multiplied.rows * product.multiplied.radius2
        for product in products
    )
    check_hints(bound, sigma2)


def replied_millibits(product: Product, sigma2: int) -> int:
    """Return what a reply carries to a hostile encryptor.

    It chooses what is multiplied: every coefficient that is sent is then a function of the
    replier's rows of its choice, over both fields, under the replier's noise alone.
    """
    return product.numbers * (millibits(LOW_FIELD, sigma2) + millibits(HIGH_FIELD, sigma2))


def check_reply(product: Product, sigma2: int) -> None:
    """Raise `ValueError` if a reply would carry or show too much to a hostile encryptor."""
    bound = product.layout.slots * 2 * norm2_bound(ERROR_SIGMA2, DEGREE)
    check_hints(bound, sigma2)
    if (found := replied_millibits(product, sigma2)) > MAX_REPLY_BITS * _MILLI:
        raise ValueError(
            f"a reply would carry {-(-found // _MILLI)} bits to a peer that does not follow the "
            f"protocol, more than {MAX_REPLY_BITS}; use fewer columns, fewer lanes or less budget"
        )


def check_hints(bound: int, sigma2: int) -> None:
    """Raise `ValueError` unless hints leave the secrets the standard's deviation."""
    left = 2 * (Fraction(1, ERROR_SIGMA2) + Fraction(bound, sigma2 * LOW_STEP**2))
    if left * _HINT_VARIANCE > 1:
        raise ValueError("the noise is too small for the encryption; use a smaller budget")
