"""Choose columns of a wide table privately, along a Frank-Wolfe path (Talwar et al. 2015)."""

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.kernels import score
from colonnade.linear.losses import LOGISTIC_CODE
from colonnade.privacy.mechanisms import Mechanism
from colonnade.solvers.algorithms.gram_rows import Standard
from colonnade.solvers.algorithms.gram_steps import base_margin
from colonnade.solvers.algorithms.greedy import SELECT
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import quantise_slopes
from colonnade.solvers.designs.slopes import slopes_of

# Columns are clipped at so many deviations and then fill the grid; a residual at so many of the
# label's; the l1 ball has this radius, in deviations of columns and label, or in logits.
_REACH, _CLIP, _RADIUS = 2.5, 2.0, 2.4


def screened(
    given: Setting, standard: Standard, mechanism: Mechanism, count: int, *, keep: int
) -> IntArray:
    """Return the places of at most ``keep`` columns, by ``count`` private choices.

    Privacy: a choice is a signed selection among the inner products of columns, centred, scaled and
    clipped by released numbers to integers of at most ``GRID``, with slopes, clipped and truncated
    to integers of at most ``GRID``: replacing one row moves each score by at most ``2 GRID**2``.
    """
    classes = given.problem.loss.code == LOGISTIC_CODE
    unit = 1.0 if classes else standard.label_deviation
    base, clip = base_margin(standard, classes=classes), 1.0 if classes else _CLIP * unit
    columns, radius = _standardised(given, standard), _RADIUS * _REACH * unit
    margins, path = np.full(given.label.size, base), np.zeros(standard.features.size)

    def compute() -> IntArray:
        return _scores(given, columns, margins, clip)

    for number in range(count):
        feature, sign = given.release(SELECT, number, mechanism, compute)
        step = 2.0 / (number + 2.0)
        path *= 1.0 - step
        path[feature] -= step * radius * sign
        margins *= 1.0 - step
        margins += step * (base - radius * sign / GRID * columns[feature])
    largest = np.argsort(-np.abs(path), kind="stable")[:keep]
    return np.sort(largest[path[largest] != 0.0])


def _standardised(given: Setting, standard: Standard) -> Int16Array:
    """Return a copy of the columns, each filling the grid with the same number of deviations."""
    design = given.design.by_columns()
    found = np.empty((standard.features.size, design.shape[0]), np.int16)
    scale = 1.0 / (_REACH * np.sqrt(standard.variance))
    for place, feature in enumerate(standard.features.tolist()):
        column = design.dense(np.array([feature]))[0]
        moved = np.rint((column - standard.mean[place] * GRID) * scale[place])
        found[place] = np.clip(moved, -GRID, GRID).astype(np.int16)
    return found


def _scores(given: Setting, columns: Int16Array, margins: FloatArray, clip: float) -> IntArray:
    steep = slopes_of(given.problem.loss, margins, given.label)
    residual = np.empty(steep.size, np.int16)
    quantise_slopes(steep, GRID / clip, GRID, residual)
    return score(columns, residual)
