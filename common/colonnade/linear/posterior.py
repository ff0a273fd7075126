"""Coefficients from noisy measurements of ``G w``: arithmetic on releases, free of privacy cost.

A Gram matrix with known noise and products with the label, or a gradient at any point, say what
``G w`` is for the coefficients ``w`` that are looked for, up to noise of known size. The errors of
the Gram matrix act on how far ``w`` is from the point of the measurement, so that measurements at
better points count more. All are joined by their precisions, and what noise dominates is shrunk:
coefficients are taken as normal about 0, with the variance under which the measurements are most
likely (empirical Bayes). Nothing is tuned to a table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import FloatArray

# What the curvature is wrong by beyond its noise (rows in a ball, a loss that is no parabola), in
# proportion to the way that a solution lies from the point of a measurement.
_CURVATURE_ERROR = 0.1
# Eigenvalues are raised by this many spectral norms (over 2) of the Gram matrix's noise.
_RAISED = 1.0
_SPREADS = np.geomspace(1e-6, 1e2, 81)  # variances of coefficients, in label variances
_PASSES = 4
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """A released Gram matrix by its eigenvectors, raised by its noise to be safely invertible.

    Examples
    --------
    >>> Curvature.of(np.diag([1.0, -0.2]), 0.0).values
    array([1.e-12, 1.e+00])
    """

    values: FloatArray
    vectors: FloatArray
    error: float  # deviation of the noise of an entry off the diagonal

    @classmethod
    def of(cls, gram: FloatArray, error: float) -> "Curvature":
        """Decompose a symmetric matrix whose entries have noise of deviation ``error``."""
        values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
        raised = np.maximum(values, 0.0) + _RAISED * error * len(gram) ** 0.5
        return cls(np.maximum(raised, _LEAST), vectors, error)

    def times(self, point: FloatArray) -> FloatArray:
        """Return the matrix times a vector."""
        product: FloatArray = self.vectors @ (self.values * (self.vectors.T @ point))
        return product


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What was released at ``point`` of the products with the label that ``w`` should have."""

    target: FloatArray
    error: float
    point: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The quadratic whose minimum is the posterior mean: ``x' gram x / 2 - target' x``."""

    gram: FloatArray
    target: FloatArray
    error: float  # deviation of the noise of the target
    mean: FloatArray


def posterior(curvature: Curvature, measurements: Sequence[Measurement]) -> Posterior:
    """Join measurements, and shrink what is left of their noise.

    Examples
    --------
    Without noise it is nearly the solution; where all is noise, hardly anything:

    >>> exact = Measurement(np.array([1.0, 2.0]), 0.0, np.zeros(2))
    >>> bool(np.allclose(posterior(Curvature.of(np.eye(2), 0.0), [exact]).mean, [1, 2], 0.02))
    True
    >>> noisy = Measurement(np.array([1.0, 2.0]), 2.0, np.zeros(2))
    >>> bool(np.abs(posterior(Curvature.of(np.eye(2), 0.0), [noisy]).mean).max() < 0.2)
    True
    """
    values, vectors = curvature.values, curvature.vectors
    mean = measurements[-1].point
    for _ in range(_PASSES):  # how far measurements are off depends on where the mean is
        variances = np.array([_variance(curvature, each, mean) for each in measurements])
        total = 1.0 / float((1.0 / variances).sum())
        target = np.sum(
            [
                each.target * (total / own)
                for each, own in zip(measurements, variances, strict=True)
            ],
            axis=0,
        )
        along = vectors.T @ target
        expected = _SPREADS[:, None] * values**2 + total
        likelihood = -(np.log(expected) + along**2 / expected).sum(axis=1)
        shrinking = total / float(_SPREADS[int(np.argmax(likelihood))])
        bent = values + shrinking / values
        mean = vectors @ (along / bent)
    return Posterior((vectors * bent) @ vectors.T, target, total**0.5, mean)


def _variance(curvature: Curvature, each: Measurement, mean: FloatArray) -> float:
    gap = mean - each.point
    moved = curvature.times(gap)
    curved = curvature.error**2 * float(gap @ gap)
    return each.error**2 + curved + _CURVATURE_ERROR**2 * float((moved**2).mean()) + _LEAST
