"""Curve25519 against other implementations: cryptography, libsodium's bindings, plain integers."""

import hashlib

import nacl.bindings as sodium
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from support.entropy import shake

from colonnade.core.errors import BadMessage
from colonnade.methods.alignment.crypto import curve
from colonnade.methods.alignment.crypto.curve import (
    L,
    P,
    clamp,
    draw_scalars,
    hash_to_curve,
    multiply,
)
from colonnade.methods.alignment.crypto.points import LOW_ORDER, check_points, points_from_bytes
from colonnade.methods.alignment.refusals import HostilePoints

IDS = [b"%d" % number for number in range(150)]


def exchange(scalar: bytes, point: bytes) -> bytes:
    """Multiply with another library."""
    key = X25519PrivateKey.from_private_bytes(scalar)
    return key.exchange(X25519PublicKey.from_public_bytes(point))


def point(u: int) -> bytes:
    return u.to_bytes(32, "little")


def test_multiplication_is_that_of_x25519() -> None:
    points, scalar = hash_to_curve(b"test", IDS), draw_scalars(shake("a")).secret
    assert [row.tobytes() for row in multiply(scalar, points)] == [
        exchange(scalar, row.tobytes()) for row in points
    ]


def test_multiplication_follows_rfc_7748() -> None:
    # RFC 7748, section 5.2, first vector.
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    u = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    out = multiply(scalar, points_from_bytes(u))
    assert out.tobytes().hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"


def test_hashing_is_two_maps_added_and_taken_to_the_montgomery_side() -> None:
    for each, made in zip(IDS, hash_to_curve(b"test", IDS), strict=True):
        digest = hashlib.sha512(b"\0\0\0\4test" + each).digest()
        halves = (digest[:32], digest[32:])
        left, right = map(sodium.crypto_core_ed25519_from_uniform, halves)
        edwards = sodium.crypto_core_ed25519_add(left, right)
        assert sodium.crypto_core_ed25519_is_valid_point(edwards)  # of the prime-order subgroup
        assert made.tobytes() == sodium.crypto_sign_ed25519_pk_to_curve25519(edwards)


def test_hashing_is_pinned() -> None:
    made = hash_to_curve(b"pinned", [b"somebody"]).tobytes().hex()
    assert made == "4f3b2ad0a115c6d2056e84824d2b8c4fe1836af5d332bc2bfe6aded035ef8f25"


def test_domains_and_ids_separate() -> None:
    made = [
        hash_to_curve(domain, [each]).tobytes()
        for domain, each in ((b"a", b"b"), (b"a", b"c"), (b"b", b"b"), (b"", b"ab"), (b"ab", b""))
    ]
    assert len(set(made)) == len(made)


def test_lists_large_and_small_and_threads_make_no_difference() -> None:
    many = [b"%d" % number for number in range(1500)]
    scalar = draw_scalars(shake("b")).secret
    whole = hash_to_curve(b"test", many, threads=3)
    assert (whole == hash_to_curve(b"test", many, threads=1)).all()
    assert (whole[7] == hash_to_curve(b"test", many[7:8])[0]).all()
    assert (multiply(scalar, whole, threads=3) == multiply(scalar, whole, threads=1)).all()
    empty = hash_to_curve(b"test", [])
    assert multiply(scalar, empty).shape == empty.shape == (0, 32)


def test_blinds_cancel_whoever_owns_the_list() -> None:
    points = hash_to_curve(b"test", IDS)
    parties = [draw_scalars(shake(f"party {k}")) for k in range(3)]
    tags = []
    for owner, mine in enumerate(parties):
        made = multiply(mine.blind, points)
        for other in (1, 2):
            made = multiply(parties[(owner + other) % 3].secret, made)
        tags.append(multiply(mine.unblind, made).tobytes())
    assert tags[0] == tags[1] == tags[2]
    assert len({row.tobytes() for row in points_from_bytes(tags[0])}) == len(IDS)


def test_scalars_are_clamped_and_fresh_and_the_quotient_is_right() -> None:
    entropy = shake("scalars")
    drawn = [draw_scalars(entropy) for _ in range(50)]
    for each in drawn:
        for scalar in (each.secret, each.blind, each.unblind):
            assert clamp(scalar) == scalar
        secret, blind, unblind = (
            int.from_bytes(scalar, "little") for scalar in (each.secret, each.blind, each.unblind)
        )
        assert unblind * blind % L == secret % L
    assert len({each.secret for each in drawn} | {each.blind for each in drawn}) == 100
    assert drawn[0].secret.hex() not in repr(drawn[0])


# Orders 1 to 8 on curve and twist, reduced and not: RFC 7748 section 6.1 and its errata warn of 0.
HOSTILE = [*LOW_ORDER, P, P + 1, 2**255 - 1, 2**255, 2**255 + 1, 2**255 + 9, 2**256 - 1]


@pytest.mark.parametrize("u", HOSTILE)
def test_points_of_low_order_are_refused_before_any_work(
    u: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> object:
        raise AssertionError("a point was multiplied")

    monkeypatch.setattr(curve, "_multiplier", work)
    honest = hash_to_curve(b"test", IDS).tobytes()
    hostile = points_from_bytes(honest + point(u))
    with pytest.raises(HostilePoints) as refused:
        multiply(draw_scalars(shake("c")).secret, hostile)
    assert refused.value.code == "hostile_points"


@pytest.mark.parametrize("u", LOW_ORDER)
def test_the_list_of_low_orders_is_that_of_libsodium(u: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        exchange(draw_scalars(shake("d")).secret, point(u))


@pytest.mark.parametrize("u", LOW_ORDER)
def test_a_point_that_slips_through_the_list_is_refused_by_its_product(
    u: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "check_points", lambda points: None)
    with pytest.raises(HostilePoints):
        multiply(draw_scalars(shake("e")).secret, points_from_bytes(point(u)))


def test_honest_and_twist_points_are_taken() -> None:
    on_twist = next(
        u for u in range(2, 50) if pow(u * (u * u + 486662 * u + 1) % P, (P - 1) // 2, P) == P - 1
    )
    check_points(points_from_bytes(point(on_twist) + point(9) + point(P - 2)))
    check_points(hash_to_curve(b"test", IDS))
    check_points(np.empty((0, 32), np.uint8))


def test_bytes_that_are_no_points_are_refused() -> None:
    with pytest.raises(BadMessage):
        points_from_bytes(bytes(33))
    with pytest.raises(ValueError, match="32 bytes"):
        multiply(bytes(31), hash_to_curve(b"test", IDS[:1]))
