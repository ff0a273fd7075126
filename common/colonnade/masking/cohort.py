"""Secure aggregation over a cohort with dropouts: who must be there, adds what, may open what.

Maskers (hosts, and parties of one client) add up their clients' clipped integer vectors, add their
part of the noise and mask the result pairwise and with a mask of their own (Bonawitz et al. 2017).
Of ``n`` maskers at most ``c`` collude with the coordinator. A round has five exchanges:

1. *announce*: two fresh X25519 keys, one for masks and one for seals, signed by the pinned ledger
   key for this run, round and attempt;
2. *share*: the private key of masks and the seed of the self-mask, split so that ``t`` shares give
   them back, each share sealed to its holder;
3. *mask*: the masked vector; here, and only here, clients are charged;
4. *confirm*: a signature over who shared and who masked;
5. *open*: with ``t`` equal confirmations, for everybody who masked a share of the self-mask, for
   everybody who shared and did not mask a share of the key. Never both.

Privacy: semi-honest, by policy. If the named peers follow the protocol and at most ``c`` of them
tell the coordinator what they know, it learns the sum over the clients of at least ``t`` maskers
with the noise of at least ``t - c`` honest ones, and nothing else (Bonawitz et al. 2017, theorem
6.3, in the random-oracle model under the decisional Diffie-Hellman assumption). Why each number:

- ``t >= floor((n + c) / 2) + 1``: honest maskers confirm one pair of sets a round, so two different
  pairs would need ``2 (t - c) <= n - c`` confirmations of them. Sums over two sets of survivors
  would subtract to one masker under its own noise, and different drop-outs named to different
  maskers would collect both kinds of shares of one.
- ``t - c >= 3``: below that a colluding neighbour subtracts itself and is left with hardly anybody.
- Each adds a discrete Gaussian of variance ``sigma**2 / (t - c)``, so that whoever is missing or
  colludes, up to the bounds, the sum has what is promised (`privacy.distributed`).

Two keys. A masker that is said to be gone has its key of masks opened. If that opened seals too,
the coordinator, which passes them on, would read the shares of its self-mask, and a masked vector
that came late would be bare. So keys of seals are never shared (Bonawitz et al. 2017, figure 4). In
the announcement they have the place of the nonce: a fresh key is one.

What binds a round together. An announcement is signed for one attempt at one round of one run, so
that an old one serves no other. Seals are bound to all announcements. Masks are bound to these and
to the set of those who shared (`bind`): masks of maskers that were shown
different sets or keys do not cancel, so what a coordinator adds up of them is uniform.

References
----------
Bonawitz et al. (2017), "Practical Secure Aggregation for Privacy-Preserving Machine Learning".
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from colonnade.ledger.receipts import Signer, verify
from colonnade.masking.errors import BadAnnouncement, BadPart
from colonnade.masking.masks import Words, expand
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import (
    DIGEST_BYTES,
    KEY_BYTES,
    NONCE_BYTES,
    Announcement,
    KeySchedule,
    Run,
    RunSecrets,
)
from colonnade.masking.sealing import SEAL_BYTES
from colonnade.masking.shamir import SHARE_BYTES, combine, split

# What one masker seals for another: shares of its key and of its self-mask.
SEALED_BYTES = 2 * SHARE_BYTES + SEAL_BYTES


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one round of a job; no two attempts of a job have one number."""

    round: int
    number: int

    def named(self, run: Run) -> bytes:
        """Return the digest that all keys and confirmations of the attempt are bound to."""
        numbers = struct.pack(">QQ", self.round, self.number)
        return hashlib.sha256(b"colonnade cohort attempt v3\0" + run.digest() + numbers).digest()


