"""Curve25519 for the alignment: hashing to the curve, blinds, and multiplying whole lists.

Points are rows of 32 bytes, u-coordinates on the Montgomery side. An id is hashed with SHA-512;
each half is mapped to the prime-order subgroup by libsodium and the two points are added, which is
indifferentiable from a random oracle (Brier et al. 2010; Farashahi et al. 2013). Scalars have the
clamped form of X25519 (RFC 7748, section 5).

Time: maps, additions and multiplications are libsodium's and take constant time. The birational
map to u is one batch inversion (Montgomery 1987) in Python integers of fixed width modulo p, over
hashes; it happens for a whole chunk at once. Scalars are inverted and multiplied by libsodium.

Threads: `cryptography` holds the interpreter lock during an exchange, so threads gain nothing
there. libsodium's functions are called from compiled loops without the lock, which uses all cores
and keeps the process's other threads, such as its streams, running meanwhile. What needs the lock
is done for a range of points while other threads are at their loops.
"""

import ctypes
import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import nacl.bindings as sodium
import numba
import numpy as np
from nacl._sodium import ffi, lib
from numpy.typing import NDArray

from colonnade.core.threads import over_ranges
from colonnade.methods.alignment.crypto.points import POINT_BYTES, Points, check_points
from colonnade.methods.alignment.refusals import HostilePoints

ByteArray = NDArray[np.uint8]

SCALAR_BYTES = 32
P = 2**255 - 19
# Order of the prime-order subgroup.
L = 2**252 + 27742317777372353535851937790883648493
_MASK = (1 << 255) - 1
_POINTER = ctypes.c_void_p


def _function(name: str, *arguments: Any) -> Any:
    """Return a function of libsodium as compiled loops can call it."""
    address = int(ffi.cast("uintptr_t", ffi.addressof(lib, name)))
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(address)


@functools.cache
def _multiplier() -> Callable[[ByteArray, Points, Points], int]:
    """Compile the loop that multiplies points; not cached on disk, for it holds an address."""
    multiply_one = _function("crypto_scalarmult", _POINTER, _POINTER, _POINTER)

    @numba.njit(nogil=True)
    def loop(scalar: Any, points: Any, out: Any) -> int:
        failed = 0
        for i in range(len(points)):
            failed |= multiply_one(out[i].ctypes, scalar.ctypes, points[i].ctypes)
        return failed

    return loop


@functools.cache
def _mapper() -> Callable[[ByteArray, Points], int]:
    """Compile the loop that maps digests of 64 bytes to points on the Edwards side."""
    from_uniform = _function("crypto_core_ed25519_from_uniform", _POINTER, _POINTER)
    add = _function("crypto_core_ed25519_add", _POINTER, _POINTER, _POINTER)

    @numba.njit(nogil=True)
    def loop(digests: Any, out: Any) -> int:
        failed = 0
        left, right = np.empty(32, np.uint8), np.empty(32, np.uint8)
        for i in range(len(digests)):
            failed |= from_uniform(left.ctypes, digests[i, :32].ctypes)
            failed |= from_uniform(right.ctypes, digests[i, 32:].ctypes)
            failed |= add(out[i].ctypes, left.ctypes, right.ctypes)
        return failed

    return loop


