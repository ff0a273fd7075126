"""A noisy Gram matrix, one solve, and a few noisy gradients with that matrix as curvature.

At the model that is constant the gradient of the loss is minus the products of the centred columns
with the label, and one Newton step from there with the Gram matrix of the columns is least squares;
for logistic loss, whose second derivative there is ``p (1 - p)`` in every row, it is the first step
of Newton's method. Both are released once (sufficient statistics, as in Wang 2018). Then gradients
at better points are released, and the same matrix serves as curvature: they put right what its
noise, the ball that rows are scaled into, and a quadratic model of the loss got wrong.

References
----------
Wang (2018). Revisiting differentially private linear regression: optimal and adaptive prediction
and estimation in unbounded domain. UAI.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import INNER_SENSITIVITY2, MAX_ROWS, TRIANGLE_SENSITIVITY2
from colonnade.linear.losses import LOGISTIC_CODE, SQUARED_CODE
from colonnade.linear.sums import moments_mechanism
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism, SignedSelection
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.algorithms.gram_rows import BallRows, Standard, label_weight
from colonnade.solvers.algorithms.gram_screen import screened
from colonnade.solvers.algorithms.gram_steps import GramProducts, NoisyNewton
from colonnade.solvers.algorithms.greedy import SELECT
from colonnade.solvers.budgets import ReleasePart
from colonnade.solvers.checks import check_not_negative, check_positive
from colonnade.solvers.context import Setting
from colonnade.solvers.problem import Problem

MOMENTS, GRAM, PRODUCTS = "moments", "gram", "products"

# Parts of what screening leaves of the budget; the rest is for gradients, or without any of them
# for products. The part for screening.
_MOMENTS, _GRAM, _PRODUCTS = Fraction(1, 20), Fraction(3, 10), Fraction(27, 100)
_SCREENING = Fraction(3, 10)
# Choices of screening by rows: more rows pay for more.
_CHOICES = ((10_000, 24), (50_000, 40), (200_000, 64), (MAX_ROWS, 96))


@dataclass(frozen=True, slots=True)
class Gram:
    """Release means, a Gram matrix and products with the label; solve; refine by gradients.

    Privacy: rows are centred and scaled by released means and deviations, and scaled into a ball in
    integers (`linear.ball`), so that the sensitivities of the Gram matrix, of the products and of a
    gradient hold for any numbers that were released before: a row's slope is clipped to an integer
    of at most ``GRID`` and multiplies a row of at most ``BALL``, which moves a sum by at most
    ``2 BALL**2``. Means and mean squares are one release (`linear.sums`); the label counts as
    ``label_weight**2`` columns, whose sums it is multiplied into.

    Parameters
    ----------
    refinements
        Gradients that are released after the solve.
    reach
        Squared radius of the ball, over the expected squared norm of a row.
    clip
        Of a residual: in label deviations for squared loss, in probability for logistic loss; None
        for 1 and 0.8.
    widest
        Tables with more columns are screened first: private choices along a Frank-Wolfe path pick
        at most ``keep`` of them for 30 % of the budget.

    Examples
    --------
    >>> [(part.kind, part.count) for part in Gram().parts(1000, 5)]
    [('moments', 1), ('gram', 1), ('products', 1), ('step', 3)]
    """

    name: ClassVar[str] = "gram"
    reads_rows: ClassVar[bool] = False
    refinements: int = 3
    reach: float = 1.5
    clip: float | None = None
    keep: int = 24
    widest: int = 200

    def __post_init__(self) -> None:
        check_positive(reach=self.reach, clip=self.clip, keep=self.keep, widest=self.widest)
        check_not_negative(refinements=self.refinements)

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""
        if problem.loss.code in (SQUARED_CODE, LOGISTIC_CODE):
            return None
        others = "'cd' or 'sgd'" if problem.loss.smooth else "'sgd', 'admm' or 'dual'"
        return (
            "a Gram matrix stands for the curvature of squared and logistic loss, not of "
            f"{problem.loss.name}; use solver {others}"
        )

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps: the solve, and the refinements."""
        return 1 + self.refinements

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        """Return what a run releases."""
        moved = n_features + label_weight(n_features) ** 2

        def sums_of_columns(units: int) -> Mechanism:
            return moments_mechanism(moved, units)

        wide = n_features > self.widest
        rest = 1 - _SCREENING * wide
        products = _PRODUCTS if self.refinements else 1 - _MOMENTS - _GRAM
        found = [
            ReleasePart(MOMENTS, rest * _MOMENTS, 1, 1, sums_of_columns),
            ReleasePart(GRAM, rest * _GRAM, 1, 1, _triangle),
            ReleasePart(PRODUCTS, rest * products, 1, 1, _inner),
        ]
        if wide:
            count = next(count for rows, count in _CHOICES if n_rows <= rows)
            found.append(ReleasePart(SELECT, _SCREENING, count, count, _select))
        if self.refinements:
            left = rest * (1 - _MOMENTS - _GRAM - products)
            found.append(ReleasePart(STEP, left, self.refinements, self.refinements, _inner))
        return tuple(found)

    def start(self, given: Setting) -> NoisyNewton:
        """Return the operator, with the moments and the Gram matrix bought."""
        design, plan, release = given.design.by_columns(), given.plan, given.release
        if design.shape[0] > MAX_ROWS:
            raise ValueError(f"a Gram matrix is summed over at most {MAX_ROWS} rows")
        standard = Standard.bought(given, plan.mechanism(MOMENTS), MOMENTS)
        if design.shape[1] > self.widest:
            choices = plan.releases[SELECT]
            kept = screened(given, standard, choices.mechanism, choices.count, keep=self.keep)
            standard = standard.of(kept)
        rows = BallRows(design, standard, self.reach)
        bought = rows.gram(plan.mechanism(GRAM), release, GRAM)
        later = plan.mechanism(STEP) if self.refinements else None
        asked = GramProducts(plan.mechanism(PRODUCTS), PRODUCTS, later, STEP, self.clip)
        return NoisyNewton.of(given, rows, bought, asked)


def _triangle(units: int) -> Mechanism:
    return DiscreteGaussian.within(units, l2_sensitivity2=TRIANGLE_SENSITIVITY2)


def _inner(units: int) -> Mechanism:
    return DiscreteGaussian.within(units, l2_sensitivity2=INNER_SENSITIVITY2)


def _select(units: int) -> Mechanism:
    return SignedSelection.within(units, sensitivity=2 * GRID * GRID)
