"""Made-up tables with known truth: correlated columns, few of which matter."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.methods.problem import Loss
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, grid

STRUCTURES = ("equicorrelated", "independent", "ar", "factors")
FACTORS = 3

# Declared bounds of standardised columns and labels, in standard deviations: what an organization
# that knows its quantity would declare.
BOUND = 2.5


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A table in its own units, whose columns have mean 0 and variance 1."""

    columns: FloatArray  # (n_features, n_rows)
    label: FloatArray  # standardised; 0 or 1 for the logistic loss
    coef: FloatArray  # the truth, for the standardised label or the logit
    splits: tuple[tuple[int, ...], ...]
    loss: Loss

    def data(self) -> Data:
        """Return the table on the grid, under the declared bounds."""
        label = self.label / BOUND if self.loss is Loss.SQUARED else 2.0 * self.label - 1.0
        columns = np.empty(self.columns.shape, np.int16)
        for place, column in enumerate(self.columns):  # one by one: large tables have little room
            columns[place] = grid(column / BOUND)
        return Data(columns, grid(label), self.splits)

    def truth(self) -> ScaledModel:
        """Return the model that made the label, on scaled columns."""
        scale = BOUND if self.loss is Loss.LOGISTIC else 1.0
        return ScaledModel([scale * self.coef[list(split)] for split in self.splits], 0.0)


def make(
    n_rows: int,
    splits: Sequence[int],
    *,
    informative: int,
    correlation: float = 0.0,
    noise: float = 0.5,
    seed: int = 0,
    loss: Loss = Loss.SQUARED,
    structure: str = "equicorrelated",
) -> Synthetic:
    """Make a table.

    Parameters
    ----------
    splits
        How many columns each party has.
    informative
        How many columns, chosen at random over all parties, have a part in the label.
    correlation
        Between any two columns (equicorrelated), between neighbours of a chain whose members lie
        at random parties (ar), or within each of three groups with random signs (factors).
    noise
        Standard deviation of the label's noise relative to its signal's, for the squared loss; for
        the logistic loss the signal has standard deviation ``1 / noise`` in logits.
    """
    draw = np.random.default_rng(seed)
    n_features = sum(splits)
    if structure not in STRUCTURES:
        raise ValueError(f"a structure is one of {', '.join(STRUCTURES)}")
    if not 0.0 <= correlation < 1.0 or not 1 <= informative <= n_features or noise <= 0.0:
        raise ValueError("correlation lies in [0, 1), noise above 0, informative in 1 .. features")
    columns = _columns(draw, n_rows, n_features, correlation, structure)
    coef = np.zeros(n_features)
    chosen = draw.choice(n_features, informative, replace=False)
    coef[chosen] = draw.choice([-1.0, 1.0], informative) * draw.uniform(0.5, 1.5, informative)
    signal = np.zeros(n_rows)
    for feature in chosen:
        signal += coef[feature] * columns[feature]
    scale = 1.0 / float(signal.std())
    if loss is Loss.LOGISTIC:
        coef, signal = coef * scale / noise, signal * scale / noise
        label = (draw.random(n_rows) < 1.0 / (1.0 + np.exp(-signal))).astype(np.float64)
        if label.min() == label.max():
            raise BadInput("all synthetic people are of one class; use more rows or another seed")
    else:
        scale /= float(np.hypot(1.0, noise))
        coef, signal = coef * scale, signal * scale
        label = signal + draw.normal(0.0, noise / float(np.hypot(1.0, noise)), n_rows)
    cuts = list(itertools.accumulate(splits, initial=0))
    parts = tuple(tuple(range(first, last)) for first, last in itertools.pairwise(cuts))
    return Synthetic(columns, label, coef, parts, loss)


def _columns(
    draw: np.random.Generator, n_rows: int, n_features: int, correlation: float, structure: str
) -> FloatArray:
    columns = draw.standard_normal((n_features, n_rows))
    if structure == "independent" or correlation == 0.0:
        return columns
    own, common = np.sqrt(1.0 - correlation), np.sqrt(correlation)
    if structure == "ar":
        for i in range(1, n_features):
            columns[i] *= np.sqrt(1.0 - correlation**2)
            columns[i] += correlation * columns[i - 1]
        return columns[draw.permutation(n_features)]
    groups = FACTORS if structure == "factors" else 1
    factors = draw.standard_normal((groups, n_rows))
    for i in range(n_features):
        sign = draw.choice([-1.0, 1.0]) if structure == "factors" else 1.0
        columns[i] *= own
        columns[i] += sign * common * factors[draw.integers(groups)]
    return columns
