"""Standard deviations of features as far as releases tell them, and coefficients on that scale.

A coefficient on scaled values says what a move over half the bounds does, so that wide bounds make
it large: only coefficients for one standard deviation compare. Both vertical methods open with sums
and sums of squares; a moments job goes on to release Gram matrices, whose diagonals are finer.

Privacy: functions of releases and public numbers only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.data.model import LinearModel
from colonnade.privacy.mechanisms import DiscreteGaussian

# A variance that is less than so many of its errors is hidden by noise.
_SURE = 2.0

Deviations = Mapping[str, list[float | None]]


@dataclass(frozen=True, slots=True)
class SpreadEstimate:
    """Variances of columns in squared half ranges, and the errors that noise gives them."""

    variance: FloatArray
    error: FloatArray

    def beside(self, other: "SpreadEstimate") -> "SpreadEstimate":
        """Return both estimates of the same variances, weighted by how sure each is."""
        ours, theirs = 1.0 / self.error**2, 1.0 / other.error**2
        mean = (ours * self.variance + theirs * other.variance) / (ours + theirs)
        return SpreadEstimate(mean, 1.0 / np.sqrt(ours + theirs))

    def deviations(self) -> list[float | None]:
        """Return deviations in half ranges; None where noise hides one."""
        sure = self.variance > _SURE * self.error
        pairs = zip(self.variance.tolist(), sure.tolist(), strict=True)
        return [variance**0.5 if known else None for variance, known in pairs]


def opening_spread(noisy: IntArray, n_rows: float, mechanism: DiscreteGaussian) -> SpreadEstimate:
    """Estimate variances from released sums and sums of squares, free of bias by noise.

    A mean's noise has variance ``v``, so its square is too large by ``v`` in expectation.
    """
    found = noisy.astype(np.float64) / (n_rows * GRID)
    count = found.size // 2
    mean, square, noise2 = found[:count], found[count:], mean_noise2(n_rows, mechanism)
    error = np.sqrt(noise2 * (1.0 + 4.0 * np.clip(mean, -1.0, 1.0) ** 2) + 2.0 * noise2**2)
    return SpreadEstimate(square - mean**2 + noise2, error)


def mean_noise2(n_rows: float, mechanism: DiscreteGaussian) -> float:
    """Return the variance of a mean's noise, in squared half ranges."""
    return mechanism.sigma2 / (n_rows * GRID) ** 2


def per_deviation(deviations: Deviations, model: LinearModel) -> dict[str, Any] | None:
    """Return coefficients for one standard deviation of each feature, as JSON values.

    ``deviations`` are those that the job's releases tell, by party, in half ranges; None in place
    of one that noise hides. Coefficients are in the label's unit for squared error, else as the
    score counts. None if no deviation was released; None in place of numbers that noise hides.
    """
    known = {party: iter(found) for party, found in deviations.items()}
    if not known:
        return None
    features = []
    for feature, coef in zip(model.features, model.coef, strict=True):
        share = next(known[feature.party])
        deviation = None if share is None else share * feature.bounds.half_width
        features.append(
            {
                "party": feature.party,
                "name": feature.name,
                "deviation": deviation,
                "coef": coef * (deviation or 0.0) if deviation or not coef else None,
            }
        )
    return {"features": features}
