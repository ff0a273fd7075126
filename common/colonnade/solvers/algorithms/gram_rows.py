"""Rows as the Gram solver reads them: centred and scaled by released numbers, within a ball."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import (
    BALL,
    CHUNK,
    DIAGONAL,
    MAX_COEF,
    MAX_OFFSET,
    OFF_DIAGONAL,
    UNIT,
    Projection,
    project,
    triangle,
    triangle_size,
)
from colonnade.linear.kernels import score
from colonnade.linear.sums import pooled_variances, sums
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.dense import Columns
from colonnade.solvers.iteration import Noiseless, Release

# A mean lies so far from the middle of its bounds, as a variance in half ranges, where noise rules.
_MEAN_VARIANCE = 0.5
# A column is scaled by its own variance and this part of the mean variance: the noise of rare
# levels is not blown up to that of the others.
_REGULARISED = 0.25
_LEAST_VARIANCE = 1e-6


def label_weight(n_features: int) -> int:
    """Return the weight of the label in the release of moments: all predictions begin with it.

    Examples
    --------
    >>> [label_weight(count) for count in (1, 16, 100)]
    [1, 2, 5]
    """
    return max(1, math.isqrt(n_features) // 2)


def noise_of(mechanism: Mechanism, release: Release) -> float:
    """Return the deviation of a release's noise: none in the solver's non-private counterpart."""
    if isinstance(release, Noiseless) or not isinstance(mechanism, DiscreteGaussian):
        return 0.0
    return math.sqrt(mechanism.sigma2)


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """Released means and variances of the columns and of the label, in half ranges.

    Without an intercept all means are 0, and variances are mean squares.
    """

    features: IntArray  # places of the columns in the design
    mean: FloatArray
    variance: FloatArray
    label_mean: float
    label_deviation: float

    @classmethod
    def bought(cls, given: Setting, mechanism: Mechanism, kind: str) -> "Standard":
        """Release the sums of all columns and of their squares, and read them."""
        design = given.design.by_columns()
        n_rows, width = design.shape
        centred = intercept_of(given)
        count, weight = width - centred, label_weight(width)

        def compute() -> IntArray:
            label = np.rint(np.clip(given.label, -1.0, 1.0) * GRID).astype(np.int16)
            pairs = [sums(design.dense(np.array([j]))[0]) for j in range(count)]
            last = sums(label)
            pairs.append((weight * last[0], weight * last[1]))
            return np.array([part for half in zip(*pairs, strict=True) for part in half], np.int64)

        found = given.release(kind, 0, mechanism, compute) / (n_rows * GRID)
        found[[count, -1]] /= weight
        noise = noise_of(mechanism, given.release) / (n_rows * GRID)
        own = np.append(np.full(count, noise), noise / weight)
        mean = np.clip(found[: count + 1], -1.0, 1.0) / (1.0 + own**2 / _MEAN_VARIANCE) * centred
        variance = found[count + 1 :] - mean**2
        label = max(float(variance[-1]), noise / weight, _LEAST_VARIANCE)
        return cls(
            features=np.arange(count),
            mean=mean[:-1],
            variance=pooled_variances(variance[:-1], noise),
            label_mean=float(mean[-1]),
            label_deviation=math.sqrt(label),
        )

    def of(self, features: IntArray) -> "Standard":
        """Return what is known of some of the columns."""
        return replace(
            self,
            features=self.features[features],
            mean=self.mean[features],
            variance=self.variance[features],
        )

    @property
    def scale(self) -> FloatArray:
        """What a centred column is multiplied by: one over its regularised deviation."""
        return 1.0 / np.sqrt(self.variance + _REGULARISED * float(self.variance.mean()))


def intercept_of(given: Setting) -> bool:
    """Return whether the last column is the intercept's, which no penalty applies to."""
    return bool(given.problem.scales[-1] == 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedGram:
    """A Gram matrix of standardised rows, and the noise of its entries on and off the diagonal."""

    gram: FloatArray
    diagonal_error: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class BallRows:
    """Standardised rows in a ball of radius ``radius``, made anew from the table when needed."""

    design: Columns
    standard: Standard
    reach: float

    @property
    def radius(self) -> float:
        """What the ball stands for: the norm of most standardised rows is smaller."""
        spread = float(self.standard.variance @ self.standard.scale**2)
        return math.sqrt(self.reach * spread)

    def gram(self, mechanism: Mechanism, release: Release, kind: str) -> ReleasedGram:
        """Release the Gram matrix."""
        size = self.standard.features.size
        upper = np.triu_indices(size)
        unit = self.radius**2 / (BALL**2 * self.design.shape[0])

        def compute() -> IntArray:
            total = np.zeros(triangle_size(size), np.int64)
            for rows, _ in self._chunks():
                total += triangle(rows)
            return total

        weights = np.where(upper[0] == upper[1], DIAGONAL, OFF_DIAGONAL)
        found = np.zeros((size, size))
        found[upper] = release(kind, 0, mechanism, compute) * unit / weights
        noise = noise_of(mechanism, release) * unit
        whole = found + np.triu(found, 1).T
        return ReleasedGram(whole, noise / DIAGONAL, noise / OFF_DIAGONAL)

    def products(self, weights: Int16Array) -> IntArray:
        """Return the exact products of all columns in the ball with integers up to ``GRID``."""
        total = np.zeros(self.standard.features.size, np.int64)
        for rows, part in self._chunks():
            total += score(rows, weights[part])
        return total

    def product_unit(self, clip: float) -> float:
        """Return what one step of `products` stands for, per row, if ``GRID`` is ``clip``."""
        return self.radius * clip / (BALL * GRID * self.design.shape[0])

    def _chunks(self) -> Iterator[tuple[Int16Array, slice]]:
        """Yield the rows in the ball, some at a time, and which they are."""
        projection, features = self._projection(), self.standard.features
        for begin in range(0, self.design.shape[0], CHUNK):
            part = slice(begin, begin + CHUNK)
            yield project(self.design.dense(features, part), None, projection), part

    def _projection(self) -> Projection:
        standard, radius = self.standard, self.radius
        along = standard.scale / radius
        coef = np.diag(np.minimum(np.rint(along * UNIT), MAX_COEF)).astype(np.int64)
        offset = np.rint(-standard.mean * along * GRID * UNIT)
        return Projection(coef, np.clip(offset, -MAX_OFFSET, MAX_OFFSET).astype(np.int64))
