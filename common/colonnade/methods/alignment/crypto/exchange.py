"""Keys that two parties share in one run, and what they seal with them.

Every party sends a fresh X25519 key under its ledger's signature, and the word of its certificate
that it takes part in this run, whose name covers the ledgers' keys of all parties. So whoever
writes a specification cannot take a peer's place in it with a key of its own. A pair derives from
the exchange a key for boxes, one for canaries and one for MACs, bound to the run, the two places
and both public keys (HKDF, RFC 5869). The coordinator, which relays all of this, can read none of
it.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from colonnade.core.errors import BadIdentity, CertificateExpired
from colonnade.ledger.receipts import Signer, verify
from colonnade.methods.alignment.crypto.dummies import SEED_BYTES, PatternDummies, patterns_led_by
from colonnade.methods.alignment.crypto.points import check_points, points_from_bytes
from colonnade.methods.alignment.refusals import BrokenChain, ListTooLong
from colonnade.methods.alignment.sizes import ATTESTATION_BYTES
from colonnade.methods.alignment.spec import KEY_BYTES, AlignmentSpec


class Attestor(Protocol):
    """Signs as a member of the federation, and knows who else is one."""

    def attest(self, statement: bytes, /) -> bytes:
        """Return `ATTESTATION_BYTES` that show who signed ``statement``."""

    def check(self, attestation: bytes, statement: bytes, /, *, party: str) -> None:
        """Refuse what ``party`` did not sign with `BadIdentity`."""


class Unattested:
    """Where nobody has a certificate: runs in one process, and plaintext on one machine."""

    def attest(self, statement: bytes, /) -> bytes:
        """Return zeros."""
        del statement
        return bytes(ATTESTATION_BYTES)

    def check(self, attestation: bytes, statement: bytes, /, *, party: str) -> None:
        """Take anything."""


_NONCE = bytes(12)  # a box's key seals one box only


@dataclass(frozen=True, slots=True)
class SignedKey:
    """A party's key for exchanges, under its signature."""

    public_key: bytes
    signature: bytes
    attestation: bytes = b""


@dataclass(frozen=True, slots=True)
class SignedCount:
    """The length of a party's list, under its signature."""

    count: int
    signature: bytes


@dataclass(frozen=True, slots=True, repr=False)
class PairKeys:
    """What two parties share in one run."""

    box: bytes
    canary: bytes
    mac: bytes


def _key_statement(run: bytes, place: int, public_key: bytes) -> bytes:
    return b"colonnade alignment key v1\0" + run + struct.pack(">H", place) + public_key


def _place_statement(run: bytes, place: int) -> bytes:
    return b"colonnade alignment place v1\0" + run + struct.pack(">H", place)


def _count_statement(run: bytes, place: int, count: int) -> bytes:
    return b"colonnade alignment count v1\0" + run + struct.pack(">HQ", place, count)


def sign_key(
    signer: Signer, attestor: Attestor, run: bytes, place: int, public_key: bytes
) -> SignedKey:
    """Sign a key for exchanges, and the place in the run with the party's certificate."""
    signature = signer.sign(_key_statement(run, place, public_key))
    return SignedKey(public_key, signature, attestor.attest(_place_statement(run, place)))


def sign_count(signer: Signer, run: bytes, place: int, count: int) -> SignedCount:
    """Sign the length of a list."""
    return SignedCount(count, signer.sign(_count_statement(run, place, count)))


def check_keys(spec: AlignmentSpec, run: bytes, keys: Sequence[SignedKey]) -> None:
    """Refuse keys that their parties did not sign."""
    if len(keys) != spec.n_parties:
        raise BrokenChain("a task names another number of keys than the alignment has parties")
    for place, key in enumerate(keys):
        check_key(spec, run, place, key)


def check_key(spec: AlignmentSpec, run: bytes, place: int, key: SignedKey) -> None:
    """Refuse a key that its party did not sign, or that would make an exchange fail."""
    part = spec.parts[place]
    statement = _key_statement(run, place, key.public_key)
    if len(key.public_key) != KEY_BYTES or not verify(part.public_key, key.signature, statement):
        raise BrokenChain(f"the key of {part.party} does not have its signature")
    check_points(points_from_bytes(key.public_key))


