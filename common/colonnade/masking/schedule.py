"""The key schedule of a run of masked sums: one ephemeral exchange, bound to all that it is about.

Every party announces a fresh X25519 key and a nonce under the signature of its ledger's key, which
the others have pinned. A pair derives its keys from the exchange by HKDF (RFC 5869) with

    info = protocol label, direction, SHA-256 of (run, all announcements, receiver, round, attempt)

and the run names the request, the model, the ordered rows, the ordered parties with their pinned
keys, and the scale; an announcement names its party's table. Two runs that differ in any of these
share no key, so what was masked for one cannot be subtracted from what was masked for another.

Privacy: a relay learns nothing of the keys under the decisional Diffie-Hellman assumption on
Curve25519 in the random-oracle model (Bonawitz et al. 2017, theorem 6.2, for masks; Bernstein 2006
for the curve), if it does not hold the ledger's key of a party. A party that announces a key under
its own name shares masks with everybody, by design: what masks hide depends on how many parties are
honest, which their user states.

References
----------
Bonawitz et al. (2017), "Practical Secure Aggregation for Privacy-Preserving Machine Learning".
"""

import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from colonnade.ledger.receipts import Signer, verify
from colonnade.masking.errors import BadAnnouncement

KEY_BYTES = 32
NONCE_BYTES = 32
DIGEST_BYTES = 32
SIGNATURE_BYTES = 64
ANNOUNCEMENT_BYTES = KEY_BYTES + NONCE_BYTES + DIGEST_BYTES + SIGNATURE_BYTES


class Protocol(StrEnum):
    """What masks are for: no key of one protocol serves another."""

    PREDICT = "predict"
    COHORT = "cohort"


@dataclass(frozen=True, slots=True)
class Peer:
    """A party of a run, and the ledger's key that the others know it by."""

    party: str
    ledger_key: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is about. All of it is known to every party before it draws a key."""

    protocol: Protocol
    request: bytes  # as it was asked, verbatim
    model: bytes  # SHA-256
    rows: bytes  # SHA-256 of the ordered rows, or of nothing
    peers: tuple[Peer, ...]  # in the order that places count
    scale: int  # units of the masked integers

    def __post_init__(self) -> None:
        if len(self.model) != DIGEST_BYTES or len(self.rows) != DIGEST_BYTES:
            raise ValueError("model and rows are named by their SHA-256")
        if len({peer.party for peer in self.peers}) != len(self.peers) or len(self.peers) < 2:
            raise ValueError("a run has two or more parties of different names")
        if any(len(peer.ledger_key) != KEY_BYTES for peer in self.peers):
            raise ValueError("a ledger's key has 32 bytes")
        if not 0 < self.scale < 2**63:
            raise ValueError("a scale is a positive integer of 63 bits")

    def digest(self) -> bytes:
        """Return the SHA-256 of the run; fields have their lengths before them."""
        return _hash(
            b"colonnade masking run v1",
            self.protocol.encode(),
            hashlib.sha256(self.request).digest(),
            self.model,
            self.rows,
            struct.pack(">Q", self.scale),
            *(part for peer in self.peers for part in (peer.party.encode(), peer.ledger_key)),
        )


@dataclass(frozen=True, slots=True, repr=False)
class RunSecrets:
    """What a party draws for one run and erases with it."""

    private: bytes
    nonce: bytes

    @classmethod
    def draw(cls, entropy: Callable[[int], bytes] = os.urandom) -> "RunSecrets":
        """Draw a key and a nonce."""
        return cls(entropy(KEY_BYTES), entropy(NONCE_BYTES))

    def public_key(self) -> bytes:
        """Return the public half of the key."""
        return X25519PrivateKey.from_private_bytes(self.private).public_key().public_bytes_raw()


@dataclass(frozen=True, slots=True)
class Announcement:
    """A party's public contribution to the keys of a run, under its ledger's signature."""

    public_key: bytes
    nonce: bytes  # in a cohort, the public key of seals
    table: bytes  # SHA-256 of the table's version and alignment
    signature: bytes

    def to_bytes(self) -> bytes:
        """Return the wire form."""
        return self.public_key + self.nonce + self.table + self.signature

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Announcement":
        """Return the announcement in ``raw``."""
        if len(raw) != ANNOUNCEMENT_BYTES:
            raise BadAnnouncement("an announcement has another size")
        at = (KEY_BYTES, KEY_BYTES + NONCE_BYTES, KEY_BYTES + NONCE_BYTES + DIGEST_BYTES)
        return cls(raw[: at[0]], raw[at[0] : at[1]], raw[at[1] : at[2]], raw[at[2] :])

    def statement(self, run: bytes, place: int) -> bytes:
        """Return the bytes that are signed."""
        return b"".join(
            (
                b"colonnade masking key v1\0",
                run,
                struct.pack(">H", place),
                self.public_key,
                self.nonce,
                self.table,
            )
        )


def announce(
    run: Run,
    place: int,
    secrets: RunSecrets,
    *,
    table: bytes,
    signer: Signer,
    named: bytes | None = None,
) -> Announcement:
    """Announce a party's key; the same secrets announce the same bytes.

    ``named`` is what the key is announced for, if not for all of the run: one attempt of it.
    """
    unsigned = Announcement(secrets.public_key(), secrets.nonce, table, b"")
    signature = signer.sign(unsigned.statement(named or run.digest(), place))
    return Announcement(unsigned.public_key, unsigned.nonce, table, signature)


@dataclass(frozen=True, slots=True, repr=False)
class KeySchedule:
    """One party's keys of a run, for one round and attempt."""

    run: Run
    place: int
    digest: bytes  # of all that the keys are bound to
    public_keys: tuple[bytes, ...]
    private: bytes

    def mask_key(self, other: int) -> bytes:
        """Return the key of the mask stream that this party shares with ``other``."""
        if other == self.place:
            raise ValueError("a party shares no mask with itself")
        low, high = sorted((self.place, other))
        return self._derive(self.public_keys[other], b"mask", low, high)

    def seal_key(self, sender: int, receiver: int) -> bytes:
        """Return the key that seals the one part which ``sender`` sends to ``receiver``."""
        if sender == receiver or self.place not in (sender, receiver):
            raise ValueError("a seal is between this party and another")
        other = receiver if self.place == sender else sender
        return self._derive(self.public_keys[other], b"seal", sender, receiver)

    def _derive(self, public_key: bytes, direction: bytes, first: int, second: int) -> bytes:
        exchange = X25519PrivateKey.from_private_bytes(self.private).exchange(
            X25519PublicKey.from_public_bytes(public_key)
        )
        info = b"\0".join(
            (
                b"colonnade masking v1",
                self.run.protocol.encode(),
                direction + struct.pack(">HH", first, second),
                self.digest,
            )
        )
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(exchange)


