"""From a sealed job's least-squares score to a probability, and how much it explains.

Privacy: arithmetic on releases (post-processing).
"""

import math

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.explained import Explained
from colonnade.methods.calibration import Calibration, discriminant
from colonnade.methods.column_moments import ColumnMoments
from colonnade.methods.made_up_scores import made_up_scores
from colonnade.methods.sealed.solver.estimates import SealedEstimate

_SAFETY, _SHARE_BIAS = 1.5, 0.05


def explained(found: SealedEstimate, x: FloatArray) -> Explained:
    """Return ``2 c'x - x'Gx`` for coefficients in standard deviations, and its error."""
    share = 2.0 * float(found.target @ x) - float(x @ found.gram @ x)
    variance = 4.0 * float(found.errors[-1] ** 2 @ x**2)
    variance += 2.0 * float(x**2 @ found.errors[:-1] ** 2 @ x**2)
    return Explained(share, math.hypot(_SAFETY * math.sqrt(variance), _SHARE_BIAS))


def calibration(
    found: SealedEstimate,
    x: FloatArray,
    known: ColumnMoments,
    *,
    coef: FloatArray,
    label_mean: float,
) -> Calibration:
    """Return what turns the score into a logit.

    ``x`` are coefficients in standard deviations, ``coef`` the same on scaled features, whose
    released moments are ``known``. Coefficients were fitted to noise, too: one standard error of
    products with the label is taken off the covariance.
    """
    noise = math.sqrt(float(found.errors[-1] ** 2 @ x**2))
    whole = 1.0 - label_mean**2  # of two classes
    spread = np.sqrt(np.diag(found.gram))
    scores = made_up_scores(
        coef,
        ColumnMoments(known.mean, spread * known.deviation),
        correlation=found.gram / np.outer(spread, spread),
        label=found.target / spread,
        rate=(1.0 + label_mean) / 2.0,
    )
    return discriminant(
        label_mean,
        whole * float(x @ found.gram @ x),
        whole * (float(found.target @ x) - noise),
        error=explained(found, x).error,
        scores=scores,
    )
