"""Directions of parties, and the inner products between them that are bought, with noise.

The products carry noise as large as many of them are: they are denoised together, as a positive
low-rank matrix, which is what common causes of columns at different parties make.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.ball import BALL
from colonnade.linear.gram import floored, ridge
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.estimates import Bodies, Local
from colonnade.methods.moments.solver.people import people
from colonnade.methods.moments.solver.scales import DecodedSketch, clipped
from colonnade.methods.moments.spec import CROSS, SHARE, MomentsSpec

# Fixed point of directions in the coordinator's state.
BASIS_UNIT = 2**32
# Weights of shared directions, first to last: the later ones matter less.
_WEIGHTS = (1.0, 0.8, 0.6, 0.5)
_RIDGE, _FEATURE_RIDGE = 0.5, 0.05
_FLOOR = 0.02
_THRESHOLD = 1.0
_PASSES = 80
_MAX_ALIGNED = 0.95

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Products:
    """Inner products between directions of two parties, per row, and their noise variances."""

    values: FloatArray  # (probes of the prober, directions of the sharer)
    variances: FloatArray


def share_weights(count: int) -> tuple[float, ...]:
    """Return the weights of ``count`` shared directions."""
    return tuple(_WEIGHTS[min(place, len(_WEIGHTS) - 1)] for place in range(count))


def others_back(spec: MomentsSpec, part: Part, bodies: Bodies) -> DecodedSketch:
    """Return the directions of all other parties as they are sent to ``part``."""
    decoded = [_shared(spec, other, bodies) for other in spec.others(part)]
    return DecodedSketch.of(np.concatenate(decoded), spec.cross_clip)


def _shared(spec: MomentsSpec, part: Part, bodies: Bodies) -> IntArray:
    decoded = spec.made(part, SHARE)[1].decode(bodies[part.party][SHARE])
    return decoded.reshape(-1, spec.sketch_dim)


@dataclass(frozen=True, slots=True)
class Directions:
    """A party's directions: what is shared and probed is their part that the label leaves over.

    What two directions have in common through a label that both parties hold is known almost
    exactly from their Gram matrices; only the rest is bought, and has less variance to hide.
    """

    basis: FloatArray  # (n_directions, kept), orthonormal under the party's Gram matrix
    aligned: FloatArray  # correlation of each with the label, where all parties hold it; else 0

    @classmethod
    def of(cls, fixed: IntArray) -> "Directions":
        """Read what `basis_of` made."""
        plain = fixed / BASIS_UNIT
        return cls(plain[:, :-1], plain[:, -1])

    @property
    def left(self) -> FloatArray:
        """Deviation of what the label leaves of each direction."""
        return np.sqrt(1.0 - self.aligned**2)

    def matrix(self) -> tuple[FloatArray, FloatArray]:
        """Return coefficients of features and label whose result has deviation 1."""
        return self.basis / self.left[:, None], -self.aligned / self.left


def basis_of(local: Local, *, shared: int, probes: int, label: bool) -> IntArray:
    """Return ``probes`` directions and their correlations with the label, in ``BASIS_UNIT``.

    First those to share: the party's own prediction of the label, then its leading principal
    components. Then single features, those first that matter most in the prediction. Without
    ``label``, which not all parties hold, the correlations are left at 0.
    """
    own = ridge(local.gram, local.target, _RIDGE)
    _, vectors = np.linalg.eigh(local.gram)
    components = list(vectors.T[::-1])
    size = np.abs(ridge(local.gram, local.target, _FEATURE_RIDGE))
    features = list(np.eye(len(size))[np.argsort(-size, kind="stable")])
    cut = shared - 1
    found: list[FloatArray] = []
    for direction in (own, *components[:cut], *features, *components[cut:]):
        left = orthonormal(direction, found, local.gram)
        if left is not None:
            found.append(left)
        if len(found) == probes:
            break
    basis = np.stack(found)
    aligned = np.clip(basis @ local.target, -_MAX_ALIGNED, _MAX_ALIGNED) * label
    return np.rint(np.column_stack([basis, aligned]) * BASIS_UNIT).astype(np.int64)


def orthonormal(
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


def products_of(
    spec: MomentsSpec, bodies: Bodies, directions: Sequence[Directions]
) -> dict[Pair, Products]:
    """Decode all inner products between directions: by places of the prober and the sharer."""
    found, counts = {}, people(spec, bodies)
    for place, part in enumerate(spec.parts):
        mechanism, code = spec.made(part, CROSS)
        back, probes = others_back(spec, part, bodies), spec.n_probes(part)
        own = clipped((1.0,) * probes, spec.probe_clip * probes**0.5)
        seen = code.decode(bodies[part.party][CROSS]).reshape(probes, -1) / BALL**2
        values = seen @ back.inverse / own.slope[:, None]
        noise = own.energy[:, None] * back.energy[None, :] * counts[place, place]
        noise = noise + mechanism.sigma2 / BALL**4
        variances = noise @ back.inverse**2 / own.slope[:, None] ** 2
        first = 0
        for sharer, other in enumerate(spec.parts):
            if sharer == place:
                continue
            slope = _share_slope(spec, other)
            chosen = slice(first, first + slope.size)
            mine, theirs = directions[place], directions[sharer]
            left = np.outer(mine.left, theirs.left[: slope.size] / slope) / counts[place, sharer]
            known = np.outer(mine.aligned, theirs.aligned[: slope.size])
            found[place, sharer] = Products(
                values[:, chosen] * left + known, variances[:, chosen] * left**2
            )
            first += slope.size
    return found


def _share_slope(spec: MomentsSpec, part: Part) -> FloatArray:
    """Return the slopes of shared directions, weighted and clipped, on the plain ones."""
    weights = share_weights(spec.n_directions(part))
    radius = spec.share_clip * sum(weight**2 for weight in weights) ** 0.5
    slope: FloatArray = clipped(weights, radius).slope * np.array(weights)
    return slope


def joined(spec: MomentsSpec, products: Mapping[Pair, Products]) -> tuple[FloatArray, FloatArray]:
    """Return the products of all parties' probes, joined from both sides, and their precisions."""
    spans = spans_of([spec.n_probes(part) for part in spec.parts])
    size = spans[-1].stop
    seen, precision = np.zeros((size, size)), np.zeros((size, size))
    for (prober, sharer), found in products.items():
        count, first = found.values.shape[1], spans[sharer].start
        here = spans[prober], slice(first, first + count)
        seen[here], precision[here] = found.values / found.variances, 1.0 / found.variances
    seen, precision = seen + seen.T, precision + precision.T
    return seen / np.maximum(precision, 1e-30), precision


