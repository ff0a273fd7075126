"""A party's side of a job: from a task's bytes to releases.

Privacy: an answer is bound by the ledger to the task's bytes and to the version of the table, so
the same key is never paid for one question and used for another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.party.data.columns import Columns
from colonnade.party.data.units import Units, WholeTable
from colonnade.party.engine.base import Engine
from colonnade.party.engine.local import LOCAL
from colonnade.party.methods.sealed_keys import KeyStore
from colonnade.wire.codec import Answer


class ReceivedScores(Protocol):
    """The scores of predictions that were sent to this party."""

    def has(self, run: str, model: bytes) -> bool:
        """Return whether a prediction's scores by this model, of the table's rows, are here."""

    def of(self, run: str) -> tuple[IntArray, FloatArray]:
        """Return the rows of a prediction and their scores."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a party brings to a job that it has approved."""

    job_id: str
    party: str
    version: str  # of its table
    columns: Columns
    gate: Gate
    ledger: Ledger
    units: Units = field(default_factory=WholeTable)  # whose accounts pay
    pins: Mapping[str, bytes] = field(default_factory=dict)  # peers' ledger keys, from the policy
    keys: KeyStore | None = None  # where secret keys of sealed exchanges are
    scores: ReceivedScores | None = None  # what it was sent
    engine: Engine = LOCAL  # where sums over rows are computed
    drop_out: float = 0.0  # share of its clients that a host leaves out, to try what then happens

    def request(self, body: bytes) -> bytes:
        """Return what the ledger binds an answer to."""
        return body + bytes.fromhex(self.version)


class Answers(Protocol):
    """A party's side of one job."""

    @property
    def context(self) -> JobContext:
        """What the party brings to the job."""

    def answer(self, round_: int, body: bytes) -> Answer:
        """Release what a task asks for."""
