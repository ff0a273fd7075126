"""Fit one linear model on one table: what the estimators and ``colonnade fit`` share.

Solvers work on features and label scaled by their bounds; penalties are stated in the users'
units. With ``m`` and ``h`` the middles and half widths, ``w_j = h_y c_j / h_j`` (``h_y`` is 1 for
labels of -1 and +1), so that ``scales_j = 1 / h_j``, and an l1 penalty and a box are divided by
``h_y``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.linear.losses import Loss
from colonnade.linear.penalties import Penalty
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.claims import Claim, claim_of
from colonnade.solvers.defaults import settled
from colonnade.solvers.design import Design
from colonnade.solvers.iteration import Direct, Noiseless, Release, Trail
from colonnade.solvers.problem import Problem
from colonnade.solvers.solve import SOLVERS, Solver, check, check_promise, make_plan, solve

NoiseName: TypeAlias = Literal["exact", "fast", "off"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A design whose last column is the intercept's, if there is one, and the label.

    Parameters
    ----------
    bounds
        Of the features, as quantised: symmetric about zero where there is no intercept.
    label
        Scaled to ``[-1, 1]``, or -1 and +1.
    label_bounds
        None for classes.
    """

    design: Design
    bounds: tuple[Bounds, ...]
    label: FloatArray
    label_bounds: Bounds | None
    intercept: bool


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model on the scaled features and in the users' units, and what it promises."""

    coef_scaled: FloatArray
    intercept_scaled: float
    coef: FloatArray
    intercept: float
    claim: Claim
    trail: Trail  # of the scaled coefficients, the intercept's last; empty if not asked for


@dataclass(frozen=True, slots=True)
class Objective:
    """A loss, the strengths of its penalty and the size of its box in the users' units."""

    loss: Loss
    l1: float = 0.0
    l2: float = 0.0
    bound: float = math.inf


def make_solver(solver: str | Solver) -> Solver:
    """Return the solver of a name, with its defaults, or the solver itself."""
    if not isinstance(solver, str):
        return solver
    if solver not in SOLVERS:
        raise ValueError(f"no solver is called {solver!r}; there are {', '.join(sorted(SOLVERS))}")
    return SOLVERS[solver]()


def symmetric(bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """Widen bounds to be symmetric about zero, so that zero stays zero."""
    ends = [max(abs(bound.low), abs(bound.high)) for bound in bounds]
    return tuple(Bounds(-end, end) for end in ends)


def scaled_label(y: FloatArray, bounds: Bounds) -> FloatArray:
    """Clip and round a label under its bounds; return it scaled to ``[-1, 1]``."""
    return quantise(y, bounds, grid=GRID).astype(np.float64) / GRID


def fit_table(
    table: Table,
    objective: Objective,
    solver: Solver,
    *,
    epsilon: float,
    delta: float | None = None,
    noise: NoiseName = "exact",
    seed: int | None = None,
    gated: Release | None = None,
    progress: Callable[[int], None] | None = None,
    keep_trail: bool = False,
) -> Fitted:
    """Fit, and state the guarantee.

    Parameters
    ----------
    delta
        ``min(1e-6, 1 / (10 n))`` if None.
    noise
        ``"fast"`` and ``"off"`` are for experiments: the result is marked not private.
    seed
        Of fast noise.
    gated
        Where releases go instead of straight to the solver: a ledger, which charges them in full.
    keep_trail
        Whether to keep how the coefficients came about.
    """
    n_rows, n_features = table.design.shape
    problem = problem_of(table, objective, solver)
    delta = check_promise(epsilon, delta, n_rows)
    enforced = gated is not None
    solver = settled(
        solver,
        objective.loss,
        (n_rows, n_features),
        epsilon=epsilon,
        delta=delta,
        enforced=enforced,
    )
    plan = make_plan(solver, (n_rows, n_features), epsilon=epsilon, delta=delta, enforced=enforced)
    sampler: NoiseSource = OsNoise() if noise == "exact" else SeededNoise(seed or 0)
    release = gated or (Noiseless() if noise == "off" else Direct(sampler))
    trail: Trail = []
    coef = solve(
        problem,
        table.design,
        table.label,
        solver,
        plan=plan,
        release=release,
        sampler=sampler,
        progress=progress,
        trail=trail if keep_trail else None,
    )
    claim = claim_of(
        plan, solver, n_rows=n_rows, delta=delta, private=noise == "exact", enforced=enforced
    )
    return _in_users_units(coef, table, claim, trail)


def problem_of(table: Table, objective: Objective, solver: Solver) -> Problem:
    """Return the problem in the solver's units; raise `Unsuitable` if it cannot solve it."""
    half_widths = [bound.half_width for bound in table.bounds]
    scales = np.array([1.0 / half for half in half_widths] + [0.0] * table.intercept)
    width = _label_width(table)
    penalty = Penalty(objective.l1 / width, objective.l2, objective.bound / width)
    problem = Problem(objective.loss, penalty, scales)
    check(problem, solver)
    return problem


def _label_width(table: Table) -> float:
    return 1.0 if table.label_bounds is None else table.label_bounds.half_width


def _in_users_units(coef: FloatArray, table: Table, claim: Claim, trail: Trail) -> Fitted:
    n_features, width = len(table.bounds), _label_width(table)
    scaled = coef[:n_features]
    constant = float(coef[n_features]) if table.intercept else 0.0
    middles = np.array([bound.middle for bound in table.bounds])
    slopes = scaled / np.array([bound.half_width for bound in table.bounds])
    middle = 0.0 if table.label_bounds is None else table.label_bounds.middle
    return Fitted(
        coef_scaled=scaled,
        intercept_scaled=constant,
        coef=width * slopes,
        intercept=middle + width * (constant - float(slopes @ middles)),
        claim=claim,
        trail=trail,
    )
