"""DP-GCD: select the steepest coordinate privately, then step along it (Mangold et al. 2023)."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.privacy.mechanisms import Mechanism, SignedSelection
from colonnade.solvers.algorithms.coordinate import STEP, shift
from colonnade.solvers.algorithms.smoothness import Squares, mean_squares, smoothness_parts
from colonnade.solvers.budgets import BudgetPlan, ReleasePart, gaussian_step
from colonnade.solvers.checks import check_one_of, check_positive, chosen
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import Columns
from colonnade.solvers.designs.slopes import slopes_of
from colonnade.solvers.iteration import Block, Release
from colonnade.solvers.problem import Problem

SELECT = "select"
# Public parts of a score stay clear of what a selection accepts.
_MAX_PUBLIC = 2.0**59


@dataclass(frozen=True, slots=True)
class GreedyDescent:
    """Move, at each step, the coordinate with the largest derivative over ``sqrt(M_j)``.

    Privacy: the scores of a selection are sums over rows of integers of at most ``TOP`` plus a
    public number (the penalty's derivative), so replacing one row moves each by at most ``2 TOP``;
    the step that follows is priced like one of coordinate descent. The exponential mechanism takes
    the place of the paper's Laplace noise: half the scale for the same zCDP.

    Parameters
    ----------
    iterations
        Steps; each is one selection and one partial derivative.
    clip, step, squares
        As in `CoordinateDescent`.

    References
    ----------
    Mangold, Bellet, Salmon and Tommasi (2023). High-dimensional private empirical risk
    minimization by greedy coordinate descent. AISTATS.

    Examples
    --------
    >>> [part.kind for part in GreedyDescent(iterations=9).parts(1000, 5)]
    ['smoothness', 'select', 'step']
    """

    name: ClassVar[str] = "gcd"
    reads_rows: ClassVar[bool] = False
    iterations: int = 60
    clip: float | None = None
    step: float = 1.0
    squares: Squares = "private"

    def __post_init__(self) -> None:
        check_positive(iterations=self.iterations, step=self.step, clip=self.clip)
        if isinstance(self.squares, str):
            check_one_of("squares", self.squares, ("private", "bounds"))

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""
        if not problem.loss.smooth:
            return (
                f"greedy descent takes steps of 1 / M_j and the {problem.loss.name} loss has no "
                "curvature bound M_j; use solver 'sgd', 'admm' or 'dual'"
            )
        if not problem.penalty.smooth:
            return (
                f"the greedy rule compares derivatives, which the {problem.penalty.name} penalty "
                "has not everywhere; use solver 'cd', or 'frank_wolfe' for an l1 ball"
            )
        return None

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return self.iterations

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:  # noqa: ARG002
        """Return what a run releases."""
        first = smoothness_parts(self.squares, n_features)
        half = (1 - sum((part.share for part in first), Fraction(0))) / 2
        count = self.iterations
        return (
            *first,
            ReleasePart(SELECT, half, count, count, _select),
            ReleasePart(STEP, half, count, count, gaussian_step),
        )

    def start(self, given: Setting) -> "Greedy":
        """Return the operator, with the constants bought."""
        problem, design, label = given.problem, given.design.by_columns(), given.label
        squares = mean_squares(self.squares, design, given.plan, given.release)
        curvature = problem.loss.curvature * squares + problem.elastic.l2 * problem.scales**2
        return Greedy(
            problem,
            design,
            label,
            np.zeros(label.size),
            given.plan,
            chosen(self.clip) * np.sqrt(squares),
            self.step / curvature,
        )


def _select(units: int) -> Mechanism:
    return SignedSelection.within(units, sensitivity=2 * TOP)


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """DP-GCD at work: ``margins`` follow the model."""

    problem: Problem
    design: Columns
    label: FloatArray
    margins: FloatArray
    plan: BudgetPlan
    clips: FloatArray
    steps: FloatArray
    _sums: list[IntArray] = field(default_factory=list)

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, float]:
        """Return a gradient step along the selected coordinate."""
        self._sums.clear()
        public = self.problem.elastic.l2 * self.problem.scales**2 * u  # the penalty's derivative
        per_unit = self.clips / TOP / self.label.size
        offset = np.clip(np.rint(public / per_unit), -_MAX_PUBLIC, _MAX_PUBLIC).astype(np.int64)
        select, step = self.plan.mechanism(SELECT), self.plan.mechanism(STEP)
        j = int(release(SELECT, k, select, lambda: self._gradient() + offset)[0])
        noisy = int(release(STEP, k, step, lambda: self._gradient()[j : j + 1])[0])
        derivative = noisy * float(per_unit[j]) + float(public[j])
        return j, float(u[j] - self.steps[j] * derivative)

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Move the margins."""
        shift(self.design, block, change, self.margins)

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``u``."""
        return u

    def _gradient(self) -> IntArray:
        """Return all derivatives; the second release of a step asks for the same ones."""
        if not self._sums:
            steep = slopes_of(self.problem.loss, self.margins, self.label)
            clips = enumerate(self.clips.tolist())
            sums = [self.design.weighted(j, clip, steep) for j, clip in clips]
            self._sums.append(np.array(sums, np.int64))
        return self._sums[0]
