"""DP-SCD: dual coordinate descent, a batch of rows at a time (Damaskinos et al. 2021).

Row ``i`` has a dual variable ``alpha_i``; ``v`` is the sum of ``alpha_i x_i`` and the model is
``v_j / (n l2_j)``. A batch's updates are computed on the released ``v`` and added to it with noise.

How this is priced. The paper draws a secret batch and takes the amplified price of the sampled
Gaussian mechanism. That does not follow: noise is added to the batch's own ``alpha`` only, so a
released ``alpha`` shows who was in the batch; and a hidden ``alpha`` depends on the batches that
its row was in before, so that later steps are no fresh samples. Here batches are a public
partition of the rows, fixed beforehand: a row takes part once in an epoch, disjoint batches cost
nothing beside each other, and the price is that of one release an epoch, in zCDP, with no sampling
to keep secret.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import CUSTOM_CODE
from colonnade.linear.penalties import Penalty
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.algorithms.sgd import row_norm
from colonnade.solvers.budgets import STEP_SENSITIVITY2, ReleasePart
from colonnade.solvers.checks import check_not_negative, check_positive
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import Rows
from colonnade.solvers.designs.row_kernels import dual_rows
from colonnade.solvers.iteration import EVERYTHING, Block, Release
from colonnade.solvers.problem import Problem

_SLOPE = 0.5


@dataclass(frozen=True, slots=True)
class DualDescent:
    """Update the dual variables of one batch after another.

    Privacy: a step releases a sum of integer vectors, one a row of the batch, of norm at most
    ``TOP``; what a row adds depends on its values, its own hidden ``alpha`` and earlier releases.
    With ``noisy_alpha`` the batch's own updates, integers of at most ``TOP`` too, are released
    beside it, which doubles the squared sensitivity. In the sequential variant every row of a batch
    sees the earlier ones, so one row may change all ``L`` of them: the sensitivity is ``L`` times
    as large for ``v`` (and the squared one ``L`` times as large for ``alpha``).

    Parameters
    ----------
    batch_size
        Rows in a batch; independent updates count each row's curvature so many times.
    clip
        Largest change of a dual variable in a step; None for the largest that a residual of a half
        asks for: a weak penalty makes for short steps, and noise is proportional to the longest.
    norm
        Bound on the norm of a row, at which longer ones are scaled down; None for the largest that
        bounds allow.
    noisy_alpha
        Whether to release the dual variables too, as the paper does; else they stay hidden.

    References
    ----------
    Damaskinos, Mendler-Duenner, Guerraoui, Papandreou and Parnell (2021). Differentially private
    stochastic coordinate descent. AAAI.

    Examples
    --------
    >>> (part,) = DualDescent(epochs=3, batch_size=100).parts(1000, 5)
    >>> part.count, part.touches  # a row is in one batch an epoch
    (30, 3)
    """

    name: ClassVar[str] = "dual"
    reads_rows: ClassVar[bool] = True
    epochs: int = 10
    batch_size: int = 512
    clip: float | None = None
    norm: float | None = None
    sequential: bool = False
    noisy_alpha: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(epochs=self.epochs, batch_size=self.batch_size)
        check_positive(clip=self.clip, norm=self.norm)
        check_not_negative(seed=self.seed)

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""
        penalty = problem.penalty
        if problem.loss.code == CUSTOM_CODE:
            return (
                f"the dual needs the conjugate of a loss, which {problem.loss.name} does not "
                "state; use solver 'sgd' or 'admm'"
            )
        if not isinstance(penalty, Penalty) or penalty.l1 > 0.0 or math.isfinite(penalty.bound):
            others = "'cd', 'sgd' or 'admm'" if problem.loss.smooth else "'sgd' or 'admm'"
            return f"the dual needs an l2 penalty alone, not {penalty.name}; use solver {others}"
        if penalty.l2 == 0.0:
            return "the dual needs an l2 penalty, for the model is v / (n l2)"
        if (problem.scales == 0.0).any():
            return (
                "the dual needs an l2 penalty on every coordinate and the intercept has none; "
                "fit without an intercept or use another solver"
            )
        return None

    def batches(self, n_rows: int) -> int:
        """Return the number of batches in an epoch."""
        return -(-n_rows // min(self.batch_size, n_rows))

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return self.epochs * self.batches(n_rows)

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        """Return what a run releases; one row affects one batch an epoch."""
        most = min(self.batch_size, n_rows)
        sensitivity2 = STEP_SENSITIVITY2 * (most * most if self.sequential else 1)
        if self.noisy_alpha:
            sensitivity2 += STEP_SENSITIVITY2 * (most if self.sequential else 1)

        def make(units: int) -> Mechanism:
            return DiscreteGaussian.within(units, l2_sensitivity2=sensitivity2)

        steps = self.steps(n_rows, n_features)
        return (ReleasePart(STEP, Fraction(1), steps, self.epochs, make),)

    def start(self, given: Setting) -> "Duals":
        """Return the operator."""
        problem, design, label = given.problem, given.design, given.label
        n_rows = design.shape[0]
        order = np.random.default_rng(self.seed).permutation(n_rows)
        batches = [np.sort(part) for part in np.array_split(order, self.batches(n_rows))]
        norm = self.norm or row_norm(design)
        spread = 1.0 / (problem.elastic.l2 * problem.scales**2 * n_rows)
        crowd = 1 if self.sequential else min(self.batch_size, n_rows)
        # The most that a row within the bounds, and within the norm, can bend its part of the dual.
        bend = min(float(spread @ (design.units * GRID) ** 2), float(spread.max()) * norm**2)
        most = self.clip or _SLOPE / (1.0 + crowd * bend)
        return Duals(
            problem,
            design.by_rows(),
            label,
            given.plan.mechanism(STEP),
            self,
            most,
            most * norm,
            batches,
            spread,
            np.zeros(n_rows),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Duals:
    """DP-SCD at work: ``u`` is ``v``."""

    problem: Problem
    rows: Rows
    label: FloatArray
    mechanism: Mechanism
    solver: DualDescent
    most: float
    clip: float
    batches: list[IntArray]
    spread: FloatArray
    alpha: FloatArray

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        """Return ``v`` with the batch's updates added."""
        rows, batch = self.rows, self.batches[k % len(self.batches)]
        solver = self.solver
        weights = np.zeros(batch.size)
        done: list[IntArray] = []

        def compute() -> IntArray:
            out = np.zeros(u.size, np.int64)
            dual_rows(
                self.problem.loss.code,
                *rows.arrays,
                batch,
                self.spread,
                u,
                self.alpha,
                self.label,
                1.0 if solver.sequential else float(batch.size),
                solver.sequential,
                self.most,
                self.clip,
                weights,
                out,
            )
            done.append(out)
            if not solver.noisy_alpha:
                return out
            return np.concatenate([out, np.trunc(weights / self.most * TOP).astype(np.int64)])

        noisy = release(STEP, k, self.mechanism, compute)
        if not done:  # a replay: the hidden duals must move all the same
            compute()
        if solver.noisy_alpha:
            weights[:] = noisy[u.size :] * (self.most / TOP)
        self.alpha[batch] += weights
        return EVERYTHING, u + noisy[: u.size] * (self.clip / TOP)

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Do nothing: the duals moved when the target was found."""

    def model(self, u: FloatArray) -> FloatArray:
        """Return the primal model."""
        return self.spread * u
