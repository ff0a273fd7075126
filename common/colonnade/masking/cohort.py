"""Secure sums over a cohort: who must be there, what each adds, and who may open what.

Maskers (hosts, and parties of one client) add up their clients' clipped integer vectors, add their
part of the noise and mask the result pairwise and with a mask of their own (Bonawitz et al. 2017).
Of ``n`` maskers at most ``c`` collude with the coordinator. A round has five exchanges:

1. *announce*: a fresh X25519 key, signed by the pinned ledger key;
2. *share*: the private key and the seed of the self-mask, split so that ``t`` shares give them
   back, each share sealed to its holder;
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

References
----------
Bonawitz et al. (2017), "Practical Secure Aggregation for Privacy-Preserving Machine Learning".
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from colonnade.ledger.receipts import Signer, verify
from colonnade.masking.errors import BadAnnouncement, BadPart
from colonnade.masking.masks import Words, expand
from colonnade.masking.schedule import (
    Announcement,
    Run,
    RunSecrets,
    Schedule,
)
from colonnade.masking.shamir import SHARE_BYTES, combine, split

SEED_BYTES = 32
_SIGNATURE_BYTES = 64
_MIN_HONEST = 3


@dataclass(frozen=True, slots=True)
class CohortRules:
    """How many maskers there are, and how many of them may collude with the coordinator."""

    maskers: int
    colluding: int

    def __post_init__(self) -> None:
        if not 0 <= self.colluding < self.maskers <= 2**10:
            raise ValueError("a cohort has up to 1024 maskers, not all of which collude")
        if self.threshold > self.maskers or self.honest < _MIN_HONEST:
            raise ValueError(
                f"{self.maskers} maskers with {self.colluding} that may collude are too few: "
                "three honest ones must be in every sum"
            )

    @property
    def threshold(self) -> int:
        """``t``: below so many survivors nothing opens."""
        return (self.maskers + self.colluding) // 2 + 1

    @property
    def honest(self) -> int:
        """``t - c``: how many parts of the noise every sum has at least."""
        return self.threshold - self.colluding

    def check(self, places: Sequence[int], what: str) -> tuple[int, ...]:
        """Return ``places`` in order, or refuse them: too few, unknown or named twice."""
        ordered = tuple(sorted(places))
        if len(set(ordered)) != len(ordered) or not all(0 <= p < self.maskers for p in ordered):
            raise BadPart(f"{what} names a masker twice, or one that is not on the roster")
        if len(ordered) < self.threshold:
            raise BadPart(
                f"{what} has {len(ordered)} maskers and needs {self.threshold}; nothing opens"
            )
        return ordered


def agree_among(
    run: Run,
    place: int,
    secrets: RunSecrets,
    announced: Mapping[int, Announcement],
    *,
    round_: int,
) -> Schedule:
    """Return the keys of one round among those who announced, or refuse their announcements.

    As `schedule.agree`, for a part of the roster: the digest names who is there.
    """
    named = run.digest()
    probe = X25519PrivateKey.from_private_bytes(bytes(31) + b"\1")
    made = hashlib.sha256(b"colonnade masking cohort v1\0" + named + struct.pack(">Q", round_))
    keys = [b""] * len(run.peers)
    for other, each in sorted(announced.items()):
        peer = run.peers[other]
        if not verify(peer.ledger_key, each.signature, each.statement(named, other)):
            raise BadAnnouncement(f"the key of {peer.party} does not have its signature")
        try:  # a point of low order makes every exchange 0, which the library refuses
            probe.exchange(X25519PublicKey.from_public_bytes(each.public_key))
        except ValueError:
            raise BadAnnouncement(f"the key of {peer.party} serves no exchange") from None
        made.update(struct.pack(">H", other) + each.public_key + each.nonce + each.table)
        keys[other] = each.public_key
    present = [key for key in keys if key]
    if len(set(present)) != len(present):
        raise BadAnnouncement("two parties of a run announce one key")
    if place not in announced or keys[place] != secrets.public_key():
        raise BadAnnouncement("a run names another key for this party than it announced")
    return Schedule(run, place, made.digest(), tuple(keys), secrets.private)


@dataclass(frozen=True, slots=True)
class Shares:
    """What one masker holds of another: a share of its key, and one of its self-mask's seed."""

    key: bytes
    seed: bytes

    def to_bytes(self) -> bytes:
        """Return the form in which they are sealed."""
        return self.key + self.seed

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Shares":
        """Return the shares in ``raw``."""
        if len(raw) != 2 * SHARE_BYTES:
            raise BadPart("sealed shares have another size")
        return cls(raw[:SHARE_BYTES], raw[SHARE_BYTES:])


def deal(
    rules: CohortRules, private: bytes, seed: bytes, places: Sequence[int], entropy: bytes
) -> dict[int, Shares]:
    """Return everybody's shares of a key and of a seed; the same ``entropy`` deals the same."""
    key = split(private, rules.threshold, places, entropy + b"key")
    own = split(seed, rules.threshold, places, entropy + b"seed")
    return {place: Shares(key[place], own[place]) for place in places}


@dataclass(frozen=True, slots=True)
class Survivors:
    """Who shared and who masked, in a round of a run: what maskers confirm, once."""

    digest: bytes  # of the round's schedule
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
        return b"colonnade cohort survivors v1\0" + self.digest + places

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


def opened(survivors: Survivors, held: Mapping[int, Shares]) -> dict[int, bytes]:
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
    schedule = Schedule(run, gone, survivors.digest, keys, private)
    added = np.zeros(size, np.uint64)
    for place in survivors.masked:
        stream = expand(schedule.mask_key(place), size)
        if place < gone:
            added += stream
        else:
            added -= stream
    return added
