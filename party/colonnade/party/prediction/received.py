"""Scores that a party was sent, for an evaluation: of its rows as they are now, by one model.

Privacy: an evaluation pairs scores with labels by row number, and its sensitivity holds only if a
person's score and label stand in one row. So scores of another order of the rows do not count,
whatever lies in the folder, and neither do those of another model than the one that is named.
"""

from dataclasses import dataclass

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.ledger.ledger import Ledger
from colonnade.party.prediction.record import Answered, record_key
from colonnade.party.prediction.store import PredictionFolder


@dataclass(frozen=True, slots=True)
class RecordedScores:
    """The folder of predictions, as far as the ledger's records vouch for it."""

    folder: PredictionFolder
    ledger: Ledger
    order: str

    def has(self, run: str, model: bytes) -> bool:
        """Return whether a prediction's scores by this model, of the table's rows, are here."""
        key = record_key(run)
        kept = self.ledger.stored(key) if self.ledger.has(key) else None
        if kept is None or not self.folder.has(run):
            return False
        record = Answered.from_bytes(kept.body)
        return (record.order, record.model) == (self.order, model)

    def of(self, run: str) -> tuple[IntArray, FloatArray]:
        """Return the rows of a prediction and their scores."""
        return self.folder.of(run)
