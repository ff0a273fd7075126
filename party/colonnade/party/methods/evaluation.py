"""The party's side of an evaluation: its label and the scores it was sent, to noisy sums."""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadMessage, PolicyRefused
from colonnade.data.integer_scores import model_digest
from colonnade.ledger.entries import ReleaseKey
from colonnade.methods.evaluation.rows import class_sums, value_sums
from colonnade.methods.evaluation.spec import SUMS, EvaluationSpec, encode_sums
from colonnade.methods.holdout import held_out
from colonnade.methods.messages import read
from colonnade.methods.problem import Loss
from colonnade.party.methods.base import JobContext, ReceivedScores
from colonnade.v1 import evaluation_pb2 as pb
from colonnade.wire.codec import Releases


@dataclass(frozen=True, slots=True)
class EvaluationAnswers:
    """Evaluation's side."""

    spec: EvaluationSpec
    context: JobContext
    scores: ReceivedScores

    @classmethod
    def of(cls, spec: EvaluationSpec, context: JobContext) -> "EvaluationAnswers":
        """Build from context; refuse an evaluation of scores that this party was not sent.

        Privacy: whether it was sent them is known to whoever asked for the prediction.
        """
        model = model_digest(spec.fitted())
        if context.scores is None or not context.scores.has(spec.run, model):
            raise PolicyRefused("this party was not sent the scores that are to be evaluated")
        # Scores and labels meet by row: of other rows, one person would count in two places.
        if context.columns.label is None or context.columns.label.size != spec.n_rows:
            raise BadMessage("an evaluation is of a whole table with its label")
        return cls(spec, context, context.scores)

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release the sums, once."""
        read(pb.EvaluationTask, body, "a task")
        if round_ != 1:
            raise BadMessage("an evaluation asks for one release, in round 1")
        key = ReleaseKey(self.context.job_id, round_, SUMS)
        release = self.context.gate.release(
            key,
            self.context.request(body),
            self.spec.mechanism,
            self._sums,
            encode=encode_sums,
        )
        return Releases([release])

    def _sums(self) -> IntArray:
        """Return the sums over the people who were kept out and whose label is here."""
        rows, scores = self._scored()
        label = self.context.columns.label
        if label is None:
            raise BadMessage("the party of an evaluation holds the label")
        if (presence := self.context.columns.presence) is not None:
            here = presence[rows] > 0
            rows, scores = rows[here], scores[here]
        sums = class_sums if self.spec.loss is Loss.LOGISTIC else value_sums
        return sums(scores, label[rows].astype(np.int64), buckets=self.spec.buckets)

    def _scored(self) -> tuple[IntArray, FloatArray]:
        """Return the rows that were kept out, each once, and their scores; others do not count."""
        rows, scores = self.scores.of(self.spec.run)
        rows, first = np.unique(rows, return_index=True)
        out = held_out(self.spec.n_rows, self.spec.holdout)
        kept = (rows >= 0) & (rows < self.spec.n_rows)
        kept[kept] = out[rows[kept]]
        return rows[kept], scores[first][kept]
