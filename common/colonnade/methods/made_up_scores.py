"""A score's distribution, made up from what is released of its columns.

The mean probability of a model depends on the whole distribution of its score, of which a variance
is not enough: rare categories, counts and prices are skewed. But a column lies within bounds, and
the beta distribution with its released mean and deviation is a fair guess of its shape; it is exact
for a column of two values at its bounds. Rows are drawn with these marginals and the released
correlations (a copula of two normal classes, so that a good score has two humps), from a fixed
seed, so that the same releases give the same scores.

Limits: a column with tails that are heavier than the beta's (prices) stays less skewed than it is.

Privacy: arithmetic on releases (post-processing).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.methods.column_moments import ColumnMoments

_ROWS = 2**14
# Of the most variance that a mean and bounds allow: beta distributions stay proper.
_MAX_SPREAD = 0.995
_LEAST_RATE = 1e-5


def joined(parts: Iterable[tuple[ColumnMoments, Sequence[int]]]) -> ColumnMoments:
    """Return the moments of these columns of each party, in order."""
    held = [(found.mean[list(kept)], found.deviation[list(kept)]) for found, kept in parts]
    means, deviations = zip(*held, strict=True)
    return ColumnMoments(np.concatenate(means), np.concatenate(deviations))


def bounded(found: ColumnMoments) -> ColumnMoments:
    """Return the moments with no more deviation than bounds of -1 and 1 allow at the mean.

    A released deviation is floored and shrunk, which is far too much for a rare category.
    """
    mean = np.clip(found.mean, 2.0 * _LEAST_RATE - 1.0, 1.0 - 2.0 * _LEAST_RATE)
    return ColumnMoments(mean, np.minimum(found.deviation, np.sqrt(1.0 - mean**2)))


def made_up_scores(
    coef: FloatArray,
    found: ColumnMoments,
    *,
    correlation: FloatArray | None = None,
    label: FloatArray | None = None,
    rate: float = 0.5,
) -> FloatArray:
    """Return made-up values of the score about its mean.

    ``correlation`` is that of the columns (none by default), ``label`` theirs with the label, of
    which a part ``rate`` is positive.
    """
    used = np.flatnonzero(coef)
    draw = np.random.Generator(np.random.PCG64(0))
    rows = draw.standard_normal((_ROWS // 2, used.size))
    rows = np.concatenate([rows, -rows])  # antithetic: odd moments are exact
    if correlation is not None:
        towards = np.zeros(used.size) if label is None else label[used]
        rows = _classes(rows, correlation[np.ix_(used, used)], towards, rate)
    known = bounded(found)
    scores: FloatArray = np.zeros(_ROWS)
    for place, feature in enumerate(used):
        shape = _beta(draw, float(known.mean[feature]), float(known.deviation[feature]))
        order = np.argsort(rows[:, place], kind="stable")
        scores[order] += float(coef[feature]) * shape
    scores -= scores.mean()
    return scores


def _classes(
    rows: FloatArray, correlation: FloatArray, label: FloatArray, rate: float
) -> FloatArray:
    """Turn independent normal rows into two normal classes with these correlations in all."""
    values, vectors = np.linalg.eigh(correlation - np.outer(label, label))
    mixed = rows @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    half = len(rows) // 2
    positive = np.arange(half) < round(rate * half)
    share = min(max(float(positive.mean()), 1.0 / half), 1.0 - 1.0 / half)
    odds = ((1.0 - share) / share) ** 0.5
    classes = np.tile(np.where(positive, odds, -1.0 / odds), 2)
    found: FloatArray = mixed + np.outer(classes, label)
    return found


def _beta(draw: np.random.Generator, mean: float, deviation: float) -> FloatArray:
    """Return values of a beta variable on -1 to 1 with these moments, in rising order."""
    rate = (1.0 + mean) / 2.0
    most = rate * (1.0 - rate)
    size = most / min(max(deviation**2 / 4.0, 1e-9), _MAX_SPREAD * most) - 1.0
    values = np.sort(draw.beta(rate * size, (1.0 - rate) * size, _ROWS))
    found: FloatArray = 2.0 * values - 1.0
    return found