def _over_points(
    work: Callable[[int, int], int], n_points: int, *, threads: int | None = None
) -> int:
    """Call ``work`` on ranges of points in all threads; return the results or-ed together."""

    def on_bytes(first: int, last: int) -> int:
        return work(first // POINT_BYTES, last // POINT_BYTES)

    results = over_ranges(on_bytes, n_points * POINT_BYTES, threads=threads, align=POINT_BYTES)
    return functools.reduce(int.__or__, map(int, results), 0)


def multiply(
    scalar: bytes,
    points: Points,
    *,
    threads: int | None = None,
    take: Callable[[int, Points], None] = lambda _first, _products: None,
) -> Points:
    """Return ``scalar`` times every point; refuse points of low order before any work.

    ``take`` is given the place of the first and the products of each range as soon as they are
    made, while other threads still multiply.
    """
    check_points(points)
    if len(scalar) != SCALAR_BYTES:
        raise ValueError("a scalar has 32 bytes")
    key, out, loop = np.frombuffer(scalar, np.uint8), np.empty_like(points), _multiplier()
    read = points[:]
    read.setflags(write=False)  # as points from bytes are: one type, one compilation

    def work(first: int, last: int) -> int:
        failed = loop(key, read[first:last], out[first:last])
        take(first, out[first:last])
        return failed

    if _over_points(work, len(points), threads=threads):
        raise HostilePoints("a point has low order; an honest party sends none such")
    return out


def hash_to_curve(domain: bytes, ids: Sequence[bytes], *, threads: int | None = None) -> Points:
    """Return a point of the prime-order subgroup for every id, under ``domain``."""
    prefix = hashlib.sha512(len(domain).to_bytes(4, "big") + domain)
    out, loop = np.empty((len(ids), POINT_BYTES), np.uint8), _mapper()

    def work(first: int, last: int) -> int:
        digests = bytearray()
        for each in ids[first:last]:
            digest = prefix.copy()
            digest.update(each)
            digests += digest.digest()
        made = out[first:last]
        failed = loop(np.frombuffer(digests, np.uint8).reshape(-1, 64), made)
        made[:] = _to_montgomery(made)
        return failed

    if _over_points(work, len(ids), threads=threads):
        raise RuntimeError("libsodium refused a point that it made")
    return out


def _to_montgomery(edwards: Points) -> Points:
    """Return ``(1 + y) / (1 - y)`` for every point, with one inversion for all."""
    raw, product, before = edwards.tobytes(), 1, []
    for at in range(0, len(raw), POINT_BYTES):
        y = int.from_bytes(raw[at : at + POINT_BYTES], "little") & _MASK
        before.append((y, product))
        product = product * (1 - y) % P
    # A product of 0 is the neutral element: a preimage of SHA-512 that nobody can find.
    inverse, out = pow(product, -1, P), []
    for y, prefix in reversed(before):
        out.append((inverse * prefix % P * (1 + y) % P).to_bytes(POINT_BYTES, "little"))
        inverse = inverse * (1 - y) % P
    return np.frombuffer(b"".join(reversed(out)), np.uint8).reshape(-1, POINT_BYTES)


@dataclass(frozen=True, slots=True, repr=False)
class Scalars:
    """A party's secret scalars of one run.

    ``secret`` multiplies the others' lists; ``blind`` its own before it is sent, and ``unblind`` =
    ``secret / blind`` when it comes back. All have the clamped form of X25519.
    """

    secret: bytes
    blind: bytes
    unblind: bytes


def clamp(raw: bytes) -> bytes:
    """Return 32 bytes in X25519's clamped form."""
    return bytes([raw[0] & 248]) + raw[1:31] + bytes([raw[31] & 127 | 64])


def draw_scalars(entropy: Callable[[int], bytes]) -> Scalars:
    """Draw a secret, and blinds until ``secret / blind`` has a clamped form: half of them do."""
    secret = clamp(entropy(SCALAR_BYTES))
    while True:
        blind = clamp(entropy(SCALAR_BYTES))
        unblind = _clamped_quotient(secret, blind)
        if unblind is not None:
            return Scalars(secret, blind, unblind)


def _clamped_quotient(above: bytes, below: bytes) -> bytes | None:
    """Return the clamped number that is ``above / below`` modulo L, or None if there is none.

    Of ``q + j L`` with ``j`` in 0 .. 7 exactly one is a multiple of 8; it must lie in
    ``2**254 .. 2**255``. L is 5 modulo 8, and 5 is its own inverse there.
    """
    inverse = sodium.crypto_core_ed25519_scalar_invert(below)
    quotient = int.from_bytes(sodium.crypto_core_ed25519_scalar_mul(above, inverse), "little")
    multiple = quotient + (-quotient * 5 % 8) * L
    return multiple.to_bytes(32, "little") if multiple >> 254 == 1 else None
