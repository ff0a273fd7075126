"""Standard deviations of features as far as releases tell them, and coefficients on that scale.

A coefficient on scaled values says what a move over half the bounds does, so that wide bounds make
it large: only coefficients for one standard deviation compare. Both vertical methods open with sums
and sums of squares; a moments job goes on to release Gram matrices, whose diagonals are finer.

Privacy: functions of releases and public numbers only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.data.model import LinearModel
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.moments.rows import BALL, DIAGONAL
from colonnade.methods.moments.spec import GRAM, MEANS, MomentsSpec, Part
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.server.methods.frank_wolfe.job import VerticalFrankWolfe
from colonnade.server.methods.frank_wolfe.steps import Iterate
from colonnade.server.methods.moments.estimates import Bodies
from colonnade.server.methods.moments.job import VerticalMoments
from colonnade.server.methods.moments.scales import Scales, clipped
from colonnade.server.methods.moments.steps import MomentsSolver, MomentsState

# A variance that is less than so many of its errors is hidden by noise.
_SURE = 2.0
# What drawing rows into the ball does to a variance beyond what it does to normal rows.
_BALL_ERROR = 0.2

Deviations = Mapping[str, list[float | None]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Variances of columns in squared half ranges, and the errors that noise gives them."""

    variance: FloatArray
    error: FloatArray

    def beside(self, other: "Spread") -> "Spread":
        """Return both estimates of the same variances, weighted by how sure each is."""
        ours, theirs = 1.0 / self.error**2, 1.0 / other.error**2
        mean = (ours * self.variance + theirs * other.variance) / (ours + theirs)
        return Spread(mean, 1.0 / np.sqrt(ours + theirs))

    def deviations(self) -> list[float | None]:
        """Return deviations in half ranges; None where noise hides one."""
        sure = self.variance > _SURE * self.error
        pairs = zip(self.variance.tolist(), sure.tolist(), strict=True)
        return [variance**0.5 if known else None for variance, known in pairs]


def opening_spread(noisy: IntArray, n_rows: int, mechanism: DiscreteGaussian) -> Spread:
    """Estimate variances from released sums and sums of squares, free of bias by noise.

    A mean's noise has variance ``v``, so its square is too large by ``v`` in expectation.
    """
    found = noisy.astype(np.float64) / (n_rows * GRID)
    count = found.size // 2
    mean, square, noise2 = found[:count], found[count:], _mean_noise2(n_rows, mechanism)
    error = np.sqrt(noise2 * (1.0 + 4.0 * np.clip(mean, -1.0, 1.0) ** 2) + 2.0 * noise2**2)
    return Spread(square - mean**2 + noise2, error)


def gram_spread(spec: MomentsSpec, part: Part, bodies: Bodies, opened: FloatArray) -> Spread:
    """Estimate variances of kept features from the diagonal of a released Gram matrix.

    It holds squares about the released mean, in deviations as the opening gave them, of rows drawn
    into a ball: what that takes of normal rows is put back, and as much again counts as error.
    ``opened`` are those deviations.
    """
    mechanism, code = spec.made(part, GRAM)
    size, kept = spec.n_gram(part), spec.kept(part)
    rows, columns = np.triu_indices(size)
    diagonal = code.decode(bodies[part.party][GRAM])[rows == columns][:kept]
    ball = spec.ball(part)
    weights = (1.0,) * kept + (spec.label_weight,) * part.holds_label
    left = clipped(weights, ball).energy[:kept] * ball**2
    unit = ball**2 / (BALL**2 * spec.n_rows) / DIAGONAL / left * opened**2
    noise2 = _mean_noise2(spec.n_rows, spec.made(part, MEANS)[0])
    variance = diagonal * unit - noise2
    noise = mechanism.sigma2 * unit**2 + 2.0 * noise2**2
    return Spread(variance, np.sqrt(noise + (_BALL_ERROR * np.maximum(variance, 0.0)) ** 2))


def _mean_noise2(n_rows: int, mechanism: DiscreteGaussian) -> float:
    return mechanism.sigma2 / (n_rows * GRID) ** 2


def deviations_of(algorithm: object, state: Any) -> Deviations:
    """Return what a job's releases tell of features' deviations, by party, in half ranges.

    Empty if nothing of the kind was released; None in place of a deviation that noise hides.
    """
    match algorithm:
        case VerticalFrankWolfe():
            return _by_opening(algorithm.spec, state)
        case VerticalMoments():
            return _by_moments(algorithm.solver, state)
    return {}


def _by_opening(spec: FrankWolfeSpec, state: Iterate) -> Deviations:
    found = {}
    for block in spec.blocks if spec.mean_units and state.means else ():
        mechanism, code = spec.means(block)
        spread = opening_spread(code.decode(state.means[block.party]), spec.n_rows, mechanism)
        found[block.party] = spread.deviations()[: len(block.features)]
    return found


def _by_moments(solver: MomentsSolver, state: MomentsState) -> Deviations:
    spec, found = solver.spec, {}
    if not all(MEANS in held for held in state.bodies.values()):
        return {}
    scales = Scales.of(spec, state.bodies)
    for part in spec.parts:
        mechanism, code = spec.made(part, MEANS)
        noisy = code.decode(state.bodies[part.party][MEANS])
        opening = opening_spread(noisy, spec.n_rows, mechanism)
        variance, error = opening.variance.copy(), opening.error.copy()
        if GRAM in state.bodies[part.party]:
            kept, opened = solver.kept(state, part), scales.features[part.party]
            finer = gram_spread(spec, part, state.bodies, opened.deviation[kept])
            both = finer.beside(Spread(variance[kept], error[kept]))
            variance[kept], error[kept] = both.variance, both.error
        found[part.party] = Spread(variance, error).deviations()[: len(part.features)]
    return found


def per_deviation(algorithm: object, state: Any, model: LinearModel) -> dict[str, Any] | None:
    """Return coefficients for one standard deviation of each feature, as JSON values.

    In the label's unit for squared error, else as the score counts. None if no deviation was
    released; None in place of numbers that noise hides.
    """
    known = {party: iter(found) for party, found in deviations_of(algorithm, state).items()}
    if not known:
        return None
    features = []
    for feature, coef in zip(model.features, model.coef, strict=True):
        share = next(known[feature.party])
        deviation = None if share is None else share * feature.bounds.half_width
        features.append(
            {
                "party": feature.party,
                "name": feature.name,
                "deviation": deviation,
                "coef": coef * (deviation or 0.0) if deviation or not coef else None,
            }
        )
    return {"features": features}
