"""One Gram matrix from local ones and a few noisy inner products between parties.

Blocks of one party are released almost exactly. Between parties only the inner products of a few
directions are known, with noise as large as many of them: they are denoised together, as a
positive low-rank matrix, which is what common causes of columns at different parties make.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.optim.vertical_moments.rows import BALL, DIAGONAL, OFF_DIAGONAL
from colonnade.optim.vertical_moments.spec import (
    CROSS,
    GRAM,
    LABEL,
    MARGINALS,
    SHARE,
    MomentsSpec,
    Part,
)
from colonnade.server.moment_scales import Back, clipped
from colonnade.server.solve import floored

# Fixed point of directions in the coordinator's state.
BASIS_UNIT = 2**32
# Weights of shared directions, first to last: the later ones matter less.
_WEIGHTS = (1.0, 0.8, 0.6, 0.5)
_FLOOR = 0.02
_RIDGE = 0.5
_THRESHOLD = 1.0
_CAUTION = 0.3
_PASSES = 80
# The most that a squared correlation is on average, and the variance of what a released deviation
# is off by, in squares: what is assumed where noise rules.
_MOST_SIGNAL = 0.25
_VARIANCE_PRIOR = 0.04

Bodies = Mapping[str, Mapping[str, bytes]]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Local:
    """A party's own statistics, in standard deviations, and the noise of each kind of entry."""

    gram: FloatArray
    target: FloatArray
    diagonal_error: float
    gram_error: float
    target_error: float


@dataclass(frozen=True, slots=True)
class Products:
    """Inner products between directions of two parties, per row, and their noise variances."""

    values: FloatArray  # (probes of the later party, directions of the earlier one)
    variances: FloatArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """All kept features of all parties together."""

    gram: FloatArray
    target: FloatArray


def share_weights(count: int) -> tuple[float, ...]:
    """Return the weights of ``count`` shared directions."""
    return tuple(_WEIGHTS[min(place, len(_WEIGHTS) - 1)] for place in range(count))


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
    if part.holds_label:
        target = gram[:kept, kept] / spec.label_weight
        target_error = noise / OFF_DIAGONAL / spec.label_weight
    else:
        target, target_error = _marginals(spec, part, bodies)
    return Local(
        gram=floored(_calmed(gram[:kept, :kept], noise), _FLOOR),
        target=shrunk(target, target_error),
        diagonal_error=noise / DIAGONAL,
        gram_error=noise / OFF_DIAGONAL,
        target_error=target_error,
    )


def label_back(spec: MomentsSpec, bodies: Bodies) -> Back:
    """Return the label's sketch as it is sent to those who do not hold the label."""
    owner = next(part for part in spec.parts if part.holds_label)
    decoded = spec.made(owner, LABEL)[1].decode(bodies[owner.party][LABEL])
    return Back.of(decoded.reshape(1, -1), spec.cross_clip)


def earlier_back(spec: MomentsSpec, part: Part, bodies: Bodies) -> Back:
    """Return the directions of all earlier parties as they are sent to ``part``."""
    decoded = [_shared(spec, other, bodies) for other in spec.parts[: spec.place(part.party)]]
    return Back.of(np.concatenate(decoded), spec.cross_clip)


def _shared(spec: MomentsSpec, part: Part, bodies: Bodies) -> IntArray:
    decoded = spec.made(part, SHARE)[1].decode(bodies[part.party][SHARE])
    return decoded.reshape(-1, spec.sketch_dim)


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
    """Shrink correlations by how much of them is signal, taken together; noise alone gives 0."""
    signal = min(max(float(np.mean(values**2)) - error**2, 0.0), _MOST_SIGNAL)
    return values * (signal / max(signal + error**2, 1e-30))


def _calmed(gram: FloatArray, noise: float) -> FloatArray:
    """Draw a Gram matrix towards the identity where its entries are mostly noise."""
    off = ~np.eye(len(gram), dtype=bool)
    calm = np.eye(len(gram))
    own = _VARIANCE_PRIOR / (_VARIANCE_PRIOR + (noise / DIAGONAL) ** 2)
    calm[~off] += own * (np.diag(gram) - 1.0)
    if off.any():
        calm[off] = shrunk(gram[off], noise / OFF_DIAGONAL)
    return calm


def basis_of(local: Local, count: int) -> IntArray:
    """Return ``count`` directions, orthonormal under the Gram matrix, in ``BASIS_UNIT``.

    First the party's own prediction of the label, then its leading principal components.
    """
    size = len(local.target)
    own = np.linalg.solve(local.gram + _RIDGE * np.eye(size), local.target)
    _, vectors = np.linalg.eigh(local.gram)
    found: list[FloatArray] = []
    for direction in (own, *vectors.T[::-1]):
        left = _orthonormal(direction, found, local.gram)
        if left is not None:
            found.append(left)
        if len(found) == count:
            break
    return np.rint(np.stack(found) * BASIS_UNIT).astype(np.int64)