def check_attestations(
    spec: AlignmentSpec, run: bytes, keys: Sequence[SignedKey], attestor: Attestor
) -> None:
    """Refuse a run in which somebody else stands in a party's place.

    Privacy: a coordinator that could sign for the peers would have a dictionary of its own
    multiplied as a peer's list, and learn who is on this party's (`methods.alignment.dummies`
    protects against the coordinator alone, not against the coordinator with a party).
    """
    for place, (part, key) in enumerate(zip(spec.parts, keys, strict=True)):
        try:
            attestor.check(key.attestation, _place_statement(run, place), party=part.party)
        except (BadIdentity, CertificateExpired):
            raise BrokenChain(
                f"no certificate of {part.party} says that it takes part; the specification may "
                "name a key that is not that party's"
            ) from None


def check_counts(spec: AlignmentSpec, run: bytes, counts: Sequence[SignedCount]) -> None:
    """Refuse lengths that their owners did not sign, or may not have."""
    if len(counts) != spec.n_parties:
        raise BrokenChain("a task names another number of lists than the alignment has parties")
    for place, count in enumerate(counts):
        check_count(spec, run, place, count)


def check_count(spec: AlignmentSpec, run: bytes, place: int, count: SignedCount) -> None:
    """Refuse a length that its owner did not sign, or may not have."""
    part, most = spec.parts[place], spec.max_count(place)
    if not verify(part.public_key, count.signature, _count_statement(run, place, count.count)):
        raise BrokenChain(f"the length of the list of {part.party} does not have its signature")
    if not spec.n_canaries < count.count <= most:
        raise ListTooLong(
            f"the list of {part.party} has {count.count} points; the specification allows "
            f"{spec.n_canaries + 1} to {most}"
        )


def pair_keys(private: bytes, run: bytes, keys: Sequence[bytes], mine: int, other: int) -> PairKeys:
    """Return what the parties at two places share."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(
        X25519PublicKey.from_public_bytes(keys[other])
    )
    low, high = sorted((mine, other))
    info = b"colonnade alignment pair v1\0" + struct.pack(">HH", low, high) + keys[low] + keys[high]
    made = HKDF(algorithm=SHA256(), length=96, salt=run, info=info).derive(shared)
    return PairKeys(made[:32], made[32:64], made[64:])


def public_half(private: bytes) -> bytes:
    """Return the public half of a key for exchanges."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def seal_dummies(pair: PairKeys, dummies: Sequence[PatternDummies], receiver: int) -> bytes:
    """Seal to ``receiver`` the dummies of the sets that it is in."""
    entries = (d.seed + struct.pack(">I", d.count) for d in dummies if d.pattern >> receiver & 1)
    return ChaCha20Poly1305(pair.box).encrypt(_NONCE, b"".join(entries), None)


def open_dummies(
    pair: PairKeys, box: bytes, spec: AlignmentSpec, *, sender: int, receiver: int
) -> tuple[PatternDummies, ...]:
    """Open the box of an earlier party; refuse one that was altered or asks for too many."""
    led = patterns_led_by(sender, spec.n_parties)
    patterns = [pattern for pattern in led if pattern >> receiver & 1]
    try:
        plain = ChaCha20Poly1305(pair.box).decrypt(_NONCE, box, None)
    except InvalidTag:
        raise BrokenChain(
            f"the box from {spec.parts[sender].party} was altered on its way"
        ) from None
    width = SEED_BYTES + 4
    if len(plain) != width * len(patterns):
        raise BrokenChain(f"the box from {spec.parts[sender].party} has another size than it must")
    opened = []
    for at, pattern in enumerate(patterns):
        entry = plain[at * width : (at + 1) * width]
        dummies = PatternDummies(pattern, entry[:SEED_BYTES], int.from_bytes(entry[SEED_BYTES:]))
        if dummies.count > spec.noise.most:
            raise ListTooLong(f"{spec.parts[sender].party} asks for too many dummies")
        opened.append(dummies)
    return tuple(opened)
