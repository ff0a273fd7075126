"""A masker's side of secure sums over a cohort (`masking.cohort`); no command offers it yet.

Privacy: semi-honest, holds if the named peers follow the protocol. Peers and their keys are pinned
by this party, never enrolled by the coordinator. A masker keeps no state but its ledger:

- every message passes the gate, so that it is stored before it leaves, and another message under
  the same key is refused for ever: one set of those who shared, one set of survivors, one kind of
  share of each peer, a round;
- clients are charged when the masked vector leaves, opened or not; nothing is refunded;
- its part of the noise is drawn by the gate, goes into the masked vector and nowhere else: what
  clients answer later follows from their rows and from published sums;
- the secrets of a round are made from the ledger's signature of the round's name, so that a retry
  has the same, another round others, and nothing must be kept. Whoever steals the ledger's key can
  open what was recorded.
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
    CohortRules,
    Shares,
    Survivors,
    agree_among,
    deal,
    opened,
)
from colonnade.masking.errors import BadPart
from colonnade.masking.masks import expand, mask, words_to_bytes
from colonnade.masking.schedule import Announcement, Run, RunSecrets, Schedule, announce
from colonnade.masking.sealing import open_part, seal
from colonnade.privacy.distributed import GaussianShare, MaskingMessage

KEY, SHARES, SHARED, MASKED = "cohort-key", "cohort-shares", "cohort-shared", "cohort-masked"
SURVIVORS, OPENED = "cohort-survivors", "cohort-opened"


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

    def announce(self, round_: int) -> Announcement:
        """Announce this party's key of a round."""
        made = announce(
            self.run, self.place, self._secrets(round_), table=self.table, signer=self.ledger
        )
        raw = made.public_key + made.nonce + made.table + made.signature
        self._send(KEY, round_, b"", lambda: raw)
        return made

    def share(self, round_: int, announced: Mapping[int, Announcement]) -> dict[int, bytes]:
        """Return, sealed to each who announced, shares of this party's key and self-mask."""
        schedule = self._schedule(round_, announced)
        places = self.rules.check(list(announced), "the set of those who announced")
        dealt = self._deal(round_, places)
        others = [place for place in places if place != self.place]

        def sealed() -> bytes:
            bodies = [
                seal(schedule, place, dealt[place].to_bytes(), signer=self.ledger)
                for place in others
            ]
            return b"".join(bodies)

        raw = self._send(SHARES, round_, schedule.digest, sealed)
        size = len(raw) // len(others)
        return {place: raw[at * size : (at + 1) * size] for at, place in enumerate(others)}

    def mask(
        self,
        round_: int,
        announced: Mapping[int, Announcement],
        sealed: Mapping[int, bytes],
        accounts: Sequence[str],
        mechanism: GaussianShare,
        compute: Callable[[Sequence[str]], IntArray],
    ) -> list[Released | Refusal]:
        """Release the masked sum over ``accounts``, each charged for itself.

        Parameters
        ----------
        sealed
            By sender: the shares for this party of all who shared. Masks are shared with them.
        compute
            Return the exact sum over those accounts that were paid for.
        """
        if mechanism.parts != self.rules.honest:
            raise ValueError("the noise is not divided as the cohort's rules say")
        schedule = self._schedule(round_, announced)
        held = self._held(round_, schedule, sealed)
        shared = self.rules.check([*held], "the set of those who shared")
        named = schedule.digest + struct.pack(f">{len(shared)}H", *shared)
        self._send(SHARED, round_, named, lambda: named)
        gone = [place for place in range(self.rules.maskers) if place not in held]
        own = self._own_seed(round_)

        def encode(noisy: IntArray) -> bytes:
            # Noise is inside before anything wraps.
            return words_to_bytes(mask(schedule, noisy, absent=gone) + expand(own, noisy.size))

        asked = named + self.table + "\0".join(accounts).encode()
        requests = [
            ReleaseRequest(
                ReleaseKey(self.job, round_, MASKED, account), mechanism, request_digest(asked)
            )
            for account in accounts
        ]
        return self.gate.release_sum(
            requests, lambda paid: compute([key.account for key in paid]), encode=encode
        )

    def confirm(
        self,
        round_: int,
        announced: Mapping[int, Announcement],
        shared: Sequence[int],
        masked: Sequence[int],
    ) -> bytes:
        """Sign who shared and who masked: one pair of sets a round."""
        survivors = self._survivors(round_, announced, shared, masked)
        if self.place not in survivors.masked:
            raise BadPart("the set of survivors leaves out a masker that is asked to confirm it")
        return self._send(
            SURVIVORS, round_, survivors.statement(), lambda: survivors.confirm(self.ledger)
        )

    def open(
        self,
        round_: int,
        announced: Mapping[int, Announcement],
        sealed: Mapping[int, bytes],
        masked: Sequence[int],
        signatures: Mapping[int, bytes],
    ) -> dict[int, bytes]:
        """Return one share of each who shared, if ``t`` survivors confirmed the same sets."""
        schedule = self._schedule(round_, announced)
        held = self._held(round_, schedule, sealed)
        survivors = self._survivors(round_, announced, [*held], masked)
        stored = self.ledger.stored(self._key(SURVIVORS, round_))
        if stored is None or stored.body != survivors.confirm(self.ledger):
            raise BadPart("this masker confirmed other survivors, or none")
        survivors.check(self.rules, self.run, signatures)
        shares = opened(survivors, held)
        raw = self._send(
            OPENED,
            round_,
            survivors.statement(),
            lambda: b"".join(share for _, share in sorted(shares.items())),
        )
        size = len(raw) // len(shares)
        return {place: raw[at * size : (at + 1) * size] for at, place in enumerate(sorted(shares))}

    def _survivors(
        self,
        round_: int,
        announced: Mapping[int, Announcement],
        shared: Sequence[int],
        masked: Sequence[int],
    ) -> Survivors:
        """Return the sets; those who shared must be whom this party masked with."""
        schedule = self._schedule(round_, announced)
        survivors = Survivors.of(self.rules, schedule.digest, shared, masked)
        stored = self.ledger.stored(self._key(SHARED, round_))
        those = struct.pack(f">{len(survivors.shared)}H", *survivors.shared)
        if stored is None or stored.body != schedule.digest + those:
            raise BadPart("this masker masked with other peers, or not at all")
        return survivors

    def _held(
        self, round_: int, schedule: Schedule, sealed: Mapping[int, bytes]
    ) -> dict[int, Shares]:
        """Return the shares that this party holds, its own among them."""
        held = {
            place: Shares.from_bytes(open_part(schedule, place, body))
            for place, body in sealed.items()
        }
        places = tuple(place for place, key in enumerate(schedule.public_keys) if key)
        held[self.place] = self._deal(round_, places)[self.place]
        return held

    def _deal(self, round_: int, places: Sequence[int]) -> dict[int, Shares]:
        private, own = self._secrets(round_).private, self._own_seed(round_)
        entropy = self._derive(round_, b"shares" + struct.pack(f">{len(places)}H", *places))
        return deal(self.rules, private, own, places, entropy)

    def _schedule(self, round_: int, announced: Mapping[int, Announcement]) -> Schedule:
        secrets = self._secrets(round_)
        return agree_among(self.run, self.place, secrets, announced, round_=round_)

    def _secrets(self, round_: int) -> RunSecrets:
        return RunSecrets(self._derive(round_, b"key"), self._derive(round_, b"nonce"))

    def _own_seed(self, round_: int) -> bytes:
        return self._derive(round_, b"self-mask")

    def _derive(self, round_: int, label: bytes) -> bytes:
        """Return 32 secret bytes that only the holder of the ledger's key can make."""
        name = struct.pack(">Q", round_) + self.run.digest() + self.job.encode() + b"\0" + label
        signed = self.ledger.sign(b"colonnade cohort secrets v1\0" + name)
        return hashlib.sha256(signed).digest()

    def _key(self, kind: str, round_: int) -> ReleaseKey:
        return ReleaseKey(self.job, round_, kind, self.account)

    def _send(self, kind: str, round_: int, request: bytes, make: Callable[[], bytes]) -> bytes:
        """Store a message and return it; another one under the same key is refused."""
        released = self.gate.release(
            self._key(kind, round_),
            kind.encode() + b"\0" + request,
            MaskingMessage(),
            lambda: np.frombuffer(make(), np.uint8).astype(np.int64),
            encode=lambda value: value.astype(np.uint8).tobytes(),
        )
        return released.body
