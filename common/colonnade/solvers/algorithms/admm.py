"""Centralised private ADMM over rows in consensus (Cyffers, Bellet and Basu 2023).

Each row has a copy ``w_i`` of the model and a dual ``u_i``; the penalty sees the mean ``u`` of the
duals. Here the rows' displacements ``prox_(gamma f_i)(2 z - u_i) - (2 z - u_i)`` are clipped,
summed and released, and ``u`` moves with the noisy mean. For linear models a displacement is
``t_i x_i``, so that ``u_i`` is a public vector plus ``s_i x_i``: a row's state is one number.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.privacy.mechanisms import Mechanism
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.algorithms.sgd import row_norm
from colonnade.solvers.budgets import ReleasePart, gaussian_step
from colonnade.solvers.checks import check_positive, chosen
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import Rows
from colonnade.solvers.designs.slopes import displacements
from colonnade.solvers.iteration import EVERYTHING, Block, Release
from colonnade.solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Admm:
    """Alternate between the rows' proximal maps and the penalty's.

    Privacy: a step releases a sum of integer vectors, one a row, of norm at most ``TOP``. What a
    row adds depends on its own values, on its own hidden state and on earlier releases only, and
    the clip bounds it whatever that state is, so replacing the row moves the sum by ``2 TOP``. The
    noise is added to the released mean, never to the rows' states: they would then depend on each
    other.

    Parameters
    ----------
    gamma
        Length of the proximal steps, in units of one over the square of the largest norm that
        bounds allow a row. Not over the loss's curvature too: steps four times as long overshoot
        for the logistic loss, whose slopes are at most 1.
    clip
        Threshold of a displacement, in units of ``gamma`` times that norm: the Lipschitz constant.
        None for one that suits the loss.
    relaxation
        ``lambda`` of the iteration, in (0, 1).

    References
    ----------
    Cyffers, Bellet and Basu (2023). From noisy fixed-point iterations to private ADMM for
    centralized and federated learning. ICML.

    Examples
    --------
    >>> Admm(iterations=25).steps(n_rows=1000, n_features=5)
    25
    """

    name: ClassVar[str] = "admm"
    reads_rows: ClassVar[bool] = True
    iterations: int = 40
    gamma: float = 20.0
    clip: float | None = None
    relaxation: float = 0.8

    def __post_init__(self) -> None:
        check_positive(iterations=self.iterations, gamma=self.gamma, clip=self.clip)
        if not 0.0 < self.relaxation < 1.0:
            raise ValueError("relaxation must lie strictly between 0 and 1")

    def refusal(self, problem: Problem) -> str | None:  # noqa: ARG002
        """Return why this solver cannot solve ``problem``, or None."""
        return None

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return self.iterations

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:  # noqa: ARG002
        """Return what a run releases."""
        return (ReleasePart(STEP, Fraction(1), self.iterations, self.iterations, gaussian_step),)

    def start(self, given: Setting) -> "Consensus":
        """Return the operator."""
        problem, design, label = given.problem, given.design, given.label
        norm = row_norm(design)
        gamma = self.gamma / norm**2
        return Consensus(
            problem,
            design.by_rows(),
            label,
            given.plan.mechanism(STEP),
            gamma,
            chosen(self.clip) * norm * gamma,
            self.relaxation,
            np.zeros(design.shape[1]),
            np.zeros(label.size),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """ADMM at work: ``u_i = common + along_i x_i``."""

    problem: Problem
    rows: Rows
    label: FloatArray
    mechanism: Mechanism
    gamma: float
    clip: float
    relaxation_: float
    common: FloatArray
    along: FloatArray

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return ``lambda``."""
        return self.relaxation_

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        """Return ``2 (z + mean displacement) - u``: the reflection of both proximal maps."""
        rows, z = self.rows, self.model(u)
        weights = np.zeros_like(self.along)
        done: list[IntArray] = []

        def compute() -> IntArray:
            out = np.zeros(u.size, np.int64)
            displacements(
                self.problem.loss,
                rows,
                2.0 * z - self.common,
                self.along,
                self.label,
                self.gamma,
                self.clip,
                weights,
                out,
            )
            done.append(out)
            return out

        noisy = release(STEP, k, self.mechanism, compute)
        if not done:  # a replay: the rows' states must move all the same
            compute()
        moved = noisy * (self.clip / TOP / self.label.size)
        keep, take = 1.0 - 2.0 * self.relaxation_, 2.0 * self.relaxation_
        weights *= take
        self.along[:] *= keep  # in place: there is one for every row
        self.along[:] += weights
        self.common[:] = keep * self.common + take * z
        return EVERYTHING, 2.0 * (z + moved) - u

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Do nothing: the states moved when the target was found."""

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``z``, the proximal point of the penalty."""
        step = np.full(u.size, self.gamma)
        return self.problem.penalty.prox(u, step, self.problem.scales)
