"""The frozen specification of a prediction, and what follows from it: rounds, sizes, keys.

Round 0 announces keys. In round ``r`` from 1 on every party but the receiver sends its part of
chunk ``r - 1``; the receiver gets it in round ``r + 1``, together with nobody's next task, so that
chunks follow each other without a pause.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.masking.masks import WORD_BYTES
from colonnade.masking.schedule import DIGEST_BYTES, KEY_BYTES, Peer, Protocol, Run
from colonnade.masking.sealing import SEAL_BYTES
from colonnade.methods.base import MAX_POPULATION, MAX_RELEASE_BYTES
from colonnade.methods.problem import Labels, Loss, Solution

KEY, PART, RECEIVED = "key", "part", "received"
ASKED = "asked"  # kept by a party for good, and never sent
ANNOUNCEMENT_BYTES = 160
MAX_PARTIES = 64
MAX_ROWS = 1 << 20  # of one request
MAX_PURPOSE = 200
_MAX_TASK_BYTES = 6 << 20


@dataclass(frozen=True, slots=True)
class PredictionPart:
    """One party's place: its name and the key that signs its messages."""

    party: str
    ledger_key: bytes
    features: ClassVar[tuple[str, ...]] = ()  # those of the model are the training job's
    holds_label: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class PredictionSpec:
    """Which rows are scored, by which model, for whom.

    Privacy: no differential privacy. The receiver learns exact scores; `methods.prediction.claims`
    says who learns what.
    """

    kind: ClassVar[str] = "prediction"
    labels: ClassVar[Labels] = Labels.NONE
    loss: ClassVar[Loss] = Loss.NONE
    sketch_dim: ClassVar[int] = 0  # nothing is sketched

    training_job: bytes
    evidence: tuple[tuple[str, tuple[bytes, ...]], ...]  # releases by party
    model: bytes  # SHA-256
    solution: Solution
    parts: tuple[PredictionPart, ...]
    receiver: str
    purpose: str
    rows: bytes  # ascending row numbers, four little-endian bytes each
    n_rows: int
    middle: tuple[str, ...]
    chunk: int

    def __post_init__(self) -> None:
        names = [part.party for part in self.parts]
        everybody = [*names, *self.middle]
        if not 2 <= len(names) <= MAX_PARTIES or len({*everybody}) != len(everybody):
            raise ValueError(f"a prediction has 2 to {MAX_PARTIES} parties of different names")
        if self.receiver not in names:
            raise ValueError("the receiver must be one of the parties that score")
        if len(self.model) != DIGEST_BYTES or any(
            len(part.ledger_key) != KEY_BYTES for part in self.parts
        ):
            raise ValueError("a model's digest and a ledger's key have 32 bytes")
        if not 1 <= len(self.purpose) <= MAX_PURPOSE or not self.purpose.isprintable():
            raise ValueError(f"a purpose has 1 to {MAX_PURPOSE} printable characters")
        if not 1 <= self.n_rows <= MAX_POPULATION or not 1 <= self.count <= MAX_ROWS:
            raise ValueError(f"a prediction is of 1 to {MAX_ROWS} rows")
        asked = self.row_numbers()
        if len(self.rows) % 4 or (np.diff(asked) < 1).any() or int(asked[-1]) >= self.n_rows:
            raise ValueError("rows must ascend, differ, and lie within the table")
        if not 1 <= self.chunk <= max_chunk(len(names)):
            raise ValueError(f"a chunk has 1 to {max_chunk(len(names))} rows")

    @property
    def count(self) -> int:
        """How many rows are asked."""
        return len(self.rows) // 4

    def row_numbers(self) -> IntArray:
        """Return the rows, ascending."""
        return np.frombuffer(self.rows[: 4 * self.count], "<u4").astype(np.int64)

    @property
    def population(self) -> int:
        """Rows of the tables."""
        return self.n_rows

    @property
    def chunks(self) -> int:
        """How many messages a party's part takes."""
        return -(-self.count // self.chunk)

    def chunk_rows(self, number: int) -> slice:
        """Return the places, among the asked rows, of a chunk."""
        first = number * self.chunk
        return slice(first, min(first + self.chunk, self.count))

    @property
    def rounds(self) -> int:
        """Rounds after the first."""
        return self.chunks + 1

    def place(self, party: str) -> int:
        """Return the place of ``party``; `ValueError` if it has none."""
        for place, part in enumerate(self.parts):
            if part.party == party:
                return place
        raise ValueError("the party is not in the prediction")

    @property
    def senders(self) -> tuple[int, ...]:
        """The places of all but the receiver."""
        own = self.place(self.receiver)
        return tuple(place for place in range(len(self.parts)) if place != own)

    def answer_bytes(self, party: str, round_: int) -> Mapping[str, int]:
        """Return the kinds and exact sizes that a round asks of a party; nothing if it is idle."""
        self.place(party)
        if round_ == 0:
            return {KEY: ANNOUNCEMENT_BYTES}
        if party == self.receiver:
            return {RECEIVED: 0} if 2 <= round_ <= self.rounds else {}
        if round_ > self.chunks:
            return {}
        rows = self.chunk_rows(round_ - 1)
        return {PART: WORD_BYTES * (rows.stop - rows.start) + SEAL_BYTES}

    def max_units(self, party: str) -> int:
        """Return 0: there is no price, because there is no guarantee."""
        self.place(party)
        return 0

    def max_releases(self, party: str) -> Mapping[str, int]:
        """Return how many bodies of each kind a party sends."""
        self.place(party)
        return {KEY: 1, RECEIVED if party == self.receiver else PART: self.chunks}

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the greatest size of one body."""
        self.place(party)
        if kind == KEY:
            return ANNOUNCEMENT_BYTES
        return WORD_BYTES * min(self.chunk, self.count) + SEAL_BYTES if kind == PART else 0

    def task_entries(self, party: str) -> int:
        """Return the words of a task, as numbers of 9 bytes: what a message has room for."""
        self.place(party)
        words = WORD_BYTES * min(self.chunk, self.count) + SEAL_BYTES + ANNOUNCEMENT_BYTES
        return -(-len(self.parts) * words // 9)

    def run(self, job_id: str, scale: int) -> Run:
        """Return what keys are bound to; ``job_id`` is the SHA-256 of the whole request."""
        named = hashlib.sha256(struct.pack(">Q", self.n_rows) + self.rows).digest()
        peers = tuple(Peer(part.party, part.ledger_key) for part in self.parts)
        return Run(Protocol.PREDICT, job_id.encode(), self.model, named, peers, scale)


def max_chunk(n_parties: int) -> int:
    """Return the most rows in a chunk: a part fits a release, and all parts a task."""
    part = MAX_RELEASE_BYTES - SEAL_BYTES
    return min(part, _MAX_TASK_BYTES // n_parties - SEAL_BYTES - ANNOUNCEMENT_BYTES) // WORD_BYTES


def default_chunk(n_parties: int) -> int:
    """Return a chunk of about 2 MiB."""
    return min(1 << 18, max_chunk(n_parties))
