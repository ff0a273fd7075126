"""A masker's side of secure sums over a cohort (`masking.cohort`).

Privacy: semi-honest, holds if the named peers follow the protocol. Peers and their keys are pinned
by this party, never enrolled by the coordinator. A masker keeps no state but its ledger:

- every message passes the gate, so that it is stored before it leaves, and another message under
  the same key is refused for ever: one set of those who shared, one sum of one set of clients, one
  set of survivors, one kind of share of each peer, an attempt at a round;
- clients are charged when the masked vector leaves, opened or not; nothing is refunded;
- its part of the noise is drawn by the gate, goes into the masked vector and nowhere else: what
  clients answer later follows from their rows and from published sums;
- the secrets of an attempt are made from the ledger's signature of its name, so that a retry
  has the same, another attempt others, and nothing must be kept. They are this ledger's: one that
  recovers a lost one with the same key may not know what was masked, and has others. Whoever
  steals the ledger's key can open what was recorded.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.ledger.drafts import ReleaseRequest
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate, request_digest
from colonnade.ledger.ledger import Ledger, Released
from colonnade.ledger.state import Refusal
from colonnade.masking.cohort import (
    SEALED_BYTES,
    Attempt,
    SecretShares,
    Survivors,
    agree_among,
    bind,
    by_place,
    deal,
    in_places,
    opened,
    seals_of,
)
from colonnade.masking.errors import BadPart
from colonnade.masking.kinds import KEY, OPENED, SHARES, SURVIVORS
from colonnade.masking.masks import expand, mask, words_to_bytes
from colonnade.masking.rules import CohortRules
from colonnade.masking.schedule import Announcement, KeySchedule, Run, RunSecrets, announce
from colonnade.masking.sealing import open_part, seal
from colonnade.masking.shamir import SHARE_BYTES
from colonnade.privacy.distributed import GaussianShare, MaskingMessage

SHARED, MASKED = "cohort-shared", "cohort-masked"  # the first never leaves


@dataclass(frozen=True, slots=True)
class CohortMember:
    """One masker of a job.

    Parameters
    ----------
    run
        What is summed, and the pinned peers.
    table
        SHA-256 of the version of this party's rows.
    account
        Under which messages are kept: one of the job's, for what is free needs an admission too.
    """

    rules: CohortRules
    run: Run
    place: int
    job: str
    table: bytes
    gate: Gate
    ledger: Ledger
    account: str

    def announce(self, at: Attempt) -> Announcement:
        """Announce this party's key of a round."""
        made = announce(
            self.run,
            self.place,
            self._secrets(at),
            table=self.table,
            signer=self.ledger,
            named=at.named(self.run),
        )
        self._send(KEY, at, at.named(self.run), made.to_bytes)
        return made

    def share(self, at: Attempt, announced: Mapping[int, Announcement]) -> dict[int, bytes]:
        """Return, sealed to each who announced, shares of this party's key and self-mask."""
        seals = self._seals(at, announced)
        places = self.rules.check(list(announced), "the set of those who announced")
        dealt = self._deal(at, places)
        others = [place for place in places if place != self.place]

        def sealed() -> bytes:
            bodies = {
                place: seal(seals, place, dealt[place].to_bytes(), signer=self.ledger)
                for place in others
            }
            return in_places(bodies, self.rules.maskers, SEALED_BYTES)

        raw = self._send(SHARES, at, seals.digest, sealed)
        return by_place(raw, others, SEALED_BYTES)

    def mask(
        self,
        at: Attempt,
        announced: Mapping[int, Announcement],
        sealed: Mapping[int, bytes],
        accounts: Sequence[str],
        mechanism: GaussianShare,
        compute: Callable[[Sequence[str]], IntArray],
        *,
        request: bytes,
        kind: str = MASKED,
    ) -> list[Released | Refusal]:
        """Release the masked sum over ``accounts``, each charged for itself.

        Parameters
        ----------
        sealed
            By sender: the shares for this party of all who shared. Masks are shared with them.
        compute
            Return the exact sum over those accounts that were paid for.
        request
            What the clients are asked; the ledger binds the sum to it.
        kind
            Of the release.
        """
        if mechanism.parts != self.rules.honest:
            raise ValueError("the noise is not divided as the cohort's rules say")
        schedule = self._schedule(at, announced)
        held = self._held(at, announced, sealed)
        shared = self.rules.check([*held], "the set of those who shared")
        schedule = bind(schedule, shared)
        named = schedule.digest
        gone = [place for place in range(self.rules.maskers) if place not in held]
        own = self._own_seed(at)

        def encode(noisy: IntArray) -> bytes:
            # Noise is inside before anything wraps.
            return words_to_bytes(mask(schedule, noisy, absent=gone) + expand(own, noisy.size))

        asked = named + self.table + hashlib.sha256(request).digest() + "\0".join(accounts).encode()
        # Bound to who is asked: a second sum, of others, would have the masks of the first.
        self._send(SHARED, at, kind.encode() + b"\0" + asked, lambda: named)
        requests = [
            ReleaseRequest(
                ReleaseKey(self.job, at.number, kind, account), mechanism, request_digest(asked)
            )
            for account in accounts
        ]
        return self.gate.release_sum(
            requests, lambda paid: compute([key.account for key in paid]), encode=encode
        )

    def confirm(
        self,
        at: Attempt,
        announced: Mapping[int, Announcement],
        shared: Sequence[int],
        masked: Sequence[int],
    ) -> bytes:
        """Sign who shared and who masked: one pair of sets a round."""
        survivors = self._survivors(at, announced, shared, masked)
        if self.place not in survivors.masked:
            raise BadPart("the set of survivors leaves out a masker that is asked to confirm it")
        return self._send(
            SURVIVORS, at, survivors.statement(), lambda: survivors.confirm(self.ledger)
        )

    def open(
        self,
        at: Attempt,
        announced: Mapping[int, Announcement],
        sealed: Mapping[int, bytes],
        masked: Sequence[int],
        signatures: Mapping[int, bytes],
    ) -> dict[int, bytes]:
        """Return one share of each who shared, if ``t`` survivors confirmed the same sets."""
        held = self._held(at, announced, sealed)
        survivors = self._survivors(at, announced, [*held], masked)
        stored = self.ledger.stored(self._key(SURVIVORS, at))
        if stored is None or stored.body != survivors.confirm(self.ledger):
            raise BadPart("this masker confirmed other survivors, or none")
        survivors.check(self.rules, self.run, signatures)
        shares = opened(survivors, held)
        raw = self._send(
            OPENED,
            at,
            survivors.statement(),
            lambda: in_places(shares, self.rules.maskers, SHARE_BYTES),
        )
        return by_place(raw, [*shares], SHARE_BYTES)

    def _survivors(
        self,
        at: Attempt,
        announced: Mapping[int, Announcement],
        shared: Sequence[int],
        masked: Sequence[int],
    ) -> Survivors:
        """Return the sets; those who shared must be whom this party masked with."""
        schedule = self._schedule(at, announced)
        digest = bind(schedule, sorted(shared)).digest
        survivors = Survivors.of(self.rules, digest, shared, masked)
        stored = self.ledger.stored(self._key(SHARED, at))
        if stored is None or stored.body != digest:
            raise BadPart("this masker masked with other peers, or not at all")
        return survivors

    def _held(
        self, at: Attempt, announced: Mapping[int, Announcement], sealed: Mapping[int, bytes]
    ) -> dict[int, SecretShares]:
        """Return the shares that this party holds, its own among them."""
        seals = self._seals(at, announced)
        held = {
            place: SecretShares.from_bytes(open_part(seals, place, body))
            for place, body in sealed.items()
        }
        held[self.place] = self._deal(at, sorted(announced))[self.place]
        return held

    def _deal(self, at: Attempt, places: Sequence[int]) -> dict[int, SecretShares]:
        private, own = self._secrets(at).private, self._own_seed(at)
        entropy = self._derive(at, b"shares" + struct.pack(f">{len(places)}H", *places))
        return deal(self.rules, private, own, places, entropy)

    def _schedule(self, at: Attempt, announced: Mapping[int, Announcement]) -> KeySchedule:
        secrets = self._secrets(at)
        return agree_among(self.run, self.place, secrets, announced, at=at)

    def _seals(self, at: Attempt, announced: Mapping[int, Announcement]) -> KeySchedule:
        return seals_of(self._schedule(at, announced), self._derive(at, b"seal"), announced)

    def _secrets(self, at: Attempt) -> RunSecrets:
        """Return the key of masks, and as a nonce the public key of seals."""
        seals = RunSecrets(self._derive(at, b"seal"), b"").public_key()
        return RunSecrets(self._derive(at, b"key"), seals)

    def _own_seed(self, at: Attempt) -> bytes:
        return self._derive(at, b"self-mask")

    def _derive(self, at: Attempt, label: bytes) -> bytes:
        """Return 32 secret bytes that only the holder of the ledger's key can make."""
        ledger = bytes.fromhex(self.ledger.opened.ledger_id)
        name = ledger + at.named(self.run) + self.job.encode() + b"\0" + label
        signed = self.ledger.sign(b"colonnade cohort secrets v2\0" + name)
        return hashlib.sha256(signed).digest()

    def _key(self, kind: str, at: Attempt) -> ReleaseKey:
        return ReleaseKey(self.job, at.number, kind, self.account)

    def _send(self, kind: str, at: Attempt, request: bytes, make: Callable[[], bytes]) -> bytes:
        """Store a message and return it; another one under the same key is refused."""
        released = self.gate.release(
            self._key(kind, at),
            kind.encode() + b"\0" + request,
            MaskingMessage(),
            lambda: np.frombuffer(make(), np.uint8).astype(np.int64),
            encode=lambda value: value.astype(np.uint8).tobytes(),
        )
        return released.body
