"""A problem: a loss and a penalty over so many coordinates. It knows no data."""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import Loss
from colonnade.linear.penalties import AnyPenalty, Penalty


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Minimise the mean loss over rows plus the penalty of ``scales * coef``.

    Parameters
    ----------
    scales
        Shape ``(n_features,)``, not negative: users' units over the solver's; 0 where a
        coordinate is not penalised.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.linear.penalties import lasso
    >>> problem = Problem(SQUARED, lasso(0.1), np.array([1.0, 0.0]))  # the last is an intercept
    >>> problem.objective(np.array([2.0, 5.0]), np.zeros(3), np.zeros(3))
    0.2
    """

    loss: Loss
    penalty: AnyPenalty
    scales: FloatArray

    def __post_init__(self) -> None:
        scales = np.asarray(self.scales)
        if scales.ndim != 1 or scales.size == 0:
            raise ValueError("a problem has at least one coordinate")
        if not (np.isfinite(scales).all() and (scales >= 0.0).all()):
            raise ValueError("scales are finite and not negative")

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return int(self.scales.size)

    @property
    def elastic(self) -> Penalty:
        """The penalty, if it is a built-in one."""
        if not isinstance(self.penalty, Penalty):
            raise TypeError(f"the penalty {self.penalty.name} is not built in")
        return self.penalty

    def objective(self, coef: FloatArray, margins: FloatArray, label: FloatArray) -> float:
        """Return the value at ``coef``, whose margins are given. Not private."""
        return self.loss.mean(margins, label) + self.penalty.value(coef, self.scales)


def plain(loss: Loss, penalty: AnyPenalty, n_features: int) -> Problem:
    """Return the problem whose penalty applies to the coefficients as they are.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.linear.penalties import no_penalty
    >>> plain(SQUARED, no_penalty(), 4).n_features
    4
    """
    return Problem(loss, penalty, np.ones(n_features))
