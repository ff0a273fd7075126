"""What a wide party's choices are made against: the label, less small steps along its own path."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import BALL
from colonnade.methods.base import Part
from colonnade.methods.frank_wolfe.residual import COEF_UNIT, MAX_COEF, TaskParameters
from colonnade.methods.moments.solver.scales import Scales, clipped
from colonnade.methods.moments.spec import LABEL, MomentsSpec

# Each chosen feature gets this coefficient, in standard deviations, with the sign that helps.
_STEP = 0.2

Choice = tuple[int, int]  # feature and sign of its score, which is minus its coefficient's
Bodies = Mapping[str, Mapping[str, bytes]]


def path_public(
    spec: MomentsSpec, part: Part, scales: Scales, choices: Sequence[Choice], bodies: Bodies
) -> TaskParameters:
    """Return the coefficients of the choices so far, and how to form a residual with them."""
    known = scales.features[part.party]
    coef = np.zeros(len(part.features))
    for feature, sign in choices:
        coef[feature] = -sign * _STEP * scales.label_deviation / float(known.deviation[feature])
    fixed = np.rint(np.clip(coef * COEF_UNIT, -MAX_COEF, MAX_COEF)).astype(np.int64)
    offset = scales.label_mean * COEF_UNIT if part.holds_label else 0.0
    for feature, _ in choices:
        offset -= float(fixed[feature]) * float(known.mean[feature])
    q, spread = np.zeros(spec.sketch_dim), scales.label_deviation
    if not part.holds_label:
        q, spread = _label_rows(spec, scales, bodies)
    return TaskParameters.saturated(fixed, q, clip=spread, offset=offset)


def _label_rows(spec: MomentsSpec, scales: Scales, bodies: Bodies) -> tuple[FloatArray, float]:
    """Return minus the label's sketch in grid steps, and its rows' deviation with the label's."""
    owner = next(part for part in spec.parts if part.holds_label)
    decoded = spec.made(owner, LABEL)[1].decode(bodies[owner.party][LABEL])
    slope = float(clipped((1.0,), spec.share_clip).slope[0])
    values = decoded.astype(np.float64) * (-scales.label_deviation / slope / BALL)  # in half ranges
    spread = math.hypot(math.sqrt(float(np.mean(values**2))), scales.label_deviation)
    return values * GRID, spread
