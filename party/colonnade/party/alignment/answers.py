"""A party's answers in one alignment: all through the gate, the dummies paid for first.

Privacy: the account of membership is charged once a run, durably, before a secret is drawn or
anything of the list is sent; the dummies that were paid for are drawn at the gate. Every body that
follows is a release of the same job, stored before it is sent, and replayed at a retry. Bodies of
rounds that the coordinator has closed are purged, so no entry has a tag once rows have come; when
the run has ended, the ledger's files have none either (`Ledger.purge_many`).
"""

import functools
import secrets
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadMessage, DatasetChanged
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.methods.alignment import sizes
from colonnade.methods.alignment.codec import from_bytes, spec_to_bytes
from colonnade.methods.alignment.spec import AlignmentSpec
from colonnade.party.alignment.store import AlignmentFolder, EndedAlignment
from colonnade.party.methods.alignment.party import AlignmentParty
from colonnade.party.methods.alignment.state import PartyState
from colonnade.privacy.membership import MEMBERSHIP, Covered
from colonnade.v1 import alignment_pb2 as pb
from colonnade.wire.codec import Releases


@dataclass
class AlignmentAnswers:
    """A party's side of an alignment that it approved."""

    job_id: str
    spec: AlignmentSpec
    party: AlignmentParty
    ids: tuple[bytes, ...]
    columns: tuple[str, ...]
    gate: Gate
    ledger: Ledger
    folder: AlignmentFolder
    _state: PartyState | None = field(default=None, repr=False)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        task = from_bytes(pb.AlignmentTask, body, "a task of the alignment")
        if task.round != round_:
            raise BadMessage("a task is of another round than its message")
        if body and not self.ledger.has(self._key(0, MEMBERSHIP)):  # nothing is charged for it
            raise BadMessage("an alignment begins with a first task, which is empty")
        after, bodies = self.party.answer(self._begun(), body)
        self._advance(after)  # before anything that follows from it is sent
        released = [
            self.gate.release(
                self._key(round_, kind),
                body,
                Covered(),
                functools.partial(_as_integers, made),
                encode=_as_bytes,
            )
            for kind, made in bodies.items()
        ]
        self._purge(before=round_)
        return Releases(released)

    def _begun(self) -> PartyState:
        """Return the state of the run; at its beginning pay for dummies and draw the secrets."""
        if self._state is not None:
            return self._state
        self.gate.release(
            self._key(0, MEMBERSHIP),
            spec_to_bytes(self.spec),
            self.spec.noise,
            lambda: np.zeros(self.party.n_led, np.int64),
            encode=self._draw,
        )
        found = self.folder.state(self.job_id)
        if found is None:
            raise DatasetChanged(
                "the secrets of the alignment are gone; cancel it and start another"
            )
        self._state = found
        return found

    def _draw(self, counts: IntArray) -> bytes:
        """Keep secrets with the dummies that were drawn; nothing of them is released."""
        self.folder.save(self.job_id, self.party.start_with(counts, secrets.token_bytes))
        return b""

    def _advance(self, after: PartyState) -> None:
        """Keep the next state; at the end the rows first, for the secrets go with the state."""
        if after is self._state:
            return
        if after.ended:
            self.folder.keep(EndedAlignment(self.spec, after, self.ids, self.columns))
        self.folder.save(self.job_id, after)
        self._state = after

    def _purge(self, *, before: int) -> None:
        """Delete bodies that the coordinator has taken: it asks for a round once all are in.

        Those of the round before are enough, because every round does this; and of one more, for
        a process may have ended in between.
        """
        rounds = range(max(0, before - 2), before)
        with self.ledger.lock:
            keys = [self._key(round_, kind) for round_ in rounds for kind in sizes.KINDS]
            self.ledger.purge_many([key for key in keys if self.ledger.has(key)])

    def _key(self, round_: int, kind: str) -> ReleaseKey:
        return ReleaseKey(self.job_id, round_, kind, MEMBERSHIP)


def _as_integers(body: bytes) -> IntArray:
    return np.frombuffer(body, np.uint8).astype(np.int64)


def _as_bytes(value: IntArray) -> bytes:
    return value.astype(np.uint8).tobytes()
