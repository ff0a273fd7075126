"""Shamir's secret sharing of 32 bytes: any ``t`` shares reconstruct them, fewer reveal nothing.

A polynomial of degree ``t - 1`` over the integers modulo the prime ``2**256 + 297``, with the
secret at 0 and a share at ``place + 1`` (Shamir 1979). Its other coefficients are drawn from
SHAKE-256 of secret bytes, so that a retry deals the same shares; that costs the
information-theoretic guarantee and leaves that of the hash function.
"""

import hashlib
from collections.abc import Mapping, Sequence

PRIME = 2**256 + 297
SHARE_BYTES = 33
_SECRET_BYTES = 32
# Far more bits than the prime's, so that what is drawn is uniform up to 2**-128.
_DRAWN_BYTES = 48


def split(secret: bytes, threshold: int, places: Sequence[int], entropy: bytes) -> dict[int, bytes]:
    """Return the share of each of ``places``."""
    if len(secret) != _SECRET_BYTES or not 1 <= threshold <= len(places):
        raise ValueError("a secret of 32 bytes is split among at least a threshold of holders")
    size = _DRAWN_BYTES * (threshold - 1)
    drawn = hashlib.shake_256(b"colonnade secret shares v1\0" + entropy).digest(size)
    terms = [int.from_bytes(secret, "big")]
    terms += [
        int.from_bytes(drawn[at : at + _DRAWN_BYTES], "big") % PRIME
        for at in range(0, size, _DRAWN_BYTES)
    ]
    return {place: _at(terms, place + 1).to_bytes(SHARE_BYTES, "big") for place in places}


def combine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """Return the secret from at least ``threshold`` shares, by Lagrange's formula at 0."""
    if len(shares) < threshold:
        raise ValueError("there are too few shares")
    chosen = dict(sorted(shares.items())[:threshold])
    if any(len(share) != SHARE_BYTES for share in chosen.values()):
        raise ValueError("a share has another size")
    total = 0
    for place, share in chosen.items():
        top = bottom = 1
        for other in chosen:
            if other != place:
                top = top * (other + 1) % PRIME
                bottom = bottom * (other - place) % PRIME
        total += int.from_bytes(share, "big") * top * pow(bottom, -1, PRIME)
    found = total % PRIME
    if found >= 2**256:
        raise ValueError("the shares are not of one secret")
    return found.to_bytes(_SECRET_BYTES, "big")


def _at(terms: Sequence[int], x: int) -> int:
    value = 0
    for term in reversed(terms):
        value = (value * x + term) % PRIME
    return value