def check_announced(run: Run, at: Attempt, place: int, each: Announcement) -> None:
    """Refuse an announcement that its party did not sign for this attempt, or that is no key."""
    peer = run.peers[place]
    sizes = (len(each.public_key), len(each.nonce), len(each.table))
    if sizes != (KEY_BYTES, NONCE_BYTES, DIGEST_BYTES) or not verify(
        peer.ledger_key, each.signature, each.statement(at.named(run), place)
    ):
        raise BadAnnouncement(f"the key of {peer.party} does not have its signature")
    probe = X25519PrivateKey.from_private_bytes(bytes(31) + b"\1")
    try:  # a point of low order makes every exchange 0, which the library refuses
        for key in (each.public_key, each.nonce):
            probe.exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        raise BadAnnouncement(f"the key of {peer.party} serves no exchange") from None


def round_digest(run: Run, announced: Mapping[int, Announcement], *, at: Attempt) -> bytes:
    """Return what the keys of an attempt are bound to, or refuse its announcements."""
    made = hashlib.sha256(b"colonnade masking cohort v3\0" + at.named(run))
    for place, each in sorted(announced.items()):
        if not 0 <= place < len(run.peers):
            raise BadAnnouncement("a key is of nobody on the roster")
        check_announced(run, at, place, each)
        made.update(struct.pack(">H", place) + each.public_key + each.nonce + each.table)
    keys = {key for each in announced.values() for key in (each.public_key, each.nonce)}
    if len(keys) != 2 * len(announced):
        raise BadAnnouncement("two parties of a run announce one key, or one for two uses")
    return made.digest()


def agree_among(
    run: Run,
    place: int,
    secrets: RunSecrets,
    announced: Mapping[int, Announcement],
    *,
    at: Attempt,
) -> KeySchedule:
    """Return the masks' keys of an attempt among those who announced, or refuse these.

    As `schedule.agree`, for a part of the roster: the digest names who is there.
    """
    digest = round_digest(run, announced, at=at)
    keys = tuple(
        announced[other].public_key if other in announced else b""
        for other in range(len(run.peers))
    )
    if place not in announced or keys[place] != secrets.public_key():
        raise BadAnnouncement("a run names another key for this party than it announced")
    return KeySchedule(run, place, digest, keys, secrets.private)


def seals_of(
    schedule: KeySchedule, private: bytes, announced: Mapping[int, Announcement]
) -> KeySchedule:
    """Return the seals' keys of an attempt; ``private`` is never shared."""
    keys = tuple(
        announced[other].nonce if other in announced else b""
        for other in range(len(schedule.run.peers))
    )
    return replace(schedule, public_keys=keys, private=private)


def masks_digest(digest: bytes, shared: Sequence[int]) -> bytes:
    """Return what masks among those who ``shared`` are bound to, by the digest of all keys."""
    places = struct.pack(f">H{len(shared)}H", len(shared), *shared)
    return hashlib.sha256(b"colonnade cohort masks v3\0" + digest + places).digest()


def bind(schedule: KeySchedule, shared: Sequence[int]) -> KeySchedule:
    """Return the keys of masks among those who ``shared``: another set has other masks."""
    return replace(schedule, digest=masks_digest(schedule.digest, shared))


@dataclass(frozen=True, slots=True)
class SecretShares:
    """What one masker holds of another: a share of its key, and one of its self-mask's seed."""

    key: bytes
    seed: bytes

    def to_bytes(self) -> bytes:
        """Return the form in which they are sealed."""
        return self.key + self.seed

    @classmethod
    def from_bytes(cls, raw: bytes) -> "SecretShares":
        """Return the shares in ``raw``."""
        if len(raw) != 2 * SHARE_BYTES:
            raise BadPart("sealed shares have another size")
        return cls(raw[:SHARE_BYTES], raw[SHARE_BYTES:])


def in_places(bodies: Mapping[int, bytes], count: int, size: int) -> bytes:
    """Return bodies of one size one after the other, zeros for who has none: a public length."""
    return b"".join(bodies.get(place, bytes(size)) for place in range(count))


def by_place(raw: bytes, places: Sequence[int], size: int) -> dict[int, bytes]:
    """Return the bodies of ``places``."""
    return {place: raw[place * size : (place + 1) * size] for place in sorted(places)}


