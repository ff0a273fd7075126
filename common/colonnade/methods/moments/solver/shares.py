"""The share of the label's variance that coefficients explain, estimated from releases."""

from collections.abc import Mapping, Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.explained import VarianceShares
from colonnade.methods.moments.solver.directions import (
    Directions,
    Pair,
    Products,
    estimate,
    spans_of,
)
from colonnade.methods.moments.solver.estimates import (
    Bodies,
    Local,
    unclipped,
    unclipped_values,
)
from colonnade.methods.moments.solver.intervals import unknown
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Loss


def shares_of(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
) -> VarianceShares:
    """Return shares as the job's estimates have them, clipped rows and all.

    Estimates are shrunk by how much of them is noise, so what the noise adds to a solution that was
    fitted to it is taken off already, on average.
    """
    found = estimate(spec, locals_, directions, products)
    size = len(found.target)
    gram, entries, targets = found.gram, np.zeros((size, size)), np.zeros(size)
    if not products:  # what parties have in common is a guess, which must not reach their own part
        gram = np.zeros((size, size))
    for span, local in zip(
        spans_of([len(local.target) for local in locals_]), locals_, strict=True
    ):
        gram[span, span] = gram[span, span] if products else local.gram
        entries[span, span] = local.gram_error**2
        diagonal = np.arange(span.start, span.stop)
        entries[diagonal, diagonal] = local.diagonal_error**2
        targets[span] = local.target_error**2
    between = unknown(spec, locals_, directions, products) if len(locals_) > 1 else None
    return VarianceShares(gram, found.target, entries, targets, between)


def unclipped_shares(
    spec: MomentsSpec,
    bodies: Bodies,
    shares: VarianceShares,
    coef: FloatArray,
    *,
    label_mean: float,
) -> VarianceShares:
    """Return shares with what scaling rows into balls took put back, for coefficients ``coef``."""
    variances, covariances = np.ones(len(coef)), np.ones(len(coef))
    for part, span in zip(spec.parts, spans_of([spec.kept(p) for p in spec.parts]), strict=True):
        if spec.loss is Loss.LOGISTIC:
            undo = unclipped(spec, part, bodies, coef[span], label_mean)
        else:
            undo = unclipped_values(spec, part, bodies)
        variances[span], covariances[span] = undo.variance, undo.covariance
    return shares.undone(variances, covariances)
