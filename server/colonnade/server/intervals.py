"""Standard errors of a moments job's coefficients: sampling and privacy noise together.

All of it follows from releases. For ``x = G^-1 c`` an error ``dG`` of the Gram matrix and ``dc`` of
the target move ``x`` by about ``G^-1 (dc - dG x)``. Three parts are independent: the rows at hand
are a sample (the classical error), a party's own moments carry noise of known size, and so do the
inner products between parties. Of what parties have in common outside the directions that were
bought nothing is known; it is taken to be as large, on average, as what the later directions show.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.optim.vertical_moments.spec import MomentsSpec
from colonnade.server.moment_directions import (
    Directions,
    Pair,
    Products,
    estimate,
    joined,
    orthonormal,
    spans_of,
)
from colonnade.server.moment_estimates import Local

# So many directions are chosen to have something in common with others; later ones are typical.
_LEADING = 2
# What is assumed between parties that share nothing: a squared correlation of two directions.
_LEAST_COMMON = 1e-4


@dataclass(frozen=True, slots=True)
class Intervals:
    """Coefficients in standard deviations, with their errors and intervals."""

    coef: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray


def intervals(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
    *,
    level: float = 0.95,
) -> Intervals:
    """Return the unpenalised coefficients with intervals of the given level."""
    if not 0.0 < level < 1.0:
        raise ValueError("a level lies between 0 and 1")
    found = estimate(spec, locals_, directions, products)
    inverse = np.linalg.inv(found.gram)
    coef = inverse @ found.target
    spans = spans_of([len(local.target) for local in locals_])
    unexplained = min(max(1.0 - float(found.target @ coef), 0.05), 1.0)
    moved = unexplained / spec.n_rows * found.gram
    for span, local in zip(spans, locals_, strict=True):
        moved[span, span] += _own(local, coef[span])
    if len(locals_) > 1:
        moved = moved + _between(spec, locals_, directions, products, coef)
    variance = np.diag(inverse @ moved @ inverse.T)
    error = np.sqrt(np.maximum(variance, 0.0))
    reach = statistics.NormalDist().inv_cdf(0.5 + level / 2.0) * error
    return Intervals(coef, error, coef - reach, coef + reach)


def _own(local: Local, coef: FloatArray) -> FloatArray:
    """Return the covariance of ``dc - dG x`` from the noise of a party's own moments."""
    off, diagonal = local.gram_error**2, local.diagonal_error**2
    spread = np.outer(coef, coef) * off
    total = off * float(coef @ coef)
    np.fill_diagonal(spread, total + (diagonal - off) * coef**2 + local.target_error**2)
    return spread


def _between(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
    coef: FloatArray,
) -> FloatArray:
    """Return the covariance of ``-dG x`` from what lies between parties."""
    spans = spans_of([len(local.target) for local in locals_])
    whole = [_completed(local, each) for local, each in zip(locals_, directions, strict=True)]
    loads = np.zeros((coef.size, coef.size))
    for span, local, basis in zip(spans, locals_, whole, strict=True):
        loads[span, span] = local.gram @ basis.T
    errors = _errors(spec, spans, products)
    along = loads.T @ coef  # the prediction in each direction
    moved = errors * np.outer(along, along)
    np.fill_diagonal(moved, (errors * along[None, :] ** 2).sum(axis=1))
    spread: FloatArray = loads @ moved @ loads.T
    return spread


def _errors(
    spec: MomentsSpec, spans: Sequence[slice], products: Mapping[Pair, Products]
) -> FloatArray:
    """Return the variance of what is not known of each product between directions of parties.

    A product that was measured with variance ``v``, of a kind that is ``t`` in mean square, is
    known up to ``v t / (v + t)`` after shrinking; one that was not, up to ``t``.
    """
    size = spans[-1].stop
    errors = np.full((size, size), _LEAST_COMMON)
    if products:
        leading, typical = _common(products, leading=True), _common(products, leading=False)
        errors = np.full((size, size), typical)
        _, precision = joined(spec, products)
        lead = np.zeros(len(precision), dtype=bool)
        places: list[int] = []
        for span, part in zip(spans, spec.parts, strict=True):
            first = len(places)
            lead[first : first + min(_LEADING, spec.n_probes(part))] = True
            places += [span.start + place for place in range(spec.n_probes(part))]
        expected = np.where(np.outer(lead, lead), leading, typical)
        errors[np.ix_(places, places)] = 1.0 / (precision + 1.0 / expected)
    for span in spans:
        errors[span, span] = 0.0
    return errors


def _common(products: Mapping[Pair, Products], *, leading: bool) -> float:
    """Return the mean squared product of leading or typical directions, on the safe side.

    That is the mean of squares less their noise, plus one standard error of it.
    """
    squares, noise = [], []
    for found in products.values():
        rows, columns = (np.arange(count) < _LEADING for count in found.values.shape)
        chosen = np.outer(rows, columns) == leading
        squares.append((found.values**2)[chosen])
        noise.append(found.variances[chosen])
    square, variance = np.concatenate(squares), np.concatenate(noise)
    if not square.size:
        return _common(products, leading=not leading)
    mean = max(float((square - variance).mean()), 0.0)
    return mean + float(variance.mean()) * math.sqrt(2.0 / square.size)


def _completed(local: Local, directions: Directions) -> FloatArray:
    """Return the party's directions and more, until they span all its features."""
    found = list(directions.basis)
    _, vectors = np.linalg.eigh(local.gram)
    for vector in vectors.T[::-1]:
        if len(found) == len(local.target):
            break
        left = orthonormal(vector, found, local.gram)
        if left is not None:
            found.append(left)
    return np.stack(found)


def correlations(gram: FloatArray) -> FloatArray:
    """Return the correlation matrix that a Gram matrix stands for."""
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-12))
    clipped: FloatArray = np.clip(gram / np.outer(scale, scale), -1.0, 1.0)
    return clipped


def explained(gram: FloatArray, target: FloatArray, coef: FloatArray) -> float:
    """Return the share of the label's variance that a solution explains, as releases tell.

    The noise in the releases makes it err by 0.05 to 0.15 at usual budgets: print that beside it.
    """
    value = 2.0 * float(target @ coef) - float(coef @ gram @ coef)
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