def deal(
    rules: CohortRules, private: bytes, seed: bytes, places: Sequence[int], entropy: bytes
) -> dict[int, SecretShares]:
    """Return everybody's shares of a key and of a seed; the same ``entropy`` deals the same."""
    key = split(private, rules.threshold, places, entropy + b"key")
    own = split(seed, rules.threshold, places, entropy + b"seed")
    return {place: SecretShares(key[place], own[place]) for place in places}


@dataclass(frozen=True, slots=True)
class Survivors:
    """Who shared and who masked, in a round of a run: what maskers confirm, once."""

    digest: bytes  # of the masks' schedule: names the attempt, all keys and who shared
    shared: tuple[int, ...]
    masked: tuple[int, ...]

    @classmethod
    def of(
        cls, rules: CohortRules, digest: bytes, shared: Sequence[int], masked: Sequence[int]
    ) -> "Survivors":
        """Return the sets, or refuse them."""
        those = rules.check(shared, "the set of those who shared")
        rest = rules.check(masked, "the set of survivors")
        if not {*rest} <= {*those}:
            raise BadPart("somebody masked who did not share")
        return cls(digest, those, rest)

    def statement(self) -> bytes:
        """Return the bytes that are signed."""
        places = struct.pack(f">H{len(self.shared)}H", len(self.shared), *self.shared)
        places += struct.pack(f">H{len(self.masked)}H", len(self.masked), *self.masked)
        return b"colonnade cohort survivors v3\0" + self.digest + places

    def confirm(self, signer: Signer) -> bytes:
        """Return a masker's signature over both sets."""
        return signer.sign(self.statement())

    def check(self, rules: CohortRules, run: Run, signatures: Mapping[int, bytes]) -> None:
        """Refuse to open unless ``t`` survivors confirmed exactly these sets."""
        statement = self.statement()
        signed = {
            place
            for place, signature in signatures.items()
            if place in self.masked and verify(run.peers[place].ledger_key, signature, statement)
        }
        if len(signed) < rules.threshold:
            raise BadPart(
                f"{len(signed)} maskers confirmed the survivors and {rules.threshold} must"
            )


def opened(survivors: Survivors, held: Mapping[int, SecretShares]) -> dict[int, bytes]:
    """Return one share of each masker: of its seed if it masked, of its key if it did not."""
    return {
        place: held[place].seed if place in survivors.masked else held[place].key
        for place in survivors.shared
        if place in held
    }


def unmask(
    rules: CohortRules,
    run: Run,
    survivors: Survivors,
    announced: Mapping[int, Announcement],
    parts: Mapping[int, Words],
    shares: Mapping[int, Mapping[int, bytes]],
) -> Words:
    """Return the sum modulo 2**64 of what the survivors masked.

    Parameters
    ----------
    shares
        By holder: what each opened of every masker. ``t`` of each are needed.
    """
    total = np.zeros(next(iter(parts.values())).size, np.uint64)
    for place in survivors.masked:
        total += parts[place]
    for place in survivors.shared:
        held = {holder: mine[place] for holder, mine in shares.items() if place in mine}
        if len(held) < rules.threshold:
            raise BadPart(f"{len(held)} shares were opened and {rules.threshold} are needed")
        secret = combine(held, rules.threshold)
        if place in survivors.masked:
            total -= expand(secret, total.size)
        else:
            total -= _masks_of(run, survivors, announced, place, secret, total.size)
    return total


def _masks_of(
    run: Run,
    survivors: Survivors,
    announced: Mapping[int, Announcement],
    gone: int,
    private: bytes,
    size: int,
) -> Words:
    """Return what the survivors added for a masker that is gone."""
    keys = tuple(
        announced[place].public_key if place in announced else b""
        for place in range(len(run.peers))
    )
    schedule = KeySchedule(run, gone, survivors.digest, keys, private)
    added = np.zeros(size, np.uint64)
    for place in survivors.masked:
        stream = expand(schedule.mask_key(place), size)
        if place < gone:
            added += stream
        else:
            added -= stream
    return added
