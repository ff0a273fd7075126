"""Post-processing of the releases of the solver ``gram``: paths, intervals, other penalties.

Privacy: arithmetic on what was released (post-processing: Dwork and Roth 2014, Proposition 2.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.gram import Path, floored, lasso_path
from colonnade.linear.intervals import Intervals, own_noise
from colonnade.linear.solutions import Wanted, gram_summary, intervals_summary, solution
from colonnade.solvers.algorithms.gram_steps import NoisyNewton

# What scaling rows into a ball and the noise of deviations do to a coefficient, relative to it.
_BIAS = 0.02


@dataclass(frozen=True, slots=True)
class _Usual:
    """The default penalty: an error of a product, in a ball that hardly ever binds."""

    penalty: float = 1.0  # errors of a product with the label
    radius: float = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class GramStatistics:
    """A noisy Gram matrix and products with the label, in standard deviations.

    Of classes the label is -1 and +1, and all of it is about least squares.

    Parameters
    ----------
    features
        Which columns they are of: all, or those that screening chose.
    gram, target
        Of standardised columns, and their products with the standardised label.
    scale
        Standardised columns here have this deviation: rare levels are scaled up by less.
    """

    features: IntArray
    n_rows: int
    gram: FloatArray
    target: FloatArray
    scale: FloatArray
    diagonal_error: float
    gram_error: float
    target_error: float

    @classmethod
    def of(cls, operator: NoisyNewton) -> "GramStatistics":
        """Read what an operator has released."""
        standard, released = operator.rows.standard, operator.released
        products = operator.label_products
        return cls(
            features=standard.features,
            n_rows=operator.rows.design.shape[0],
            gram=floored(released.gram, released.error * len(released.gram) ** 0.5),
            target=products.target,
            scale=np.sqrt(standard.variance) * standard.scale,
            diagonal_error=released.diagonal_error,
            gram_error=released.error,
            target_error=products.error,
        )

    def path(self, *, count: int = 40, least: float = 0.01) -> Path:
        """Return LASSO solutions, from the penalty that leaves nothing down to ``least`` of it."""
        return lasso_path(*self._in_deviations(), count=count, least=least)

    def solve(self, wanted: Wanted) -> FloatArray:
        """Return the coefficients under another penalty."""
        gram, target = self._in_deviations()
        error = self.target_error / float(self.scale.mean())
        return solution(_Usual(), gram, target, error=error, wanted=wanted)

    def intervals(self, *, level: float = 0.95) -> Intervals:
        """Return unpenalised coefficients with the errors of rows and of privacy."""
        inverse = np.linalg.inv(self.gram)
        coef = inverse @ self.target
        unexplained = min(max(1.0 - float(self.target @ coef), 0.05), 1.0)
        moved = unexplained / self.n_rows * self.gram + own_noise(
            coef, diagonal=self.diagonal_error, off=self.gram_error, target=self.target_error
        )
        variance = np.diag(inverse @ moved @ inverse.T) + (_BIAS * coef) ** 2
        vif = np.diag(inverse) * np.diag(self.gram)
        return Intervals.of(self.scale * coef, self.scale**2 * variance, vif=vif, level=level)

    def summary(self, names: Sequence[tuple[str, str]], *, level: float = 0.95) -> dict[str, Any]:
        """Return what a report shows, as JSON values; ``names`` are those of all columns."""
        gram, target = self._in_deviations()
        kept = [names[place] for place in self.features.tolist()]
        error = self.target_error / float(self.scale.mean())
        shown, section = gram_summary(kept, gram, target, chosen=error)
        intervals = intervals_summary(self.intervals(level=level), shown, level=level)
        return section | {"intervals": intervals}

    def _in_deviations(self) -> tuple[FloatArray, FloatArray]:
        return self.gram / np.outer(self.scale, self.scale), self.target / self.scale
