"""Standard errors of coefficients from a released Gram matrix: arithmetic on releases.

For ``x = G^-1 c`` an error ``dG`` of the Gram matrix and ``dc`` of the products with the label move
``x`` by about ``G^-1 (dc - dG x)``.
"""

import math
import statistics
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Intervals:
    """Coefficients in standard deviations, with their errors and intervals.

    ``vif`` are variance inflation factors: by how much other columns raise a coefficient's
    sampling variance (Marquardt 1970).
    """

    coef: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    vif: FloatArray

    def p_values(self) -> FloatArray:
        """Return how probable estimates at least as far from 0 are if coefficients are 0.

        By the normal distribution and both kinds of error: that of rows and that of privacy.
        """
        return np.array([math.erfc(score) for score in np.abs(self.coef / self.error) / 2.0**0.5])

    def times(self, scale: FloatArray, doubt: FloatArray) -> "Intervals":
        """Return those of the coefficients times numbers that are off by ``doubt`` of themselves.

        Examples
        --------
        >>> one = np.ones(1)
        >>> found = Intervals(3.0 * one, 0.3 * one, 2.4 * one, 3.6 * one, vif=one)
        >>> found.times(2.0 * one, 0.0 * one).high, found.times(one, 0.1 * one).error.round(2)
        (array([7.2]), array([0.42]))
        """
        coef, error = self.coef * scale, np.hypot(self.error, doubt * self.coef) * scale
        wider = error / np.maximum(self.error, 1e-30)
        low, high = coef - (self.coef - self.low) * wider, coef + (self.high - self.coef) * wider
        return Intervals(coef, error, low, high, self.vif)

    @classmethod
    def of(
        cls, coef: FloatArray, variance: FloatArray, *, vif: FloatArray, level: float
    ) -> "Intervals":
        """Return the intervals of the given level for estimates with these variances."""
        if not 0.0 < level < 1.0:
            raise ValueError("a level lies between 0 and 1")
        error = np.sqrt(np.maximum(variance, 0.0))
        reach = statistics.NormalDist().inv_cdf(0.5 + level / 2.0) * error
        return cls(coef, error, coef - reach, coef + reach, vif)


def own_noise(coef: FloatArray, *, diagonal: float, off: float, target: float) -> FloatArray:
    """Return the covariance of ``dc - dG x`` from noise of these deviations.

    That of the Gram matrix is independent on and above the diagonal, and symmetric.

    Examples
    --------
    >>> own_noise(np.array([1.0, 0.0]), diagonal=2.0, off=1.0, target=0.0)
    array([[4., 0.],
           [0., 1.]])
    """
    spread: FloatArray = np.outer(coef, coef) * off**2
    total = off**2 * float(coef @ coef)
    np.fill_diagonal(spread, total + (diagonal**2 - off**2) * coef**2 + target**2)
    return spread
