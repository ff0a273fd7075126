"""A party's own statistics, decoded from its releases, and shrunk where noise dominates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.ball import BALL, DIAGONAL, OFF_DIAGONAL
from colonnade.linear.gram import floored
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.people import people, present
from colonnade.methods.moments.solver.scales import DecodedSketch, clipped
from colonnade.methods.moments.spec import GRAM, LABEL, MARGINALS, MomentsSpec

_FLOOR = 0.02
# The most that a squared correlation is on average, and the variance of what a released deviation
# is off by, in squares: what is assumed where noise rules.
_MAX_SIGNAL = 0.05
_VARIANCE_PRIOR = 0.04
# The least and the most that a ball is taken to leave of a variance; the least of a score's.
_LEFT = (0.2, 1.1)
_LEAST_OWN = 0.4

Bodies = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Local:
    """A party's own statistics, in standard deviations, and the noise of each kind of entry."""

    gram: FloatArray
    target: FloatArray
    left_off: FloatArray  # what shrinking took off the target
    diagonal_error: float
    gram_error: float
    target_error: float


def local_of(spec: MomentsSpec, part: Part, bodies: Bodies) -> Local:
    """Decode a party's Gram matrix and its products with the label."""
    gram, noise = _released(spec, part, bodies)
    kept = spec.kept(part)
    level = level_of(np.diag(gram)[:kept], noise / DIAGONAL)
    gram, noise = gram / level, noise / level
    if part.holds_label:
        target = gram[:kept, kept] / spec.label_weight
        target_error = noise / OFF_DIAGONAL / spec.label_weight
    else:
        target, target_error = _marginals(spec, part, bodies)
    # Noise alone has eigenvalues of this size; smaller ones would only be blown up by the solve.
    least = max(_FLOOR, noise / OFF_DIAGONAL * kept**0.5)
    signal = shrunk(target, target_error)
    return Local(
        gram=floored(shrunk_gram(gram[:kept, :kept], noise), least),
        target=signal,
        left_off=target - signal,
        diagonal_error=noise / DIAGONAL,
        gram_error=noise / OFF_DIAGONAL,
        target_error=target_error,
    )


def _released(spec: MomentsSpec, part: Part, bodies: Bodies) -> tuple[FloatArray, float]:
    """Return a party's Gram matrix as released, label last, and its noise before weights."""
    mechanism, code = spec.made(part, GRAM)
    size = spec.n_gram(part)
    upper = np.triu_indices(size)
    weights = np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)
    unit = spec.ball(part) ** 2 / (BALL**2 * present(spec, part, bodies))
    gram = np.zeros((size, size))
    gram[upper] = code.decode(bodies[part.party][GRAM]) * unit / weights
    return gram + np.triu(gram, 1).T, unit * mechanism.sigma2**0.5


@dataclass(frozen=True, slots=True)
class Unclipped:
    """What undoes the ball for one party's part of a score: factors of variance and covariance."""

    variance: float
    covariance: float


def unclipped(
    spec: MomentsSpec, part: Part, bodies: Bodies, coef: FloatArray, label_mean: float
) -> Unclipped:
    """Return what `local_of` leaves to be undone for coefficients ``coef``.

    It divides by what the ball left of the features' variances on average. The features that carry
    the score may have lost more or less, and rows with a rare label lose more than others. If the
    factor ``r**2`` of a row were a product of one part that depends on features and one that
    depends on the label, a product with the label would be left with
    ``E r**2 a**2 * E r**2 y**2 / E r**2`` of itself, and the diagonal has the first two. Of the
    third it shows a mean weighted by the rows' squared norms, which is smaller; its root is taken.
    Products with another party's label are not divided; there only the label's own clip, made for
    a normal one, is put right.
    """
    gram, noise = _released(spec, part, bodies)
    kept = spec.kept(part)
    left = np.diag(gram)[:kept]
    level = level_of(left, noise / DIAGONAL)
    weights = coef**2 / max(float(coef @ coef), 1e-30)
    error = noise / DIAGONAL * float(weights @ weights) ** 0.5
    sure = _VARIANCE_PRIOR / (_VARIANCE_PRIOR + error**2)
    own = 1.0 + sure * (float(weights @ np.clip(left, *_LEFT)) - 1.0) if coef.any() else level
    own = min(max(own, _LEAST_OWN), _LEFT[1])
    if not part.holds_label:
        return Unclipped(1.0, 1.0 / _two_class_slope(spec, label_mean))
    label = min(max(float(gram[kept, kept]) / spec.label_weight**2, _LEFT[0]), _LEFT[1])
    rows = float(np.trace(gram)) / (kept + spec.label_weight**2)
    rows = min(max(rows, _LEFT[0]), 1.0) ** 0.5
    return Unclipped(level / own, level * rows / (own * label))


