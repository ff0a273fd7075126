"""Standard errors of a moments job's coefficients: sampling and privacy noise together.

All of it follows from releases. For ``x = G^-1 c`` an error ``dG`` of the Gram matrix and ``dc`` of
the target move ``x`` by about ``G^-1 (dc - dG x)``. Three parts are independent: the rows at hand
are a sample (the classical error), a party's own moments carry noise of known size, and so do the
inner products between parties. Of what parties have in common outside the directions that were
bought nothing is known; it is taken to be as large, on average, as what the later directions show.

That part is no independent error. The estimate leaves it out, so its Gram matrix is too close to
block diagonal, and coefficients whose features have near relatives at other parties are drawn
towards those: with ``G = H + E`` and ``x = H^-1 c`` the true ones are ``(H + E)^-1 c``, which is
``x - H^-1 E x + H^-1 E H^-1 E x`` up to higher orders. Between parties the last term does not
average out: its mean is about ``s_j x_j``, where ``s_j`` is the share of feature ``j``'s variance
that lies along features of other parties without anybody knowing. It is added to the error as a
bias of unknown sign, and so is what shrinking took off the products with the label.

Measured coverage of 95 % intervals (`bench vertical --only intervals`: 1e5 rows, 40 and 400
features at 4 parties, both label modes, epsilon 1), on seeds that no rule was made with: of the
coefficients that are not zero 0.98 or more in 14 of 16 cases, 0.97 and 0.94 in the other two
(400 features, one party's label); of zeros 0.99 or more. So they are too wide: the root mean
square error is 0.3 to 0.5 of what they say, but for chains, where it is 0.75. For chains
with correlations of 0.3 to 0.8, 2 to 15 coefficients that are not zero and epsilon 0.5 to 20
coverage of those was 0.93 to 1.
Where nothing was bought between parties the numbers assumed below are a guess: coverage falls to
0.88 (0.6 of those that are not zero), and reports show no intervals.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.linear.gram import onto_ball
from colonnade.linear.intervals import Intervals, own_noise
from colonnade.methods.moments.solver.directions import (
    Directions,
    Pair,
    Products,
    estimate,
    joined,
    orthonormal,
    spans_of,
)
from colonnade.methods.moments.solver.estimates import Local
from colonnade.methods.moments.spec import MomentsSpec

# So many directions are chosen to have something in common with others; later ones are typical.
_LEADING = 2
# What is assumed between parties that share nothing: the mean square of what the product of two
# directions has beyond the label's part, for their predictions of the label and for all others.
_ASSUMED_FIRST, _ASSUMED = 0.04, 0.01
# What clipping rows into a ball and the noise of deviations do to a coefficient, relative to it;
# measured with one party alone, where little else errs.
_BIAS = 0.02


def intervals(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
    *,
    n_rows: float,
    level: float = 0.95,
) -> Intervals:
    """Return the unpenalised coefficients with intervals of the given level.

    ``n_rows`` are the people of the two parties that have fewest in common.
    """
    found = estimate(spec, locals_, directions, products)
    inverse = np.linalg.inv(found.gram)
    plain = inverse @ found.target
    # Errors of the Gram matrix act through the coefficients: noise must not have blown them up.
    coef = onto_ball(plain, spec.radius)
    spans = spans_of([len(local.target) for local in locals_])
    unexplained = min(max(1.0 - float(found.target @ plain), 0.05), 1.0)
    moved = unexplained / n_rows * found.gram
    for span, local in zip(spans, locals_, strict=True):
        moved[span, span] += own_noise(
            coef[span],
            diagonal=local.diagonal_error,
            off=local.gram_error,
            target=local.target_error,
        )
    share = np.full(len(coef), _BIAS)
    if len(locals_) > 1:
        moved = moved + _between(spec, locals_, directions, products, coef)
        share += _hidden(spec, locals_, directions, products)
    # Its own party alone may see more of a coefficient than is left beside relatives elsewhere.
    alone = np.concatenate([np.linalg.solve(local.gram, local.target) for local in locals_])
    bias = share * np.maximum(np.abs(plain), np.abs(alone))
    left_off = inverse @ np.concatenate([local.left_off for local in locals_])
    variance = np.diag(inverse @ moved @ inverse.T) + bias**2 + left_off**2
    return Intervals.of(plain, variance, vif=np.diag(inverse) * np.diag(found.gram), level=level)


def _between(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
    coef: FloatArray,
) -> FloatArray:
    """Return the covariance of ``-dG x`` from what lies between parties."""
    errors, loads = unknown(spec, locals_, directions, products)
    along = loads.T @ coef  # the prediction in each direction
    moved = errors * np.outer(along, along)
    np.fill_diagonal(moved, (errors * along[None, :] ** 2).sum(axis=1))
    spread: FloatArray = loads @ moved @ loads.T
    return spread


def _hidden(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
) -> FloatArray:
    """Return the share of each feature's variance that may lie unseen along other parties'.

    Directions of a party are orthonormal, so that their squared products with a feature add up.
    """
    errors, loads = unknown(spec, locals_, directions, products)
    share: FloatArray = np.minimum(loads**2 @ errors.sum(axis=1), 1.0)
    return share


def unknown(
    spec: MomentsSpec,
    locals_: Sequence[Local],
    directions: Sequence[Directions],
    products: Mapping[Pair, Products],
) -> tuple[FloatArray, FloatArray]:
    """Return the variances of all products between directions, and features by directions."""
    spans = spans_of([len(local.target) for local in locals_])
    loads = np.zeros((spans[-1].stop, spans[-1].stop))
    for span, local, each in zip(spans, locals_, directions, strict=True):
        loads[span, span] = local.gram @ _completed(local, each).T
    return _errors(spec, spans, products), loads


def _errors(
    spec: MomentsSpec, spans: Sequence[slice], products: Mapping[Pair, Products]
) -> FloatArray:
    """Return the variance of what is not known of each product between directions of parties.

    A product that was measured with variance ``v``, of a kind that is ``t`` in mean square, is
    known up to ``v t / (v + t)`` after shrinking; one that was not, up to ``t``.
    """
    size = spans[-1].stop
    errors = np.full((size, size), _ASSUMED)
    firsts = [span.start for span in spans]
    errors[np.ix_(firsts, firsts)] = _ASSUMED_FIRST
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
