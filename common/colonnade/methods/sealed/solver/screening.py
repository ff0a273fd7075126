"""Which features of a wide party are kept: a greedy path on released products, free of cost."""

import math

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.methods.base import Part
from colonnade.methods.moments.solver.estimates import shrunk
from colonnade.methods.sealed.solver.estimates import Bodies, own_gram, products
from colonnade.methods.sealed.spec import SealedSpec

_RIDGE = 0.05


def screened(spec: SealedSpec, part: Part, bodies: Bodies) -> tuple[int, ...]:
    """Return the features that are kept of a wide party, in order.

    Products with the label alone would keep many columns that tell the same; the path takes what
    the chosen ones explain out of the rest (orthogonal matching pursuit: Pati et al. 1993).
    """
    own, count = own_gram(spec, part, bodies, wide=True), len(part.features)
    gram = own.gram[:count, :count].copy()
    off = ~np.eye(count, dtype=bool)
    gram[off] = shrunk(gram[off], own.error)
    np.fill_diagonal(gram, 1.0)
    if part.holds_label:
        target = own.gram[:count, count] / spec.label_weight
    else:
        found, _ = products(spec, spec.owner, part, bodies, label=True)
        target = found[:, 0] / math.sqrt(own.level)
    return greedy(gram, target, spec.keep)


def greedy(gram: FloatArray, target: FloatArray, keep: int) -> tuple[int, ...]:
    """Return the places that a greedy path chooses, in order of place."""
    ridged, chosen, left = gram + _RIDGE * np.eye(len(target)), list[int](), target
    for _ in range(min(keep, len(target))):
        size = np.abs(left)
        size[chosen] = -1.0
        chosen.append(int(size.argmax()))
        x = np.linalg.solve(ridged[np.ix_(chosen, chosen)], target[chosen])
        left = target - ridged[:, chosen] @ x
    return tuple(sorted(chosen))
