"""Losses: how wrong a margin is, and how steep.

A row with features ``x`` and label ``y`` has the margin ``m = x'w``. Its loss is a function of
``m`` and ``y`` alone, so its gradient in ``w`` is the slope at ``m`` times ``x``.
"""

import math
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray

SQUARED_CODE, LOGISTIC_CODE, HINGE_CODE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Loss:
    """One of the losses below.

    Parameters
    ----------
    code
        How the kernels know it.
    curvature
        Largest second derivative in the margin; infinite where the slope jumps.
    steepness
        Largest slope; infinite if it grows without end.
    """

    name: str
    code: int
    curvature: float
    steepness: float

    @property
    def smooth(self) -> bool:
        """Whether the slope is Lipschitz, so that step sizes follow from it."""
        return math.isfinite(self.curvature)

    @property
    def classifies(self) -> bool:
        """Whether labels are -1 and +1."""
        return self.code != SQUARED_CODE

    def mean(self, margins: FloatArray, label: FloatArray) -> float:
        """Return the mean loss over the rows."""
        if self.code == SQUARED_CODE:
            return float(np.mean((margins - label) ** 2) / 2.0)
        if self.code == LOGISTIC_CODE:
            return float(np.mean(np.logaddexp(0.0, -label * margins)))
        return float(np.mean(np.maximum(0.0, 1.0 - label * margins)))


SQUARED = Loss("squared", SQUARED_CODE, curvature=1.0, steepness=math.inf)
"""``(m - y)**2 / 2``"""

LOGISTIC = Loss("logistic", LOGISTIC_CODE, curvature=0.25, steepness=1.0)
"""``log(1 + exp(-y m))`` for labels -1 and +1"""

HINGE = Loss("hinge", HINGE_CODE, curvature=math.inf, steepness=1.0)
"""``max(0, 1 - y m)`` for labels -1 and +1"""

LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, HINGE)}
