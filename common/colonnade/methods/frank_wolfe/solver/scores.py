"""Made-up values of a Frank-Wolfe job's score, from released moments and shared sketches.

Correlations are those that sketches show, of features that were shared, shrunk by how much of them
is noise. Others are unknown and taken for 0.
"""

from collections.abc import Mapping

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.methods.frank_wolfe.residual import COEF_UNIT
from colonnade.methods.frank_wolfe.solver.cross_term import ReleasedScales
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.made_up_scores import joined, made_up_scores
from colonnade.sketching.sparse import Sketch

# What a squared correlation is expected to be of features that are worth a share.
_SIGNAL = 0.1
# The least energy that is believed of a sketch, as a part of its noise.
_LEAST_ENERGY = 0.02

Shares = Mapping[str, Mapping[int, bytes]]


def scores_of(
    spec: FrankWolfeSpec,
    sketch: Sketch,
    scales: ReleasedScales,
    coef: Mapping[str, IntArray],
    shares: Shares,
) -> FloatArray:
    """Return made-up values of the score with these coefficients, about its mean."""
    used = {name: np.flatnonzero(part) for name, part in coef.items()}
    bodies = [shares.get(name, {}).get(int(f), b"") for name in used for f in used[name]]
    return made_up_scores(
        np.concatenate([coef[name][used[name]] / COEF_UNIT for name in used]),
        joined((scales.features[name], used[name].tolist()) for name in used),
        correlation=correlations(spec, sketch, bodies),
    )


def correlations(spec: FrankWolfeSpec, sketch: Sketch, bodies: list[bytes]) -> FloatArray:
    """Return the correlations of columns with these released sketches; empty if not shared."""
    found = np.eye(len(bodies))
    shared = [place for place, body in enumerate(bodies) if body]
    if len(shared) < 2:
        return found
    mechanism, code = spec.share(sketch)
    z = np.stack([code.decode(bodies[place]).astype(np.float64) for place in shared])
    noise = mechanism.sigma2 * (1.0 + 1.0 / 192.0)  # with that of packing
    products, floor = z @ z.T, _LEAST_ENERGY * sketch.dim * noise
    energy = np.maximum(np.diag(products) - sketch.dim * noise, floor)
    # Of an inner product of sketches over the columns' norms: of the sketch, and of its noise.
    part = noise / energy
    error2 = 1.0 / sketch.dim + np.add.outer(part, part) + sketch.dim * np.outer(part, part)
    seen = products / np.sqrt(np.outer(energy, energy)) * (_SIGNAL / (_SIGNAL + error2))
    np.fill_diagonal(seen, 1.0)
    found[np.ix_(shared, shared)] = np.clip(seen, -1.0, 1.0)
    return found
