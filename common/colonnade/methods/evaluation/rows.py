"""From scores and labels of held-out people to bounded integer sums.

Two classes: a histogram of scores, in buckets of logits, for each class; one person is in one cell.
Values: for each bucket of predictions how many people there are and the sum of their labels, and
over all buckets the sums of squared labels and squared residuals. Accuracy rests on the last, so
they have the largest weight, ``GRID``; a label has at most half of it and a count an eighth.

Privacy: replacing one row (of the label's owner, whose table this is, and of the scores, which
follow from the rows of all parties) moves the histogram by at most ``sqrt(2)`` in L2 norm, one
count down and one up; and the sums of values by at most ``sqrt(3) * GRID``. Counts and labels move
in another bucket by at most ``COUNT**2 + LABEL**2`` in square for each of the two rows; in the same
bucket the counts cancel and the labels move by at most ``(2 LABEL)**2 = GRID**2``, which is more.
The two sums of squares lie in ``[0, GRID]`` a row and move by at most ``GRID`` each. This holds for
any score and any label, which are clipped here, and for absent people, who add nothing.
"""

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID

MAX_LOGIT = 6.0
"""Logits beyond it are in the first or the last bucket."""

COUNT, LABEL = GRID // 8, GRID // 2
"""What a person counts in a bucket of values, and a label of one half width."""

CLASS_SENSITIVITY2 = 2
VALUE_SENSITIVITY2 = 3 * GRID**2


def class_sums(scores: FloatArray, positive: IntArray, *, buckets: int) -> IntArray:
    """Return how many of each class are in each bucket: negative ones first, then positive."""
    place = _place(_finite(scores) / MAX_LOGIT, buckets)
    cell = place + buckets * (positive > 0)
    return np.bincount(cell, minlength=2 * buckets).astype(np.int64)


def value_sums(scores: FloatArray, label: IntArray, *, buckets: int) -> IntArray:
    """Return counts and sums of labels by bucket, in ``COUNT`` and ``LABEL``, then of both squares.

    Scores and labels are in half widths of the label; labels are on the grid already.
    """
    predicted = np.rint(np.clip(_finite(scores), -1.0, 1.0) * GRID).astype(np.int64)
    held = np.clip(label.astype(np.int64), -GRID, GRID)
    residual = np.clip(held - predicted, -GRID, GRID)
    place = _place(predicted / GRID, buckets)
    counts = np.bincount(place, minlength=buckets).astype(np.int64) * COUNT
    labels = np.zeros(buckets, np.int64)
    np.add.at(labels, place, held // (GRID // LABEL))
    squares = [int(np.sum(each * each // GRID)) for each in (held, residual)]
    return np.concatenate([counts, labels, np.array(squares, np.int64)])


def centres(buckets: int) -> FloatArray:
    """Return the middles of the buckets, from -1 to 1."""
    return (2.0 * np.arange(buckets) + 1.0) / buckets - 1.0


def _place(scaled: FloatArray, buckets: int) -> IntArray:
    inside = np.clip(scaled, -1.0, 1.0)
    return np.minimum(((inside + 1.0) / 2.0 * buckets).astype(np.int64), buckets - 1)


def _finite(scores: FloatArray) -> FloatArray:
    return np.nan_to_num(scores, nan=0.0, posinf=1e6, neginf=-1e6)
