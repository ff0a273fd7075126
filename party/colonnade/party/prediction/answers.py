"""A party's side of one prediction: from a task to its announcement, its parts, or the scores.

Privacy: the record of what is scored is on disk before a key is announced, secrets before a vector
is masked, sealed parts before they are sent. A retry replays stored bytes, so a schedule never
masks two vectors. What leaves is bound to the table that was announced.
"""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.errors import BadMessage, DatasetChanged
from colonnade.core.fixedpoint import GRID
from colonnade.data.integer_scores import IntegerScores, add_products
from colonnade.data.model import LinearModel
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger, Released
from colonnade.masking.masks import mask, total, words_from_bytes, words_to_bytes
from colonnade.masking.schedule import KeySchedule, Run, RunSecrets, agree, announce
from colonnade.masking.sealing import open_part, seal
from colonnade.methods.messages import read
from colonnade.methods.prediction.codec import announcement_to_bytes, announcements_from
from colonnade.methods.prediction.refusals import ScoreTooLarge
from colonnade.methods.prediction.spec import KEY, PART, RECEIVED, PredictionSpec
from colonnade.party.data.columns import Columns
from colonnade.party.prediction.people import Names
from colonnade.party.prediction.policy import PredictAllowance
from colonnade.party.prediction.record import Answered, answered, check_allowed, record_key
from colonnade.party.prediction.store import PredictionFolder
from colonnade.privacy.disclosure import PREDICTION, Disclosure
from colonnade.v1 import prediction_pb2 as pb
from colonnade.wire.codec import Releases

logger = logging.getLogger(__name__)

Compute = Callable[[], IntArray]
Encode = Callable[[IntArray], bytes]


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A party's own part of the scores: integer coefficients on its columns."""

    columns: Columns
    coef: tuple[int, ...]
    fills: tuple[int, ...]  # on the grid: what people whom the party does not have count as

    def check(self, n_parties: int) -> None:
        """Refuse coefficients whose greatest possible partial score reaches ``2**62 / K``."""
        if GRID * sum(map(abs, self.coef)) >= 2**62 // n_parties:
            raise ScoreTooLarge("a partial score of this model could make a sum wrap")

    def scores(self, rows: IntArray) -> IntArray:
        """Return the exact partial scores of some rows."""
        features, sums = self.columns.features, np.zeros(rows.size, np.int64)
        used = [place for place, number in enumerate(self.coef) if number]
        if used:
            held = np.stack([_taken(features[place], rows) for place in used])
            add_products(sums, held, [self.coef[place] for place in used])
        if (presence := self.columns.presence) is not None:
            absent = sum(c * fill for c, fill in zip(self.coef, self.fills, strict=True))
            sums = np.where(_taken(presence, rows) > 0, sums, np.int64(absent))
        return sums


def _taken(column: Int16Array, rows: IntArray) -> Int16Array:
    """Return some entries; a range of them is read as one."""
    first, last = int(rows[0]), int(rows[-1])
    return column[first : last + 1] if last - first + 1 == rows.size else column[rows]


