"""Masks cancel in the whole sum and nowhere else; keys are bound to all that a run is about."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import nacl.bindings as sodium
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from support.entropy import shake

from colonnade.core.arrays import IntArray
from colonnade.ledger.receipts import public_bytes
from colonnade.masking.errors import BadAnnouncement, BadPart
from colonnade.masking.masks import (
    expand,
    fits,
    mask,
    total,
    words_from_bytes,
    words_to_bytes,
)
from colonnade.masking.schedule import (
    Announcement,
    KeySchedule,
    Peer,
    Protocol,
    Run,
    RunSecrets,
    agree,
    announce,
)
from colonnade.masking.sealing import SEAL_BYTES, open_part, seal

LEDGERS = [Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(1, 4)]
NAMES = ("clinic", "hospital", "insurer")
TABLES = tuple(hashlib.sha256(name.encode()).digest() for name in NAMES)
RUN = Run(
    Protocol.PREDICT,
    b"request",
    hashlib.sha256(b"model").digest(),
    hashlib.sha256(b"rows").digest(),
    tuple(Peer(name, public_bytes(key)) for name, key in zip(NAMES, LEDGERS, strict=True)),
    2**20,
)
SECRETS = [RunSecrets.draw(shake(name)) for name in NAMES]


def announced(run: Run = RUN, secrets: list[RunSecrets] = SECRETS) -> list[Announcement]:
    return [
        announce(run, place, each, table=TABLES[place], signer=LEDGERS[place])
        for place, each in enumerate(secrets)
    ]


def schedules(run: Run = RUN, *, round_: int = 0, attempt: int = 0) -> list[KeySchedule]:
    heard = announced(run)
    return [
        agree(run, place, each, heard, receiver=1, round_=round_, attempt=attempt)
        for place, each in enumerate(SECRETS)
    ]


def test_the_stream_is_chacha20_of_rfc_8439() -> None:
    # RFC 8439, appendix A.1, vectors 1 and 2: key and nonce of zeros, blocks 0 and 1.
    blocks = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    words = expand(bytes(32), 16)
    assert words_to_bytes(words).hex() == blocks
    assert int(words[0]) == 0x903DF1A0ADE0B876  # little-endian


def test_keys_are_hkdf_of_the_exchange_by_another_implementation() -> None:
    one, two, _ = schedules()
    exchange = sodium.crypto_scalarmult(SECRETS[0].private, SECRETS[1].public_key())
    extracted = hmac.digest(bytes(32), exchange, "sha256")
    for key, direction in (
        (one.mask_key(1), b"mask\0\0\0\1"),
        (two.mask_key(0), b"mask\0\0\0\1"),
        (two.seal_key(0, 1), b"seal\0\0\0\1"),
        (one.seal_key(1, 0), b"seal\0\1\0\0"),
    ):
        info = b"\0".join((b"colonnade masking v1", b"predict", direction, one.digest))
        assert key == hmac.digest(extracted, info + b"\1", "sha256")


def test_the_schedule_is_pinned() -> None:
    # Parties of different versions must agree: these bytes change with the protocol's name only.
    one = schedules()[0]
    assert RUN.digest().hex() == "cda1d79ce15eb9124f15601a34761a2304df1e054a84f71bcd0eb76d3f8362bd"
    assert one.digest.hex() == "d8f84d9774807fc337832b12ab1750bb6024a4c9bd6f9d65cd986ea85942da27"
    pinned = "dbec10f9c252c5fc98dd654e175020ff785cc9ee527e2d70e0b3275e3af6b05f"
    masked = words_to_bytes(mask(one, np.arange(5)))
    assert hashlib.sha256(masked).hexdigest() == pinned


@given(
    st.lists(
        st.lists(st.integers(-(2**62) // 3 + 1, 2**62 // 3 - 1), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_masks_cancel_exactly_in_the_sum_of_all(rows: list[list[int]]) -> None:
    parts = np.array(rows, np.int64)
    masked = [mask(each, parts[:, each.place]) for each in schedules()]
    assert total(masked).tolist() == [sum(row) for row in rows]


def test_a_sum_without_one_party_is_not_the_sum() -> None:
    # The values are 0, so anything but noise of 64 bits shows as a small number. Chance of one
    # uniform word of 64 below 2**44 in magnitude: 2**-19; of any of 64: 1e-4; the seeds are fixed.
    masked = [mask(each, np.zeros(64, np.int64)) for each in schedules()]
    assert not total(masked).any()
    for missing in range(3):
        rest = [part for place, part in enumerate(masked) if place != missing]
        assert (np.abs(total(rest)) > 2**44).all()
        assert (np.abs(masked[missing].view(np.int64)) > 2**44).all()


def test_the_bound_of_a_part_keeps_every_sum_from_wrapping() -> None:
    for parties in (2, 3, 7):
        most = 2**62 // parties
        assert fits(np.array([most - 1, 1 - most]), parties)
        assert not fits(np.array([0, most]), parties)
        assert not fits(np.array([-most]), parties)
        assert not fits(np.array([-(2**63)]), parties)


CHANGES: dict[str, dict[str, Any]] = {
    "protocol": {"protocol": Protocol.COHORT},
    "request": {"request": b"another"},
    "model": {"model": bytes(32)},
    "rows": {"rows": bytes(32)},
    "scale": {"scale": 2**21},
    "order of parties": {"peers": RUN.peers[::-1]},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_run_that_differs_in_anything_has_other_keys_and_refuses_old_announcements(
    what: str,
) -> None:
    other = replace(RUN, **CHANGES[what])
    with pytest.raises(BadAnnouncement):
        agree(other, 0, SECRETS[0], announced(), receiver=1)
    signers = LEDGERS[::-1] if what == "order of parties" else LEDGERS
    heard = [
        announce(other, place, each, table=TABLES[place], signer=signers[place])
        for place, each in enumerate(SECRETS)
    ]
    again = agree(other, 0, SECRETS[0], heard, receiver=1)
    assert again.mask_key(1) != schedules()[0].mask_key(1)


def test_rounds_attempts_receivers_tables_and_nonces_have_keys_of_their_own() -> None:
    heard = announced()
    made = [agree(RUN, 0, SECRETS[0], heard, receiver=place) for place in (None, 1, 2)]
    made += [agree(RUN, 0, SECRETS[0], heard, receiver=1, round_=1)]
    made += [agree(RUN, 0, SECRETS[0], heard, receiver=1, attempt=1)]
    for changed in (
        announce(RUN, 2, SECRETS[2], table=bytes(32), signer=LEDGERS[2]),
        announce(RUN, 2, replace(SECRETS[2], nonce=bytes(32)), table=TABLES[2], signer=LEDGERS[2]),
    ):
        made.append(agree(RUN, 0, SECRETS[0], [*heard[:2], changed], receiver=1))
    assert len({each.digest for each in made}) == len({each.mask_key(1) for each in made}) == 7


def hostile(kind: str) -> list[Announcement]:
    heard = announced()
    if kind == "key of the relay":
        own = RunSecrets.draw(shake("relay")).public_key()
        return [heard[0], replace(heard[1], public_key=own), heard[2]]
    if kind == "low order":
        return [heard[0], low_order(1), heard[2]]
    if kind == "swapped":
        return [heard[0], heard[2], heard[1]]
    if kind == "twice":
        twin = announce(RUN, 2, SECRETS[1], table=TABLES[2], signer=LEDGERS[2])
        return [heard[0], heard[1], twin]
    if kind == "short":
        return heard[:2]
    if kind == "cut nonce":
        return [heard[0], signed(1, SECRETS[1].public_key(), b"short"), heard[2]]
    # Rightly signed, and nobody else's: another draw of this party's own.
    other = RunSecrets.draw(shake("another draw"))
    return [announce(RUN, 0, other, table=TABLES[0], signer=LEDGERS[0]), *heard[1:]]


def signed(place: int, key: bytes, nonce: bytes) -> Announcement:
    bare = Announcement(key, nonce, TABLES[place], b"")
    return replace(bare, signature=LEDGERS[place].sign(bare.statement(RUN.digest(), place)))


def low_order(place: int) -> Announcement:
    return signed(place, bytes(32), bytes(32))


@pytest.mark.parametrize(
    "kind",
    ["key of the relay", "low order", "swapped", "twice", "short", "cut nonce", "not my key"],
)
def test_a_relay_cannot_bring_keys_of_its_own(kind: str) -> None:
    with pytest.raises(BadAnnouncement) as refused:
        agree(RUN, 0, SECRETS[0], hostile(kind), receiver=1)
    assert refused.value.code == "bad_announcement"


def body(values: IntArray) -> bytes:
    return words_to_bytes(values.astype(np.uint64))


def test_a_part_opens_for_its_receiver_and_has_its_public_size() -> None:
    sender, receiver, _ = schedules()
    sealed = seal(sender, 1, body(np.arange(4)), signer=LEDGERS[0])
    assert len(sealed) == 4 * 8 + SEAL_BYTES
    assert words_from_bytes(open_part(receiver, 0, sealed)).tolist() == [0, 1, 2, 3]
    assert sealed == seal(sender, 1, body(np.arange(4)), signer=LEDGERS[0])  # deterministic


@pytest.mark.parametrize("kind", ["bit", "cut", "place", "round", "signer", "reader"])
def test_a_part_that_is_not_its_partys_for_this_run_is_refused(kind: str) -> None:
    sender, receiver, third = schedules()
    signer = LEDGERS[2] if kind == "signer" else LEDGERS[0]
    if kind == "round":
        sender = schedules(round_=1)[0]
    sealed = seal(sender, 1, body(np.arange(4)), signer=signer)
    if kind == "bit":
        sealed = bytes([sealed[0] ^ 1]) + sealed[1:]
    if kind == "cut":
        sealed = sealed[:10]
    reader = third if kind == "reader" else receiver
    with pytest.raises(BadPart) as refused:
        open_part(reader, 2 if kind == "place" else 0, sealed)
    assert refused.value.code == "bad_part"


def test_a_run_that_cannot_hide_anything_is_refused() -> None:
    for peers in (RUN.peers[:1], RUN.peers[:1] * 2):
        with pytest.raises(ValueError, match="two"):
            replace(RUN, peers=peers)
    with pytest.raises(ValueError, match="positive"):
        replace(RUN, scale=0)
    with pytest.raises(ValueError, match="SHA-256"):
        replace(RUN, model=b"short")
