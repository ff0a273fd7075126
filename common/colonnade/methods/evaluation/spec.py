"""The specification of an evaluation: one release by the party that holds the label."""

from dataclasses import dataclass
from typing import ClassVar

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.data.model import LinearModel
from colonnade.methods.base import Part
from colonnade.methods.evaluation.rows import CLASS_SENSITIVITY2, VALUE_SENSITIVITY2
from colonnade.methods.holdout import MAX_HOLDOUT
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.mechanisms import DiscreteGaussian

SUMS = "evaluation"
BUCKETS = {Loss.SQUARED: 20, Loss.LOGISTIC: 40}
"""Groups of scores: of logits, or of predictions between the ends of the label's bounds."""
_MAX_BUCKETS = 1000
_MAX_MODEL = 1 << 20
_BYTES = 8


@dataclass(frozen=True, slots=True)
class EvaluationSpec:
    """What is released of scores and labels, at what price.

    Parameters
    ----------
    training, run
        The job that fitted the model, and the prediction that sent the scores.
    model
        The text of ``model.json``.
    holdout
        How many of a thousand rows the fit left out; only those count.
    n_rows
        Rows of the table, fitted or not.
    units
        Price, in units of ``2**-50`` rho.
    """

    kind: ClassVar[str] = "evaluation"
    rounds: ClassVar[int] = 1  # after the opening, which asks nothing
    labels: ClassVar[Labels] = Labels.SHARED  # the one party holds it
    sketch_dim: ClassVar[int] = 0  # nothing is sketched
    training: str
    run: str
    model: str
    holdout: int
    n_rows: int
    part: Part
    units: int
    buckets: int
    loss: Loss

    def __post_init__(self) -> None:
        for name in (self.training, self.run):
            if len(name) != 64 or not {*name} <= {*"0123456789abcdef"}:
                raise ValueError("an evaluation names two jobs by their SHA-256")
        if not 1 <= self.holdout <= MAX_HOLDOUT:
            raise ValueError("an evaluation is about people who were kept out of the fit")
        if not 2 <= self.buckets <= _MAX_BUCKETS:
            raise ValueError(f"an evaluation has 2 to {_MAX_BUCKETS} buckets")
        if not self.part.holds_label:
            raise ValueError("the party of an evaluation holds the label")
        if len(self.model) > _MAX_MODEL:
            raise ValueError("the model of an evaluation is too large")
        self.fitted()
        _ = self.mechanism

    def fitted(self) -> LinearModel:
        """Return the model that is evaluated; `ValueError` if it is none."""
        try:
            return LinearModel.from_json(self.model, origin="the evaluation's model")
        except BadInput as error:
            raise ValueError(str(error)) from None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The one party's part."""
        return (self.part,)

    @property
    def population(self) -> int:
        """Rows of the table."""
        return self.n_rows

    @property
    def size(self) -> int:
        """How many sums are released."""
        return 2 * self.buckets + (0 if self.loss is Loss.LOGISTIC else 2)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """The noise: the least that the price allows for the sums' sensitivity."""
        classes = self.loss is Loss.LOGISTIC
        squared = CLASS_SENSITIVITY2 if classes else VALUE_SENSITIVITY2
        return DiscreteGaussian.within(self.units, l2_sensitivity2=squared)

    def max_units(self, party: str) -> int:
        """Return the price."""
        return self.mechanism.cost if party == self.part.party else 0

    def max_releases(self, party: str) -> dict[str, int]:
        """Return that there is one release."""
        return {SUMS: int(party == self.part.party)}

    def body_bytes(self, party: str, kind: str) -> int:
        """Return the size of the release."""
        del party, kind
        return _BYTES * self.size

    def task_entries(self, party: str) -> int:
        """Return that a task carries nothing."""
        del party
        return 0


def encode_sums(sums: IntArray) -> bytes:
    """Return sums as bytes of a public number."""
    return sums.astype("<i8").tobytes()
