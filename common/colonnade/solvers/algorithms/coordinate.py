"""DP-CD: proximal coordinate descent with noisy partial derivatives (Mangold et al. 2022)."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.linear.losses import CUSTOM_CODE
from colonnade.linear.penalties import Penalty
from colonnade.privacy.mechanisms import Mechanism
from colonnade.solvers.algorithms.smoothness import Squares, mean_squares, smoothness_parts
from colonnade.solvers.budgets import ReleasePart, gaussian_step
from colonnade.solvers.checks import check_not_negative, check_one_of, check_positive, chosen
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import TOP, sweep
from colonnade.solvers.designs.dense import Columns, DenseDesign, Moved
from colonnade.solvers.designs.slopes import column_gradient
from colonnade.solvers.iteration import Block, Release
from colonnade.solvers.problem import Problem

STEP = "step"


@dataclass(frozen=True, slots=True)
class CoordinateDescent:
    """Move one coordinate at a time.

    Privacy: a step releases one partial derivative, a sum over rows of integers of at most ``TOP``:
    sensitivity ``2 TOP`` whatever the coordinate, its threshold and the current model are.

    Parameters
    ----------
    passes
        Over the coordinates; None for as many as the budget pays for (`with_defaults`).
    clip
        Threshold: coordinate ``j`` is clipped at ``clip * sqrt(m_j)``, ``m_j`` its mean square.
        In the paper's terms ``C = clip * sqrt(sum m)`` and ``C_j = C sqrt(M_j / sum M)``.
        None for one that suits the loss.
    step
        Step size in units of ``1 / M_j``.
    order
        In turn, or drawn uniformly from public randomness; privacy is the same.
    average_every
        If positive, continue every so many steps from the mean of the iterates: ``T x K``.

    References
    ----------
    Mangold, Bellet, Salmon and Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML.

    Examples
    --------
    >>> solver = CoordinateDescent(passes=4)
    >>> solver.steps(n_rows=1000, n_features=5)
    20
    >>> [(part.kind, part.count) for part in solver.parts(1000, 5)]
    [('smoothness', 1), ('step', 20)]
    """

    name: ClassVar[str] = "cd"
    reads_rows: ClassVar[bool] = False
    passes: int | None = None
    clip: float | None = None
    step: float = 1.0
    squares: Squares = "private"
    order: Literal["cyclic", "random"] = "cyclic"
    average_every: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(passes=self.passes, clip=self.clip, step=self.step)
        check_not_negative(average_every=self.average_every, seed=self.seed)
        check_one_of("order", self.order, ("cyclic", "random"))
        if isinstance(self.squares, str):
            check_one_of("squares", self.squares, ("private", "bounds"))

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""
        if not problem.loss.smooth:
            return (
                f"coordinate descent takes steps of 1 / M_j and the {problem.loss.name} loss has "
                "no curvature bound M_j; use solver 'sgd', 'admm' or 'dual'"
            )
        return None

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return chosen(self.passes) * n_features

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        """Return what a run releases."""
        first = smoothness_parts(self.squares, n_features)
        steps = self.steps(n_rows, n_features)
        share = 1 - sum((part.share for part in first), Fraction(0))
        return (*first, ReleasePart(STEP, share, steps, steps, gaussian_step))

    def start(self, given: Setting) -> "Descent":
        """Return the operator, with the constants bought."""
        problem, design, label = given.problem, given.design.by_columns(), given.label
        n_rows, n_features = design.shape
        squares = mean_squares(self.squares, design, given.plan, given.release)
        clips = chosen(self.clip) * np.sqrt(squares)
        order = np.arange(n_features)
        if self.order == "random":
            draw = np.random.default_rng(self.seed)
            order = draw.integers(0, n_features, self.steps(n_rows, n_features))
        return Descent(
            problem,
            design,
            label,
            np.zeros(n_rows),
            given.plan.mechanism(STEP),
            clips.tolist(),
            (self.step / (problem.loss.curvature * squares)).tolist(),
            order.tolist(),
            problem.scales.tolist(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """DP-CD at work: ``margins`` follow the model, but for the last step in ``late``."""

    problem: Problem
    design: Columns
    label: FloatArray
    margins: FloatArray
    mechanism: Mechanism
    clips: list[float]
    steps: list[float]
    order: list[int]
    scales: list[float]
    late: list[Moved] = field(default_factory=lambda: [(0, 0.0)])

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, float]:
        """Return a proximal step along the next coordinate."""
        j = self.order[k % len(self.order)]
        clip, step, loss = self.clips[j], self.steps[j], self.problem.loss

        def compute() -> IntArray:
            last, self.late[0] = self.late[0], (j, 0.0)
            total = column_gradient(self.design, j, clip, loss, self.margins, self.label, last)
            return np.array([total], np.int64)

        noisy = int(release(STEP, k, self.mechanism, compute)[0])
        derivative = noisy * (clip / TOP) / self.margins.size
        point = float(u[j]) - step * derivative
        return j, self.problem.penalty.prox_one(point, step, self.scales[j])

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Move the margins, or let the next derivative do it in the same pass."""
        if self.late[0][1]:  # not consumed: the last release was a replay
            self.design.shift(*self.late[0], self.margins)
        if isinstance(block, int):
            self.late[0] = (block, float(change))
        else:
            self.late[0] = (0, 0.0)
            shift(self.design, block, change, self.margins)

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``u``."""
        return u

    @property
    def sweeps(self) -> Mechanism | None:
        """The mechanism of every step, if the table is dense and all is compiled."""
        known = self.problem.loss.code != CUSTOM_CODE and isinstance(self.problem.penalty, Penalty)
        return self.mechanism if known and isinstance(self.design, DenseDesign) else None

    def sweep(self, first: int, u: FloatArray, noise: IntArray) -> None:
        """Take a step for every entry of ``noise``; ``u`` changes in place."""
        penalty = self.problem.elastic
        if not isinstance(self.design, DenseDesign):
            raise TypeError("only dense tables are swept")
        sweep(
            self.problem.loss.code,
            self.design.columns,
            self.design.units,
            np.array(self.clips),
            np.array(self.steps),
            np.array(self.scales),
            np.array(self.order),
            first,
            noise,
            penalty.l1,
            penalty.l2,
            penalty.bound,
            self.margins,
            self.label,
            u,
        )


def shift(design: Columns, block: Block, change: FloatArray | float, margins: FloatArray) -> None:
    """Move ``margins`` in place as the coefficients in ``block`` change."""
    if isinstance(block, int):
        design.shift(block, float(change), margins)
        return
    for j, amount in enumerate(np.asarray(change)):
        if amount:
            design.shift(j, float(amount), margins)