def agree(
    run: Run,
    place: int,
    secrets: RunSecrets,
    announcements: Sequence[Announcement],
    *,
    receiver: int | None,
    round_: int = 0,
    attempt: int = 0,
) -> KeySchedule:
    """Return this party's keys, or refuse announcements that their parties did not sign.

    ``receiver`` is the place of the party to which parts are sealed; None if a sum is opened by
    whoever has all parts. Announcements serve all rounds and attempts of a run, which have keys of
    their own.
    """
    check_announcements(run, announcements)
    if announcements[place].public_key != secrets.public_key():
        raise BadAnnouncement("a run names another key for this party than it announced")
    keys = tuple(each.public_key for each in announcements)
    digest = _hash(
        b"colonnade masking keys v1",
        run.digest(),
        b"" if receiver is None else struct.pack(">H", receiver) + keys[receiver],
        struct.pack(">QQ", round_, attempt),
        *(part for each in announcements for part in (each.public_key, each.nonce, each.table)),
    )
    return KeySchedule(run, place, digest, keys, secrets.private)


def check_announcements(run: Run, announcements: Sequence[Announcement]) -> None:
    """Refuse announcements that are not one from each party, signed, with a key that exchanges."""
    if len(announcements) != len(run.peers):
        raise BadAnnouncement("a run has one key from each of its parties")
    if len({each.public_key for each in announcements}) != len(announcements):
        raise BadAnnouncement("two parties of a run announce one key")
    named = run.digest()
    probe = X25519PrivateKey.from_private_bytes(bytes(31) + b"\1")
    for place, (peer, each) in enumerate(zip(run.peers, announcements, strict=True)):
        sizes = (len(each.public_key), len(each.nonce), len(each.table))
        signed = verify(peer.ledger_key, each.signature, each.statement(named, place))
        if sizes != (KEY_BYTES, NONCE_BYTES, DIGEST_BYTES) or not signed:
            raise BadAnnouncement(f"the key of {peer.party} does not have its signature")
        try:  # a point of low order makes every exchange 0, which the library refuses
            probe.exchange(X25519PublicKey.from_public_bytes(each.public_key))
        except ValueError:
            raise BadAnnouncement(f"the key of {peer.party} serves no exchange") from None


def _hash(*parts: bytes) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        made.update(struct.pack(">Q", len(part)) + part)
    return made.digest()
