"""From a least-squares score to a probability: scale and intercept, from releases alone.

Vertical logistic jobs fit least squares to labels of -1 and 1. What they find ranks rows well, but
is no logit: at a base rate far from one half its mean probability is wrong, and its scale is that
of a second-order expansion at even odds. Both follow from the base rate ``p``, the score's
variance ``v`` and its covariance ``k`` with the label. If the score is normal within each class
with one variance, the logit is linear in it (linear discriminant analysis), with slope
``gap / within``, where ``gap = k / (2 p q)`` lies between the class means and
``within = v - p q gap**2``: that is ``k / (2 p q v) / (1 - R2)`` with ``R2 = k**2 / (4 p q v)``.
The constant is the one for which the mean probability is ``p``, for a score of the shape that
releases suggest (`methods.made_up_scores`).

Limits: heavy tails beyond what a ball of rows keeps (prices) leave a mean probability up to 0.045
off, classes of unlike variance in a few hundred rows up to 0.035, and where one party alone holds
the label a scale up to three times too small. At a few percent of positives, one party's label and
little budget, a score that is mostly noise can still be trusted too much. What is taken off for
doubt, here and in `methods.moments.solver`, was chosen on public tables and made-up ones; other
rows of the same tables and other made-up ones agree.

Privacy: arithmetic on releases (post-processing). The map is increasing, so ranks stay.
"""

import math
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray

# A base rate is known up to noise: nobody is certain to be of one class.
_MAX_MEAN = 0.9998
# More than this is not believed of a model's share of the label's variance.
_MAX_SHARE = 0.85
# Of the covariance over the variance: a model that releases say is worthless keeps its order.
_LEAST_RATIO = 0.05
_HALVINGS = 60
_POINTS = 48
# Bits of a calibration. Linear algebra differs by about 1e-15 between processors and numbers of
# threads, and parties compute a model again and compare all its bits (`methods.replay`). Rounded
# to 24 bits, a number differs between two machines with probability 1e-8 or so.
_BITS = 24


@dataclass(frozen=True, slots=True)
class Calibration:
    """Turn a score, whose mean is the label's, into a logit: ``slope * (score - mean) + constant``.

    Scores and means are those of a label of -1 and 1. The numbers are rounded to 24 bits, so that
    every machine finds the same ones.
    """

    mean: float
    slope: float
    constant: float

    def intercept(self, own: float) -> float:
        """Return the logit at which the features' part is 0, where the score is ``own``."""
        return self.slope * (own - self.mean) + self.constant


def discriminant(
    mean: float,
    variance: float,
    covariance: float,
    *,
    error: float = 0.0,
    scores: FloatArray | None = None,
) -> Calibration:
    """Return the calibration of a score with this variance and covariance with the label.

    ``error`` is the standard error of the explained share. Half of it is taken off: confidence that
    is too high costs more than confidence that is too low. ``scores`` have the shape of the score
    (normal classes by default); they are brought to the variance.
    """
    mean = min(max(mean, -_MAX_MEAN), _MAX_MEAN)
    whole = 1.0 - mean**2  # 4 p q, the label's variance
    if variance <= 1e-18:
        return _rounded(mean, 2.0 / whole, _normal_constant(mean, 0.0, 0.0))
    covariance = max(covariance, _LEAST_RATIO * variance)
    share = min(covariance**2 / (variance * whole), _MAX_SHARE)
    share = max(share - error / 2.0, 0.0)
    slope = 2.0 * covariance / (variance * whole) / (1.0 - share)
    if scores is not None and (spread := float(scores.std())) > 0.0:
        return shaped(mean, scores * (math.sqrt(variance) / spread), slope=slope)
    gap = 2.0 * math.sqrt(share * variance / whole)
    within = variance * (1.0 - share)
    return _rounded(mean, slope, _normal_constant(mean, slope * gap, slope * math.sqrt(within)))


def shaped(mean: float, scores: FloatArray, *, slope: float) -> Calibration:
    """Return the calibration with a given slope of a score that is distributed as ``scores``."""
    mean = min(max(mean, -_MAX_MEAN), _MAX_MEAN)
    weights = np.full(scores.size, 1.0 / scores.size)
    return _rounded(mean, slope, _constant(mean, slope * (scores - scores.mean()), weights))


def _rounded(*numbers: float) -> Calibration:
    """Return the calibration with so many bits of each of its numbers."""
    parts = (math.frexp(number) for number in numbers)
    return Calibration(*(math.ldexp(round(math.ldexp(m, _BITS)), e - _BITS) for m, e in parts))


def _normal_constant(mean: float, gap: float, deviation: float) -> float:
    """Return the constant for logits that are normal within each of two classes, ``gap`` apart."""
    rate = (1.0 + mean) / 2.0
    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    inner = deviation * points
    logits = np.concatenate([inner + (1.0 - rate) * gap, inner - rate * gap])
    weights = np.concatenate([rate * weights, (1.0 - rate) * weights]) / weights.sum()
    return _constant(mean, logits, weights)


def _constant(mean: float, logits: FloatArray, weights: FloatArray) -> float:
    """Return the constant for which logits about it have the mean probability of the base rate."""
    rate = (1.0 + mean) / 2.0
    start, reach = math.log(rate / (1.0 - rate)), float(np.abs(logits).max())
    low, high = start - reach, start + reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if float(weights @ _probability(logits + middle)) < rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _probability(logits: FloatArray) -> FloatArray:
    tail = np.exp(-np.abs(logits))  # never overflows
    found: FloatArray = np.where(logits >= 0.0, 1.0, tail) / (1.0 + tail)
    return found
