"""What a wide party's choices are made against: the label, less small steps along its own path."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.vertical.residual import (
    CLIP_UNIT,
    COEF_UNIT,
    MAX_CLIP,
    MAX_COEF,
    MAX_Q,
    Q_UNIT,
    WEIGHT_UNIT,
    Public,
)
from colonnade.optim.vertical_moments.rows import BALL
from colonnade.optim.vertical_moments.spec import LABEL, MomentsSpec, Part
from colonnade.server.moment_scales import Scales, clipped

# Each chosen feature gets this coefficient, in standard deviations, with the sign that helps.
_STEP = 0.2

Choice = tuple[int, int]  # feature and sign of its score, which is minus its coefficient's
Bodies = Mapping[str, Mapping[str, bytes]]


def path_public(
    spec: MomentsSpec, part: Part, scales: Scales, choices: Sequence[Choice], bodies: Bodies
) -> Public:
    """Return the coefficients of the choices so far, and how to form a residual with them."""
    known = scales.features[part.party]
    coef = np.zeros(len(part.features))
    for feature, sign in choices:
        coef[feature] = -sign * _STEP * scales.label_deviation / float(known.deviation[feature])
    fixed = np.rint(np.clip(coef * COEF_UNIT, -MAX_COEF, MAX_COEF)).astype(np.int64)
    offset = scales.label_mean * COEF_UNIT if part.holds_label else 0.0
    for feature, _ in choices:
        offset -= float(fixed[feature]) * float(known.mean[feature])
    q, spread = np.zeros(spec.sketch_dim, np.int64), scales.label_deviation
    if not part.holds_label:
        q, spread = _label_rows(spec, scales, bodies)
    return Public(
        coef=fixed,
        q=q,
        weight=WEIGHT_UNIT,
        clip=min(max(round(spread * CLIP_UNIT), 1), MAX_CLIP),
        offset=round(min(max(offset, -MAX_COEF), MAX_COEF)),
    )


def _label_rows(spec: MomentsSpec, scales: Scales, bodies: Bodies) -> tuple[IntArray, float]:
    """Return the sketch of minus the label, and the deviation of its rows with the label's."""
    owner = next(part for part in spec.parts if part.holds_label)
    decoded = spec.made(owner, LABEL)[1].decode(bodies[owner.party][LABEL])
    slope = float(clipped((1.0,), spec.share_clip).slope[0])
    values = decoded * (-scales.label_deviation / slope / BALL)  # in half ranges
    spread = math.hypot(math.sqrt(float(np.mean(values**2))), scales.label_deviation)
    q = np.rint(np.clip(values * (GRID * Q_UNIT), -MAX_Q, MAX_Q)).astype(np.int64)
    return q, spread
