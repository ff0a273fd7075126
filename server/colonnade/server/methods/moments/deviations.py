"""Standard deviations of features as the releases of a moments job tell them."""

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.ball import BALL, DIAGONAL
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.estimates import Bodies
from colonnade.methods.moments.solver.people import present
from colonnade.methods.moments.solver.scales import Scales, clipped
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import GRAM, MEANS, MomentsSpec
from colonnade.server.methods.deviations import (
    Deviations,
    SpreadEstimate,
    mean_noise2,
    opening_spread,
)
from colonnade.server.methods.vertical import VerticalJob

# What drawing rows into the ball does to a variance beyond what it does to normal rows.
_BALL_ERROR = 0.2


def gram_spread(
    spec: MomentsSpec, part: Part, bodies: Bodies, opened: FloatArray
) -> SpreadEstimate:
    """Estimate variances of kept features from the diagonal of a released Gram matrix.

    It holds squares about the released mean, in deviations as the opening gave them, of rows drawn
    into a ball: what that takes of normal rows is put back, and as much again counts as error.
    ``opened`` are those deviations.
    """
    mechanism, code = spec.made(part, GRAM)
    size, kept = spec.n_gram(part), spec.kept(part)
    rows, columns = np.triu_indices(size)
    diagonal = code.decode(bodies[part.party][GRAM])[rows == columns][:kept]
    ball, count = spec.ball(part), present(spec, part, bodies)
    weights = (1.0,) * kept + (spec.label_weight,) * part.holds_label
    left = clipped(weights, ball).energy[:kept] * ball**2
    unit = ball**2 / (BALL**2 * count) / DIAGONAL / left * opened**2
    noise2 = mean_noise2(count, spec.made(part, MEANS)[0])
    variance = diagonal * unit - noise2
    noise = mechanism.sigma2 * unit**2 + 2.0 * noise2**2
    return SpreadEstimate(variance, np.sqrt(noise + (_BALL_ERROR * np.maximum(variance, 0.0)) ** 2))


def moments_deviations(algorithm: VerticalJob, state: MomentsState) -> Deviations:
    """Return what means and Gram matrices tell of features' deviations."""
    solver: MomentsSolver = algorithm.solver
    spec, found = solver.spec, {}
    if not all(MEANS in held for held in state.bodies.values()):
        return {}
    scales = Scales.of(spec, state.bodies)
    for part in spec.parts:
        mechanism, code = spec.made(part, MEANS)
        noisy = code.decode(state.bodies[part.party][MEANS])
        opening = opening_spread(noisy, present(spec, part, state.bodies), mechanism)
        variance, error = opening.variance.copy(), opening.error.copy()
        if GRAM in state.bodies[part.party]:
            kept, opened = solver.kept(state, part), scales.features[part.party]
            finer = gram_spread(spec, part, state.bodies, opened.deviation[kept])
            both = finer.beside(SpreadEstimate(variance[kept], error[kept]))
            variance[kept], error[kept] = both.variance, both.error
        found[part.party] = SpreadEstimate(variance, error).deviations()[: len(part.features)]
    return found
