"""DP-SGD: proximal gradient steps on Poisson batches of clipped rows (Abadi et al. 2016)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC
from colonnade.privacy.mechanisms import Mechanism
from colonnade.privacy.sampling import NoiseSource
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.budgets import ReleasePart, gaussian_step
from colonnade.solvers.checks import check_one_of, check_positive, chosen
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import Design, Rows
from colonnade.solvers.designs.slopes import batch_gradient
from colonnade.solvers.iteration import EVERYTHING, Block, Release
from colonnade.solvers.problem import Problem

DEFAULT_BATCH_SIZE = 512


@dataclass(frozen=True, slots=True)
class StochasticDescent:
    """Move against the noisy mean gradient of a secret random batch.

    Privacy: a step releases a sum of integer vectors, one a row, of norm at most ``TOP``. Each row
    is in a batch with probability ``rate``, independently of everything; the batch stays secret.

    Parameters
    ----------
    passes
        Steps times the rate.
    batch_size
        Expected rows in a batch; ``"full"`` for all rows at every step; None for 512, or for all
        rows where a ledger gives no credit for sampling.
    clip
        Threshold of a row's gradient, in units of the largest norm that bounds allow a row; None
        for one that suits the loss.
    step
        Step size, in units of one over the curvature of a row of that norm; rows are mostly
        shorter, so steps above 1 do well.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016). Deep learning with
    differential privacy. CCS.

    Examples
    --------
    >>> solver = StochasticDescent(passes=2, batch_size=100)
    >>> round(solver.rate(n_rows=1000), 3), solver.steps(n_rows=1000, n_features=5)
    (0.095, 21)
    >>> StochasticDescent(batch_size="full").rate(n_rows=1000)
    1.0
    """

    name: ClassVar[str] = "sgd"
    reads_rows: ClassVar[bool] = True
    passes: float = 20.0
    batch_size: int | Literal["full"] | None = None
    clip: float | None = None
    step: float = 4.0

    def __post_init__(self) -> None:
        check_positive(passes=self.passes, step=self.step, clip=self.clip)
        if isinstance(self.batch_size, str):
            check_one_of("batch_size", self.batch_size, ("full",))
        else:
            check_positive(batch_size=self.batch_size)

    def refusal(self, problem: Problem) -> str | None:  # noqa: ARG002
        """Return why this solver cannot solve ``problem``, or None."""
        return None

    def scale(self, n_rows: int) -> int:
        """Return ``t``: a row is in a batch with probability ``1 - exp(-1/t)``; 0 for always.

        Gaps between rows are then discrete Laplace samples of scale ``t`` that are not negative,
        which can be drawn exactly.
        """
        size = DEFAULT_BATCH_SIZE if self.batch_size is None else self.batch_size
        if isinstance(size, str) or size >= n_rows:
            return 0
        return math.ceil(-1.0 / math.log1p(-size / n_rows))

    def rate(self, n_rows: int) -> float:
        """Return the probability with which a row is in a batch."""
        t = self.scale(n_rows)
        return -math.expm1(-1.0 / t) if t else 1.0

    def steps(self, n_rows: int, n_features: int) -> int:  # noqa: ARG002
        """Return the number of steps."""
        return max(1, round(self.passes / self.rate(n_rows)))

    def parts(self, n_rows: int, n_features: int) -> tuple[ReleasePart, ...]:
        """Return what a run releases, priced as if every row were in every batch."""
        steps = self.steps(n_rows, n_features)
        return (ReleasePart(STEP, Fraction(1), steps, steps, gaussian_step),)

    def start(self, given: Setting) -> "Batches":
        """Return the operator."""
        problem, design, label = given.problem, given.design, given.label
        n_rows = design.shape[0]
        norm = row_norm(design)
        # The hinge has no curvature; its slopes are the logistic loss's, and so are its steps.
        curvature = (problem.loss if problem.loss.smooth else LOGISTIC).curvature
        return Batches(
            problem,
            design.by_rows(),
            label,
            given.plan.mechanism(STEP),
            given.sampler,
            self.scale(n_rows),
            chosen(self.clip) * norm,
            self.step / (curvature * norm**2),
            n_rows * self.rate(n_rows),
        )


def row_norm(design: Design) -> float:
    """Return the largest norm that the grid allows a row."""
    return float(np.linalg.norm(design.units)) * GRID


def poisson_batch(n_rows: int, scale: int, sampler: NoiseSource) -> IntArray:
    """Draw each row with probability ``1 - exp(-1/scale)``, independently and exactly.

    A discrete Laplace sample has probability proportional to ``exp(-|x|/scale)``, so given that it
    is not negative it is the number of failures before a success of that probability.

    Examples
    --------
    >>> from colonnade.privacy.sampling import OsNoise
    >>> batch = poisson_batch(1000, 10, OsNoise())
    >>> bool((np.diff(batch) > 0).all())
    True
    """
    if scale == 0:
        return np.arange(n_rows)
    found: list[IntArray] = []
    last = -1
    while last < n_rows:
        wanted = (n_rows - last) / scale
        draws = sampler.discrete_laplace(scale, int(2.0 * wanted + 8.0 * math.sqrt(wanted) + 8.0))
        rows = last + np.cumsum(draws[draws >= 0] + 1)
        if rows.size:
            found.append(rows)
            last = int(rows[-1])
    places = np.concatenate(found)
    return places[places < n_rows]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """DP-SGD at work."""

    problem: Problem
    rows: Rows
    label: FloatArray
    mechanism: Mechanism
    sampler: NoiseSource
    scale: int
    clip: float
    step: float
    expected: float

    def relaxation(self, k: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def target(self, k: int, u: FloatArray, release: Release) -> tuple[Block, FloatArray]:
        """Return a proximal step against the noisy gradient."""
        rows = self.rows

        def compute() -> IntArray:
            batch = poisson_batch(self.label.size, self.scale, self.sampler)
            out = np.zeros(u.size, np.int64)
            batch_gradient(self.problem.loss, rows, batch, u, self.label, self.clip, out)
            return out

        noisy = release(STEP, k, self.mechanism, compute)
        gradient = noisy * (self.clip / TOP / self.expected)
        step = np.full(u.size, self.step)
        point = u - self.step * gradient
        return EVERYTHING, self.problem.penalty.prox(point, step, self.problem.scales)

    def follow(self, block: Block, change: FloatArray | float) -> None:
        """Do nothing: margins are computed anew."""

    def model(self, u: FloatArray) -> FloatArray:
        """Return ``u``."""
        return u