def _orthonormal(
    direction: FloatArray, others: Sequence[FloatArray], gram: FloatArray
) -> FloatArray | None:
    """Return what is left of a direction beside others, or None if it is hardly anything."""
    before = float(direction @ gram @ direction) ** 0.5
    if before < 1e-12:
        return None
    left = direction / before
    for _ in range(2):  # twice is enough, in spite of rounding
        for other in others:
            left = left - other * float(other @ gram @ left)
    after = float(left @ gram @ left) ** 0.5
    return left / after if after > 1e-3 else None


def products_of(spec: MomentsSpec, bodies: Bodies) -> dict[Pair, Products]:
    """Decode all inner products between directions: by places of the later and earlier party."""
    found, n = {}, spec.n_rows
    for place, part in enumerate(spec.parts):
        if not place:
            continue
        mechanism, code = spec.made(part, CROSS)
        back, probes = earlier_back(spec, part, bodies), spec.n_probes(part)
        own = clipped((1.0,) * probes, spec.probe_clip * probes**0.5)
        seen = code.decode(bodies[part.party][CROSS]).reshape(probes, -1) / (n * BALL**2)
        values = seen @ back.inverse / own.slope[:, None]
        noise = own.energy[:, None] * back.energy[None, :] / n
        noise = noise + mechanism.sigma2 / (n * BALL**2) ** 2
        variances = noise @ back.inverse**2 / own.slope[:, None] ** 2
        first = 0
        for earlier, other in enumerate(spec.parts[:place]):
            count = spec.n_directions(other)
            weights = share_weights(count)
            radius = spec.share_clip * sum(weight**2 for weight in weights) ** 0.5
            slope = clipped(weights, radius).slope * np.array(weights)
            chosen = slice(first, first + count)
            found[place, earlier] = Products(
                values[:, chosen] / slope, variances[:, chosen] / slope**2
            )
            first += count
    return found


def denoised(spec: MomentsSpec, products: Mapping[Pair, Products]) -> dict[Pair, FloatArray]:
    """Return the products, as parts of one positive matrix of low rank under the noise.

    Minimises ``sum (M - L)**2 / (2 variance) + threshold * trace(L)`` over positive ``L`` by
    proximal gradient steps; blocks of one party and products that nobody measured are free.
    """
    counts = [spec.n_probes(part) for part in spec.parts]
    starts = np.concatenate([[0], np.cumsum(counts)])
    size = int(starts[-1])
    seen, weight = np.zeros((size, size)), np.zeros((size, size))
    least = min(float(found.variances.min()) for found in products.values())
    for (later, earlier), found in products.items():
        here = _block(starts, later, earlier, found.values.shape[1])
        seen[here], weight[here] = found.values, least / found.variances
    seen, weight = seen + seen.T, weight + weight.T
    cells = np.mean(np.count_nonzero(weight, axis=1))
    cut = _THRESHOLD * float(np.sqrt(least * cells))
    low_rank = np.zeros((size, size))
    for _ in range(_PASSES):
        values, vectors = np.linalg.eigh(low_rank - weight * (low_rank - seen))
        low_rank = (vectors * np.maximum(values - cut, 0.0)) @ vectors.T
    return {
        (later, earlier): low_rank[_block(starts, later, earlier, found.values.shape[1])]
        for (later, earlier), found in products.items()
    }


def _block(starts: IntArray, later: int, earlier: int, count: int) -> tuple[slice, slice]:
    first = int(starts[earlier])
    return slice(int(starts[later]), int(starts[later + 1])), slice(first, first + count)


def estimate(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    bases: Sequence[FloatArray],
    products: Mapping[Pair, Products],
) -> Estimate:
    """Join all blocks.

    Own blocks are raised a little along the shared directions, by the error of what lies between
    parties: a guard against a radius that is too wide.
    """
    starts = np.concatenate([[0], np.cumsum([len(local.target) for local in locals_])])
    gram = np.zeros((int(starts[-1]), int(starts[-1])))
    spans = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts)]
    loads = [local.gram @ basis.T for local, basis in zip(locals_, bases, strict=True)]
    for part, span, local, load in zip(spec.parts, spans, locals_, loads, strict=True):
        gram[span, span] = local.gram
        if products:
            error = float(np.mean([p.variances[0, 0] for p in products.values()])) ** 0.5
            shared = load[:, : spec.n_directions(part)]
            gram[span, span] += _CAUTION * error * shared @ shared.T
    clean = denoised(spec, products) if products else {}
    for (later, earlier), values in clean.items():
        block = loads[later] @ values @ loads[earlier][:, : values.shape[1]].T
        gram[spans[later], spans[earlier]] = block
        gram[spans[earlier], spans[later]] = block.T
    target = np.concatenate([local.target for local in locals_])
    return Estimate(floored(gram, _FLOOR), target)
