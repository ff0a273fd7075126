"""Empirical lower bounds on what a mechanism reveals, from repeated runs on a worst-case pair.

Each bound holds with confidence 1 - 1e-3 for any mechanism, so a right one exceeds its claim with
at most that probability; the seeds are fixed, so the verdict never flickers.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.sampling import NoiseSource

CONFIDENCE = 1e-3


def rho_lower_bound(low: FloatArray, high: FloatArray) -> float:
    """Bound rho from below by how well a threshold tells two samples apart.

    A threshold is chosen on one half of the samples. On the other half Clopper-Pearson bounds its
    error rates, each at half of the risk, and a Gaussian mechanism with those error rates has
    ``mu = z(1 - false positives) - z(1 - true positives)``, that is ``rho = mu**2 / 2``.
    """
    half = low.size // 2
    candidates = np.quantile(np.concatenate([low[:half], high[:half]]), np.linspace(0.05, 0.95, 91))
    gaps = [(high[:half] > c).mean() - (low[:half] > c).mean() for c in candidates]
    cut = candidates[int(np.argmax(gaps))]
    n = low.size - half
    false = int((low[half:] > cut).sum())
    true = int((high[half:] > cut).sum())
    false_most = stats.beta.ppf(1 - CONFIDENCE / 2, false + 1, n - false)
    true_least = stats.beta.ppf(CONFIDENCE / 2, true, n - true + 1)
    mu = stats.norm.isf(false_most) - stats.norm.isf(true_least)
    return float(max(mu, 0.0) ** 2 / 2)


def numeric_audit(
    mechanism: Mechanism,
    pair: tuple[IntArray, IntArray],
    noise: NoiseSource,
    *,
    draws: int = 20_000,
    project: Callable[[FloatArray], FloatArray] | None = None,
) -> float:
    """Return a lower bound on the rho of adding noise to either vector of ``pair``."""
    direction = (pair[1] - pair[0]).astype(float)
    project = project or (lambda seen: seen @ direction)
    scores = []
    for value in pair:
        tiled = np.tile(value, (draws, 1))
        scores.append(project(mechanism.perturb(tiled, noise).astype(float) - pair[0]))
    return rho_lower_bound(scores[0], scores[1])


def range_lower_bound(
    mechanism: Mechanism, pair: tuple[IntArray, IntArray], noise: NoiseSource, *, draws: int
) -> float:
    """Bound the range of the privacy loss of a selection from below, by log odds of two outcomes.

    3.3 standard errors of the log odds ratio are taken off, for a risk of 5e-4.
    """
    counts = np.zeros((2, 2))
    for side, value in enumerate(pair):
        for _ in range(draws):
            feature, sign = mechanism.perturb(value, noise)
            if sign > 0 and feature < 2:
                counts[side, feature] += 1
    odds = math.log(counts[1, 0] * counts[0, 1] / (counts[1, 1] * counts[0, 0]))
    return odds - 3.3 * math.sqrt((1 / counts).sum())