def unclipped_values(spec: MomentsSpec, part: Part, bodies: Bodies) -> Unclipped:
    """Return the same for a label of many values, whatever the coefficients.

    A correlation survives a factor for each row that depends on all columns alike (it does so
    exactly for elliptical rows and their own norm), so a product is divided by the roots of what is
    left of both variances: of the label's and, as `local_of` did, of the features'. Rows that meet
    another party's label are scaled once, and not twice.
    """
    gram, noise = _released(spec, part, bodies)
    kept = spec.kept(part)
    level = level_of(np.diag(gram)[:kept], noise / DIAGONAL)
    if not part.holds_label:
        return Unclipped(1.0, level**-0.5)
    label = min(max(float(gram[kept, kept]) / spec.label_weight**2, _LEFT[0]), _LEFT[1])
    return Unclipped(1.0, (level / label) ** 0.5)


def _two_class_slope(spec: MomentsSpec, label_mean: float) -> float:
    """Return the slope of a clipped label of two classes over that of a normal one."""
    odds = math.sqrt((1.0 + label_mean) / (1.0 - label_mean))
    values, rates = np.array([1.0 / odds, -odds]), np.array([1.0 + label_mean, 1.0 - label_mean])
    inside = np.clip(values / spec.share_clip, -1.0, 1.0)
    slope = float(rates @ (inside * values)) / 2.0
    return slope / float(clipped((1.0,), spec.share_clip).slope[0])


def label_back(spec: MomentsSpec, bodies: Bodies) -> DecodedSketch:
    """Return the label's sketch as it is sent to those who do not hold the label."""
    owner = next(part for part in spec.parts if part.holds_label)
    decoded = spec.made(owner, LABEL)[1].decode(bodies[owner.party][LABEL])
    return DecodedSketch.of(decoded.reshape(1, -1), spec.cross_clip)


def _marginals(spec: MomentsSpec, part: Part, bodies: Bodies) -> tuple[FloatArray, float]:
    """Decode a party's products with the label's noisy rows; return them and their error."""
    mechanism, code = spec.made(part, MARGINALS)
    back, places = label_back(spec, bodies), [each.party for each in spec.parts]
    owner = next(at for at, each in enumerate(spec.parts) if each.holds_label)
    known = people(spec, bodies)[places.index(part.party)]
    own, n = float(known[places.index(part.party)]), float(known[owner])
    seen = code.decode(bodies[part.party][MARGINALS]) / (n * BALL**2)
    slope = float(clipped((1.0,), spec.share_clip).slope[0])
    gain = spec.ball(part) * float(back.inverse[0, 0]) / slope
    # Its own rows have mean square 1 / ball**2; the label's clipped rows are all but noise.
    variance = float(back.energy[0]) / spec.ball(part) ** 2 * own / n**2
    variance += mechanism.sigma2 / (n * BALL**2) ** 2
    return seen * gain, gain * variance**0.5


def shrunk(values: FloatArray, error: float) -> FloatArray:
    """Shrink correlations by how much of them is signal, taken together; noise alone gives 0.

    The mean square of as many numbers of pure noise errs by ``sqrt(2 / size)`` of itself: what it
    has above its expectation counts as signal only beyond that.
    """
    expected = error**2 * (1.0 + math.sqrt(2.0 / values.size))
    signal = min(max(float(np.mean(values**2)) - expected, 0.0), _MAX_SIGNAL)
    return values * (signal / max(signal + error**2, 1e-30))


def level_of(variances: FloatArray, error: float) -> float:
    """Return what the ball has left of the features' variances, which were 1, on average."""
    sure = _VARIANCE_PRIOR / (_VARIANCE_PRIOR + error**2 / variances.size)
    return min(max(1.0 + sure * (float(variances.mean()) - 1.0), 0.5), 1.5)


def shrunk_gram(gram: FloatArray, noise: float) -> FloatArray:
    """Draw a Gram matrix towards the identity where its entries are mostly noise."""
    off = ~np.eye(len(gram), dtype=bool)
    calm = np.eye(len(gram))
    own = _VARIANCE_PRIOR / (_VARIANCE_PRIOR + (noise / DIAGONAL) ** 2)
    calm[~off] += own * (np.diag(gram) - 1.0)
    if off.any():
        calm[off] = shrunk(gram[off], noise / OFF_DIAGONAL)
    return calm