@dataclass
class PredictionAnswers:
    """A party's side of a prediction that it approved."""

    job_id: str
    spec: PredictionSpec
    allowance: PredictAllowance
    model: LinearModel
    training: str  # the job that fitted it
    part: OwnPart
    dataset: str  # the table's version
    order: str  # what the order of the rows follows
    extended: frozenset[str]  # orders that it extends
    table: bytes  # SHA-256 of the table's version and order
    gate: Gate
    ledger: Ledger
    folder: PredictionFolder
    names: Callable[[], Names]
    _secrets: RunSecrets | None = field(default=None, repr=False)

    @property
    def place(self) -> int:
        """The party's place."""
        return self.spec.place(self.ledger.opened.party)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        task = read(pb.PredictionTask, body, "a task of the prediction")
        expected = self.spec.answer_bytes(self.ledger.opened.party, round_)
        if task.round != round_ or not expected:
            raise BadMessage("a task is of another round than this party is asked in")
        if round_ == 0:
            return Releases([self._announce(body)])
        schedule = self._schedule(task, round_ - (2 if RECEIVED in expected else 1))
        if RECEIVED in expected:
            return Releases([self._receive(task, schedule, round_, body)])
        return Releases([self._send(schedule, round_, body)])

    def asked(self) -> Answered:
        """Return what the ledger records of this request."""
        parties = tuple(part.party for part in self.spec.parts)
        rows = self.spec.row_numbers()
        return Answered(
            self.allowance.grant,
            self.spec.model,
            parties,
            self.order,
            rows,
            self.training,
            self.dataset,
            self.extended,
        )

    def check_allowed(self) -> None:
        """Refuse rows that earlier answers rule out.

        Privacy: a receiver may see what changed in its own table.
        """
        own = self.spec.receiver == self.ledger.opened.party
        check_allowed(
            self.asked(),
            answered(self.ledger, but=self.job_id),
            models_per_row=self.allowance.models_per_row,
            max_rows=self.allowance.max_rows,
            rescore_after_ingest=own or self.allowance.rescore_after_ingest,
        )

    def _announce(self, body: bytes) -> Released:
        with self.ledger.lock:  # of two requests for the same rows the first is recorded
            if not self.ledger.has(record_key(self.job_id)):
                self.check_allowed()
            self._release(record_key(self.job_id), b"", _nothing, lambda _: self.asked().to_bytes())
        secrets, run = self._begun(), self._run()
        announcement = announce(run, self.place, secrets, table=self.table, signer=self.ledger)
        sent = announcement_to_bytes(announcement)
        return self._release(self._key(0, KEY), body, _nothing, lambda _: sent)

    def _send(self, schedule: KeySchedule, round_: int, body: bytes) -> Released:
        receiver = self.spec.place(self.spec.receiver)

        def sealed(partial: IntArray) -> bytes:
            words = words_to_bytes(mask(schedule, partial))
            return seal(schedule, receiver, words, signer=self.ledger)

        made = self._release(
            self._key(round_, PART), body, lambda: self._scores(round_ - 1), sealed
        )
        self._purge(round_)
        return made

    def _receive(
        self, task: pb.PredictionTask, schedule: KeySchedule, round_: int, body: bytes
    ) -> Released:
        if len(task.parts) != len(self.spec.senders):
            raise BadMessage("a task relays another number of parts than there are senders")
        chunk = round_ - 2
        parts = [
            words_from_bytes(open_part(schedule, sender, sealed))
            for sender, sealed in zip(self.spec.senders, task.parts, strict=True)
        ]
        own = mask(schedule, self._scores(chunk))
        if any(part.size != own.size for part in parts):
            raise BadMessage("a part has another number of rows than its chunk")
        self.folder.keep_sums(self.job_id, chunk, total([own, *parts]))
        if chunk == self.spec.chunks - 1:
            self._write()
        return self._release(self._key(round_, RECEIVED), body, _nothing, lambda _: b"")

    def _write(self) -> None:
        """Write the file of scores and predictions."""
        sums = self.folder.sums(self.job_id, self.spec.chunks)
        scores = IntegerScores.of(self.model).score(sums)
        rows = self.spec.row_numbers()
        place = self.folder.keep_scores(
            self.job_id, rows, scores, self.model.from_score(scores), names=self.names()
        )
        logger.info("scores_received job=%s rows=%d file=%s", self.job_id[:12], rows.size, place)

    def _scores(self, chunk: int) -> IntArray:
        return self.part.scores(self.spec.row_numbers()[self.spec.chunk_rows(chunk)])

    def _run(self) -> Run:
        return self.spec.run(self.job_id, IntegerScores.of(self.model).scale)

    def _begun(self) -> RunSecrets:
        """Return the secrets of the run, drawing them at its beginning."""
        if self._secrets is None:
            if (found := self.folder.secrets(self.job_id)) is None:
                if self.ledger.has(self._key(0, KEY)):
                    raise DatasetChanged(
                        "the secrets of the prediction are gone; cancel it and ask again"
                    )
                found = RunSecrets.draw(), self.table
                self.folder.keep_secrets(self.job_id, *found)
            if found[1] != self.table:
                raise DatasetChanged(
                    "the party's table is another one than the prediction began with; ask again"
                )
            self._secrets = found[0]
        return self._secrets

    def _schedule(self, task: pb.PredictionTask, chunk: int) -> KeySchedule:
        """Return this party's keys for a chunk; refuse announcements that were not signed."""
        try:
            announced = announcements_from(task.keys)
        except ValueError as error:
            raise BadMessage(str(error)) from None
        receiver = self.spec.place(self.spec.receiver)
        run, begun = self._run(), self._begun()
        return agree(run, self.place, begun, announced, receiver=receiver, round_=chunk)

    def _release(self, key: ReleaseKey, body: bytes, compute: Compute, encode: Encode) -> Released:
        spec = self.spec
        mechanism = Disclosure(spec.model.hex(), spec.receiver, spec.purpose, spec.count)
        return self.gate.release(key, body + self.table, mechanism, compute, encode=encode)

    def _purge(self, before: int) -> None:
        """Delete parts that the coordinator has taken: it asks for a round once all are in."""
        with self.ledger.lock:
            keys = [self._key(round_, PART) for round_ in range(max(1, before - 2), before)]
            self.ledger.purge_many([key for key in keys if self.ledger.has(key)])

    def _key(self, round_: int, kind: str) -> ReleaseKey:
        return ReleaseKey(self.job_id, round_, kind, PREDICTION)


def _nothing() -> IntArray:
    """Read no data."""
    return np.zeros(0, np.int64)


def table_digest(version: str, order: str) -> bytes:
    """Return what a party announces of its table."""
    return hashlib.sha256(f"colonnade table\0{version}\0{order}".encode()).digest()
