"""The Gram solver at work: a solve from products with the label, then noisy gradients."""

import math
from dataclasses import dataclass, field

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.gram import minimise
from colonnade.linear.losses import LOGISTIC_CODE
from colonnade.linear.posterior import Curvature, Measurement, posterior
from colonnade.privacy.mechanisms import Mechanism
from colonnade.solvers.algorithms.coordinate import shift
from colonnade.solvers.algorithms.gram_rows import (
    BallRows,
    ReleasedGram,
    Standard,
    intercept_of,
    noise_of,
)
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import quantise_slopes
from colonnade.solvers.designs.slopes import slopes_of
from colonnade.solvers.iteration import EVERYTHING, Block, Release

# Clips: of the label, in its deviations, and of a residual for squared and for logistic loss.
_LABEL_CLIP, _CLIPS = 2.0, (1.0, 0.8)
_LEAST_RATE = 0.002  # nobody is certain to be of one class: a base rate is known up to noise
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


@dataclass(frozen=True, slots=True)
class GramProducts:
    """The releases that a run still asks for: products with the label, then with residuals."""

    first: Mechanism
    first_kind: str
    later: Mechanism | None
    later_kind: str
    clip: float | None


def base_margin(standard: Standard, *, classes: bool) -> float:
    """Return the margin of the model that is constant: the mean label, or its logit."""
    if not classes:
        return standard.label_mean
    rate = min(max((1.0 + standard.label_mean) / 2.0, _LEAST_RATE), 1.0 - _LEAST_RATE)
    return math.log(rate / (1.0 - rate))


@dataclass(frozen=True, slots=True, eq=False)
class NoisyNewton:
    """One solve and refinements; coefficients are those of the design's columns throughout.

    Inside, columns are standardised, and so is the label of squared loss.
    """

    given: Setting
    rows: BallRows
    released: ReleasedGram
    curvature: Curvature
    asked: GramProducts
    classes: bool
    centred: bool
    seen: list[Measurement] = field(default_factory=list)

    @classmethod
    def of(
        cls, given: Setting, rows: BallRows, released: ReleasedGram, asked: GramProducts
    ) -> "NoisyNewton":
        """Begin with a released Gram matrix."""
        curvature = Curvature.of(released.gram, released.error)
        classes = given.problem.loss.code == LOGISTIC_CODE
        return cls(given, rows, released, curvature, asked, classes, intercept_of(given))

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        """Return the solution of what was measured, with one measurement more."""
        point = u[self.rows.standard.features] / self._unit
        self.seen.append(self._first(release) if k == 0 else self._later(k, u, point, release))
        return EVERYTHING, self._placed(self._solved(self._bend(point)), u.size)

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Keep nothing of the rows."""

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``u``."""
        return u

    @property
    def label_products(self) -> Measurement:
        """The released products with the standardised label, also of classes."""
        lift, first = self._lift, self.seen[0]
        return Measurement(first.target / lift, first.error / lift, first.point)

    @property
    def _lift(self) -> float:
        """What turns products with a standardised label into a measurement."""
        return self.rows.standard.label_deviation / 2.0 / self._bend() if self.classes else 1.0

    @property
    def _unit(self) -> FloatArray:
        """Coefficients of the design's columns over those of standardised ones."""
        return self._half_ranges / (self.rows.design.units[self.rows.standard.features] * GRID)

    @property
    def _half_ranges(self) -> FloatArray:
        """Coefficients of columns in half ranges over those of standardised ones."""
        standard = self.rows.standard
        return standard.scale * (1.0 if self.classes else standard.label_deviation)

    def _first(self, release: Release) -> Measurement:
        """Measure at the constant model: products with the standardised label."""
        standard, kind = self.rows.standard, self.asked.first_kind

        def compute() -> IntArray:
            centred = (self.given.label - standard.label_mean) / standard.label_deviation
            return self._products(centred, _LABEL_CLIP)

        unit = self.rows.product_unit(_LABEL_CLIP) * self._lift
        found = (release(kind, 0, self.asked.first, compute) * unit).astype(np.float64)
        noise = noise_of(self.asked.first, release) * unit
        return Measurement(found, noise, np.zeros(found.size))

    def _later(self, k: int, u: FloatArray, point: FloatArray, release: Release) -> Measurement:
        """Measure at a model: products with the residuals that it leaves."""
        mechanism, loss = self.asked.later, self.given.problem.loss
        if mechanism is None:
            raise ValueError("no refinement was planned")
        clip = self.asked.clip or _CLIPS[self.classes]
        scale = 1.0 if self.classes else self.rows.standard.label_deviation

        def compute() -> IntArray:
            margins = np.zeros(self.given.label.size)
            shift(self.rows.design, EVERYTHING, u, margins)
            return self._products(-slopes_of(loss, margins, self.given.label) / scale, clip)

        unit = self.rows.product_unit(clip) / self._bend(point)
        found = release(self.asked.later_kind, k - 1, mechanism, compute) * unit
        noise = noise_of(mechanism, release) * unit
        moved: FloatArray = found + self.curvature.times(point)
        return Measurement(moved, noise, point)

    def _products(self, residual: FloatArray, clip: float) -> IntArray:
        weights = np.empty(residual.size, np.int16)
        quantise_slopes(residual, GRID / clip, GRID, weights)
        return self.rows.products(weights)

    def _bend(self, point: FloatArray | None = None) -> float:
        """Return the loss's mean second derivative, for margins that are normal."""
        if not self.classes:
            return 1.0
        spread = 0.0 if point is None else self._margin_variance(point)
        margins = self._constant(spread) + math.sqrt(spread) * _POINTS
        chances = 0.5 + 0.5 * np.tanh(0.5 * margins)
        return float(_WEIGHTS @ (chances * (1.0 - chances))) / float(_WEIGHTS.sum())

    def _margin_variance(self, point: FloatArray) -> float:
        return max(float(point @ self.released.gram @ point), 0.0)

    def _constant(self, spread: float) -> float:
        """Return the mean margin for which the mean probability is the base rate, about.

        A logistic function of a normal margin has the mean of one at ``m / sqrt(1 + pi s2 / 8)``
        (MacKay 1992).
        """
        base = base_margin(self.rows.standard, classes=self.classes)
        return base * math.sqrt(1.0 + math.pi / 8.0 * spread) if self.classes else base

    def _solved(self, bend: float) -> FloatArray:
        """Return the minimum of what all measurements say and the penalty."""
        found = posterior(self.curvature, self.seen)
        problem, unit = self.given.problem, self._unit
        if problem.penalty.name == "none":
            return found.mean
        # The quadratic is the loss over `scale`; the penalty is of `unit` times the coefficients.
        scale = bend if self.classes else self.rows.standard.label_deviation**2
        scales = problem.scales[self.rows.standard.features]

        def prox(point: FloatArray, step: float) -> FloatArray:
            return problem.penalty.prox(unit * point, step * unit**2 / scale, scales) / unit

        return minimise(found.gram, found.target, prox)

    def _placed(self, solution: FloatArray, size: int) -> FloatArray:
        """Return the coefficients of all columns of the design, the intercept last."""
        whole, standard = np.zeros(size), self.rows.standard
        whole[standard.features] = solution * self._unit
        if self.centred:
            constant = self._constant(self._margin_variance(solution))
            whole[-1] = constant - float((solution * self._half_ranges) @ standard.mean)
        return whole
