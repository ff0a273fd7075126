"""Coefficients in fixed point, on scaled features, and in standard deviations."""

from collections.abc import Mapping, Sequence

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.base import Part
from colonnade.methods.column_moments import ColumnMoments
from colonnade.methods.frank_wolfe.residual import COEF_UNIT, MAX_COEF
from colonnade.methods.moments.solver.scales import Scales

_MAX_INTERCEPT = 2.0**60

Kept = Sequence[tuple[Part, Sequence[int]]]  # each party's part, and the features left of it


def in_deviations(
    coef: Mapping[str, IntArray], kept: Kept, features: Mapping[str, ColumnMoments], label: float
) -> list[FloatArray]:
    """Return the coefficients of kept features by party, in standard deviations.

    ``label`` is the label's deviation.
    """
    return [
        coef[part.party][list(places)]
        / COEF_UNIT
        * (features[part.party].deviation[list(places)] / label)
        for part, places in kept
    ]


def fixed_point(
    x: FloatArray, kept: Kept, scales: Scales, label: float
) -> tuple[dict[str, IntArray], int]:
    """Turn a solution in standard deviations into fixed-point coefficients and intercept.

    ``label`` is the label's deviation.
    """
    coef, constant, first = {}, scales.label_mean * COEF_UNIT, 0
    for part, places in kept:
        known, whole = scales.features[part.party], np.zeros(len(part.features))
        mine = x[first : first + len(places)]
        whole[list(places)] = mine * label / known.deviation[list(places)]
        first += len(places)
        fixed = np.rint(np.clip(whole * COEF_UNIT, -MAX_COEF, MAX_COEF)).astype(np.int64)
        coef[part.party] = fixed
        for place in places:
            constant -= float(fixed[place]) * float(known.mean[place])
    return coef, round(min(max(constant, -_MAX_INTERCEPT), _MAX_INTERCEPT))