def denoised(spec: MomentsSpec, products: Mapping[Pair, Products]) -> FloatArray:
    """Return the products of all parties' probes, as one positive matrix of low rank.

    Minimises ``sum (M - L)**2 / (2 variance) + threshold * trace(L)`` over positive ``L`` by
    proximal gradient steps; blocks of one party and products that nobody measured are free.
    """
    seen, precision = joined(spec, products)
    most = float(precision.max())
    weight = precision / most
    cells = float(np.mean(np.count_nonzero(weight, axis=1)))
    cut = _THRESHOLD * (cells / most) ** 0.5
    low_rank = np.zeros_like(seen)
    for _ in range(_PASSES):
        values, vectors = np.linalg.eigh(low_rank - weight * (low_rank - seen))
        low_rank = (vectors * np.maximum(values - cut, 0.0)) @ vectors.T
    return np.where(weight > 0.0, low_rank, 0.0)


def spans_of(counts: Sequence[int]) -> list[slice]:
    """Return where blocks of these sizes lie, one after another."""
    ends = list(itertools.accumulate(counts, initial=0))
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """All kept features of all parties together."""

    gram: FloatArray
    target: FloatArray
    error: float  # of an inner product seen from both sides, or with the label if none was bought


def estimate(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
) -> Estimate:
    """Join all blocks; where nothing was bought, parties have in common what the label tells."""
    spans = spans_of([len(local.target) for local in locals_])
    target = np.concatenate([local.target for local in locals_])
    columns = spans_of([len(each.basis) for each in directions])
    loads = np.zeros((len(target), columns[-1].stop))
    for span, column, local, each in zip(spans, columns, locals_, directions, strict=True):
        loads[span, column] = local.gram @ each.basis.T
    between = denoised(spec, products) if products else through_label(locals_, directions)
    gram = loads @ between @ loads.T
    for span, local in zip(spans, locals_, strict=True):
        gram[span, span] = local.gram
    error = float(np.mean([local.target_error for local in locals_]))
    if products:
        error = float(np.mean([each.variances[0, 0] for each in products.values()]) / 2.0) ** 0.5
    return Estimate(floored(gram, _FLOOR), target, error)


def through_label(locals_: Sequence[Local], directions: Sequence[Directions]) -> FloatArray:
    """Return the products of all parties' probes if they had nothing in common but the label.

    A guard where nothing was bought. Adding up what parties find alone counts what they have in
    common once for each; taking the product of two predictions' correlations with the label for
    their own is half way: right if the label is what causes both, too much for independent columns,
    too little for columns that are nearly the same.
    """
    aligned = [
        np.clip(each.basis @ local.target, -_MAX_ALIGNED, _MAX_ALIGNED)
        for local, each in zip(locals_, directions, strict=True)
    ]
    concat = np.concatenate(aligned)
    products: FloatArray = np.outer(concat, concat)
    for span in spans_of([len(each) for each in aligned]):
        products[span, span] = 0.0
    return products
