"""A party's own statistics, decoded from its releases, and shrunk where noise dominates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.gram import floored
from colonnade.methods.moments.rows import BALL, DIAGONAL, OFF_DIAGONAL
from colonnade.methods.moments.spec import (
    GRAM,
    LABEL,
    MARGINALS,
    MomentsSpec,
    Part,
)
from colonnade.server.methods.moments.scales import DecodedSketch, clipped

_FLOOR = 0.02
# The most that a squared correlation is on average, and the variance of what a released deviation
# is off by, in squares: what is assumed where noise rules.
_MAX_SIGNAL = 0.05
_VARIANCE_PRIOR = 0.04

Bodies = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Local:
    """A party's own statistics, in standard deviations, and the noise of each kind of entry."""

    gram: FloatArray
    target: FloatArray
    diagonal_error: float
    gram_error: float
    target_error: float


def local_of(spec: MomentsSpec, part: Part, bodies: Bodies) -> Local:
    """Decode a party's Gram matrix and its products with the label."""
    mechanism, code = spec.made(part, GRAM)
    size, kept = spec.n_gram(part), spec.kept(part)
    upper = np.triu_indices(size)
    weights = np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)
    unit = spec.ball(part) ** 2 / (BALL**2 * spec.n_rows)
    gram = np.zeros((size, size))
    gram[upper] = code.decode(bodies[part.party][GRAM]) * unit / weights
    gram = gram + np.triu(gram, 1).T
    noise = unit * mechanism.sigma2**0.5
    level = level_of(np.diag(gram)[:kept], noise / DIAGONAL)
    gram, noise = gram / level, noise / level
    if part.holds_label:
        target = gram[:kept, kept] / spec.label_weight
        target_error = noise / OFF_DIAGONAL / spec.label_weight
    else:
        target, target_error = _marginals(spec, part, bodies)
    # Noise alone has eigenvalues of this size; smaller ones would only be blown up by the solve.
    least = max(_FLOOR, noise / OFF_DIAGONAL * kept**0.5)
    return Local(
        gram=floored(calmed(gram[:kept, :kept], noise), least),
        target=shrunk(target, target_error),
        diagonal_error=noise / DIAGONAL,
        gram_error=noise / OFF_DIAGONAL,
        target_error=target_error,
    )


def label_back(spec: MomentsSpec, bodies: Bodies) -> DecodedSketch:
    """Return the label's sketch as it is sent to those who do not hold the label."""
    owner = next(part for part in spec.parts if part.holds_label)
    decoded = spec.made(owner, LABEL)[1].decode(bodies[owner.party][LABEL])
    return DecodedSketch.of(decoded.reshape(1, -1), spec.cross_clip)


def _marginals(spec: MomentsSpec, part: Part, bodies: Bodies) -> tuple[FloatArray, float]:
    """Decode a party's products with the label's noisy rows; return them and their error."""
    mechanism, code = spec.made(part, MARGINALS)
    back, n = label_back(spec, bodies), spec.n_rows
    seen = code.decode(bodies[part.party][MARGINALS]) / (n * BALL**2)
    slope = float(clipped((1.0,), spec.share_clip).slope[0])
    gain = spec.ball(part) * float(back.inverse[0, 0]) / slope
    # Its own rows have mean square 1 / ball**2; the label's clipped rows are all but noise.
    variance = float(back.energy[0]) / spec.ball(part) ** 2 / n
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


def calmed(gram: FloatArray, noise: float) -> FloatArray:
    """Draw a Gram matrix towards the identity where its entries are mostly noise."""
    off = ~np.eye(len(gram), dtype=bool)
    calm = np.eye(len(gram))
    own = _VARIANCE_PRIOR / (_VARIANCE_PRIOR + (noise / DIAGONAL) ** 2)
    calm[~off] += own * (np.diag(gram) - 1.0)
    if off.any():
        calm[off] = shrunk(gram[off], noise / OFF_DIAGONAL)
    return calm
