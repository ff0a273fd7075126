"""Which rows a party has scored, by which models, with whom: kept in its ledger for good.

Privacy: a score of a row by one model is one linear equation in the row's columns. As many
independent models as there are columns solve for all of them, and two sums over different sets of
parties differ by one party's exact part, also by models that are nearly equal. So a row has one
model a grant by default, and one set of parties for all models of a job, for ever. Two scores of a
row before and after one party ingested anew differ by the change of that party's part alone, which
no mask hides; so a party answers for a row out of one version of its table, unless the grant says
otherwise. Row numbers mean people only within one order of rows and those that it extends; of
requests in another order every row is taken to be the same person's.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Ledger
from colonnade.methods.messages import read
from colonnade.methods.prediction.codec import gaps_of, rows_of
from colonnade.methods.prediction.refusals import PartySetFinal, RowsAnswered, RowsChanged
from colonnade.methods.prediction.spec import ASKED
from colonnade.privacy.disclosure import PREDICTION
from colonnade.v1 import prediction_pb2 as pb


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """A request that a party answered, or is about to."""

    grant: bytes
    model: bytes
    parties: tuple[str, ...]
    order: str
    rows: IntArray
    training: str  # the job that fitted the model; others of it may be as near as one likes
    dataset: str  # the version of this party's table
    extended: frozenset[str] = frozenset()  # orders whose rows are the same in this one; not kept

    def to_bytes(self) -> bytes:
        """Return what the ledger keeps."""
        message = pb.PredictionRecord(
            grant=self.grant,
            model_sha256=self.model,
            parties=self.parties,
            order=self.order,
            gaps=gaps_of(self.rows),
            training=self.training,
            dataset=self.dataset,
        )
        return message.SerializeToString(deterministic=True)

    @classmethod
    def from_bytes(cls, body: bytes) -> "Answered":
        """Read what the ledger kept."""
        message = read(pb.PredictionRecord, body, "a record of a prediction")
        return cls(
            message.grant,
            message.model_sha256,
            tuple(message.parties),
            message.order,
            rows_of(message.gaps),
            message.training,
            message.dataset,
        )

    def shared(self, other: "Answered") -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which of this request's rows may be people whom ``other`` scored."""
        if self.order != other.order and other.order not in self.extended:
            return np.ones(self.rows.size, np.bool_)
        return np.isin(self.rows, other.rows, assume_unique=True)


def answered(ledger: Ledger, *, but: str) -> Iterable[Answered]:
    """Yield all that a ledger has answered in other jobs than ``but``."""
    for key in list(ledger.state.stored):
        if key.account == PREDICTION and key.kind == ASKED and key.job != but:
            if (kept := ledger.stored(key)) is None:
                raise RowsAnswered("a record of earlier predictions was purged; none is answered")
            yield Answered.from_bytes(kept.body)


def record_key(job: str) -> ReleaseKey:
    """Return under which name a job's record is kept."""
    return ReleaseKey(job, 0, ASKED, PREDICTION)


def check_allowed(
    asked: Answered,
    earlier: Iterable[Answered],
    *,
    models_per_row: int,
    max_rows: int,
    rescore_after_ingest: bool,
) -> None:
    """Refuse rows that others have scored: models, sets of parties, tables; or too many rows."""
    by_model: dict[bytes, IntArray] = {}
    used = asked.rows.size
    for other in earlier:
        common = asked.shared(other)
        if other.training == asked.training and other.parties != asked.parties and common.any():
            raise PartySetFinal(
                "rows were scored by a model of this job with another set of parties; the "
                "difference would show a party's part, so the first set is final"
            )
        if (
            other.training == asked.training
            and other.dataset != asked.dataset
            and not rescore_after_ingest
            and common.any()
        ):
            raise RowsChanged(
                "rows were scored by a model of this job out of another version of this party's "
                "table; the difference would show what changed, and the grant does not allow it"
            )
        if other.grant != asked.grant:
            continue
        used += other.rows.size
        if other.model != asked.model:
            counts = by_model.setdefault(other.model, np.zeros(asked.rows.size, np.int64))
            counts |= common
    models = 1 + sum(by_model.values(), np.zeros(asked.rows.size, np.int64))
    if (over := int((models > models_per_row).sum())) > 0:
        raise RowsAnswered(
            f"{over} rows were scored by other models before, for this receiver and purpose; the "
            f"grant allows {models_per_row} for each row"
        )
    if used > max_rows:
        raise RowsAnswered(f"with {used} rows in all the grant's {max_rows} would be exceeded")
