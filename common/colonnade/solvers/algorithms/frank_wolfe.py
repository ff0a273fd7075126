"""Centralised DP Frank-Wolfe over an l1 ball: one private vertex a step (Talwar et al. 2015)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.privacy.mechanisms import Mechanism, SignedSelection
from colonnade.solvers.algorithms.coordinate import shift
from colonnade.solvers.algorithms.greedy import SELECT
from colonnade.solvers.budgets import ReleasePart
from colonnade.solvers.checks import check_positive
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import quantise_slopes
from colonnade.solvers.designs.dense import Columns
from colonnade.solvers.designs.slopes import slopes_of
from colonnade.solvers.iteration import EVERYTHING, Block, Release
from colonnade.solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class FrankWolfe:
    """Minimise over ``|u|_1 <= radius``, on features scaled to ``[-1, 1]``.

    Privacy: a step releases one signed selection among the inner products of the columns, integers
    of at most ``GRID``, with the slopes, clipped and truncated to integers of at most ``GRID``:
    replacing one row moves each score by at most ``2 GRID**2``.

    Parameters
    ----------
    clip
        Largest slope of a row.

    References
    ----------
    Talwar, Thakurta and Zhang (2015). Nearly-optimal private LASSO. NeurIPS.

    Examples
    --------
    >>> (part,) = FrankWolfe(radius=2.0, iterations=30).parts(1000, 5)
    >>> part.kind, part.count
    ('select', 30)
    """

    name: ClassVar[str] = "frank_wolfe"
    reads_rows: ClassVar[bool] = False
    radius: float = 1.0
    iterations: int = 30
    clip: float = 1.0

    def __post_init__(self) -> None:
        check_positive(radius=self.radius, iterations=self.iterations, clip=self.clip)

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""
        if not problem.loss.smooth:
            return f"Frank-Wolfe needs a smooth loss, which {problem.loss.name} is not"
        if problem.penalty.name != "none":
            return (
                f"Frank-Wolfe takes no penalty ({problem.penalty.name}) but the radius of an l1 "
                "ball: leave the penalty out (alpha=0 or C=inf) and choose the radius"
            )
        if (problem.scales == 0.0).any():
            return "Frank-Wolfe has no free intercept; fit without an intercept"
        return None

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return self.iterations

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:  # noqa: ARG002
        """Return what a run releases."""
        return (ReleasePart(SELECT, Fraction(1), self.iterations, self.iterations, _select),)

    def start(self, given: Setting) -> "Vertices":
        """Return the operator."""
        problem, design, label = given.problem, given.design.by_columns(), given.label
        if np.ptp(design.units) > 0.0:
            raise ValueError("Frank-Wolfe compares columns of one unit; scale the features")
        mechanism = given.plan.mechanism(SELECT)
        return Vertices(problem, design, label, np.zeros(label.size), mechanism, self)


def _select(units: int) -> Mechanism:
    return SignedSelection.within(units, sensitivity=2 * GRID * GRID)


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """DP-FW at work: ``margins`` follow the model."""

    problem: Problem
    design: Columns
    label: FloatArray
    margins: FloatArray
    mechanism: Mechanism
    solver: FrankWolfe

    def relaxation(self, k: int) -> float:
        """Return the open-loop step."""
        return 2.0 / (k + 2.0)

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        """Return the vertex against the largest derivative."""
        feature, sign = release(SELECT, k, self.mechanism, self._scores)
        vertex = np.zeros_like(u)
        vertex[feature] = -float(sign) * self.solver.radius
        return EVERYTHING, vertex

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Move the margins."""
        shift(self.design, block, change, self.margins)

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``u``."""
        return u

    def _scores(self) -> IntArray:
        steep = slopes_of(self.problem.loss, self.margins, self.label)
        residual = np.empty(steep.size, np.int16)
        quantise_slopes(steep, GRID / self.solver.clip, GRID, residual)
        return self.design.scores(residual)
