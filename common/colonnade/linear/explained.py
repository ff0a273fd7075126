"""Variance explained by all columns and by each party's, estimated from a job's releases.

For coefficients ``x`` in standard deviations, with Gram matrix ``G`` and products ``c`` with the
label, the share is ``2 c'x - x'Gx``. An error ``dG`` and ``dc`` of what was released moves it by
``2 dc'x - x'dG x``, and the difference of two shares by the difference of both: what two models
have in common errs alike, so a difference is known better than its parts.

Privacy: arithmetic on releases (post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray

# Errors of what is explained are widened by this: products are drawn to a matrix of low rank, which
# is not theirs, and the bias differs between tables (it was measured on four shapes of tables).
_SAFETY = 1.5
# What clipping rows into a ball and the noise of deviations leave, once it is undone: relative to a
# share, and at most. Measured on four shapes of tables, both losses, with the label at every party
# and at one.
_BIAS, _MAX_BIAS = 0.15, 0.05


@dataclass(frozen=True, slots=True)
class Explained:
    """A share of the label's variance, and its error: a standard deviation.

    The share itself is not cut off at 0 or 1.
    """

    share: float
    error: float


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Estimated shares of variance that columns explain, with standard errors.

    Parameters
    ----------
    gram, target
        Of all kept features, in standard deviations.
    entries
        Variance of the error of each entry of ``gram`` that has one of its own.
    targets
        Variance of the error of each entry of ``target``.
    products
        Variances of what is not known of products between directions, and features by directions,
        where parties' products are known through directions only.
    """

    gram: FloatArray
    target: FloatArray
    entries: FloatArray
    targets: FloatArray
    products: tuple[FloatArray, FloatArray] | None = None

    def of(self, coef: FloatArray) -> Explained:
        """Return the share that coefficients explain."""
        return self.lost(coef, np.zeros_like(coef))

    def lost(self, coef: FloatArray, fewer: FloatArray) -> Explained:
        """Return what other coefficients explain less than ``coef``."""
        share = self._share(coef) - self._share(fewer)
        bias = min(_BIAS * abs(share), _MAX_BIAS)
        return Explained(share, math.hypot(_SAFETY * self._deviation(coef, fewer), bias))

    def doubt(self, coef: FloatArray) -> float:
        """Return the error of a share with the most bias that one may have."""
        return math.hypot(_SAFETY * self._deviation(coef, np.zeros_like(coef)), _MAX_BIAS)

    def fitted(self, coef: FloatArray) -> FloatArray:
        """Return coefficients times the number with which they explain most.

        A model of classes is calibrated, so what counts is its squared correlation with the label.

        Examples
        --------
        >>> one = np.eye(1)
        >>> VarianceShares(one, np.array([0.5]), 0.0 * one, np.zeros(1)).fitted(np.array([2.0]))
        array([0.5])
        """
        variance = float(coef @ self.gram @ coef)
        return coef * (max(float(self.target @ coef), 0.0) / max(variance, 1e-12))

    def undone(self, variances: FloatArray, covariances: FloatArray) -> "VarianceShares":
        """Return the shares with what a ball took put back: factors for each feature.

        ``variances`` are those of a variance, ``covariances`` those of a product with the label.
        """
        spread = np.outer(variances, variances) ** 0.5
        products = self.products
        if products is not None:
            products = products[0], products[1] * variances[:, None] ** 0.5
        return VarianceShares(
            self.gram * spread,
            self.target * covariances,
            self.entries * spread**2,
            self.targets * covariances**2,
            products,
        )

    def _share(self, coef: FloatArray) -> float:
        return 2.0 * float(self.target @ coef) - float(coef @ self.gram @ coef)

    def _deviation(self, coef: FloatArray, fewer: FloatArray) -> float:
        """Return the standard deviation that releases' noise gives to the difference."""
        square = (np.outer(coef, coef) - np.outer(fewer, fewer)) ** 2
        variance = 4.0 * float(self.targets @ (coef - fewer) ** 2)
        variance += 2.0 * float(np.sum(self.entries * square))
        variance -= float(np.diag(self.entries) @ np.diag(square))  # they have no twin
        if self.products is not None:
            errors, loads = self.products
            along, less = loads.T @ coef, loads.T @ fewer
            moved = np.outer(along, along) - np.outer(less, less)
            variance += 2.0 * float(np.sum(errors * moved**2))
        return math.sqrt(variance)


@dataclass(frozen=True, slots=True)
class PartyModels:
    """Coefficients of all features: those of one party alone, and of all but it."""

    alone: FloatArray
    without: FloatArray


def party_models(
    n_features: int, spans: Mapping[str, slice], solve: Callable[[IntArray], FloatArray]
) -> dict[str, PartyModels]:
    """Return the job's solution with each party's columns alone and without them.

    Parameters
    ----------
    spans
        Where the kept features of each party lie.
    solve
        From the places of some features to their coefficients.
    """

    def solution(places: IntArray) -> FloatArray:
        coef = np.zeros(n_features)
        if places.size:
            coef[places] = solve(places)
        return coef

    every = np.arange(n_features)
    return {
        party: PartyModels(solution(every[span]), solution(np.delete(every, span)))
        for party, span in spans.items()
    }


def auc_of(share: float, rate: float) -> float:
    """Return the area under the ROC curve of a score with this squared correlation with classes.

    If the score is normal within each class with one variance, the classes' means lie
    ``sqrt(R2 / (p q (1 - R2)))`` deviations apart (the binormal model: Green and Swets 1966).

    Examples
    --------
    >>> auc_of(0.0, 0.5), round(auc_of(0.25, 0.5), 3)
    (0.5, 0.793)
    """
    share = min(max(share, 0.0), 0.999)
    apart = math.sqrt(share / (rate * (1.0 - rate) * (1.0 - share)))
    return 0.5 * (1.0 + math.erf(apart / 2.0))
