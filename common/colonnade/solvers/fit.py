"""Fit one linear model on one table: what the estimators and ``colonnade fit`` share.

Solvers work on features and label scaled by their bounds; penalties are stated in the users'
units. With ``m`` and ``h`` the middles and half widths, ``w_j = h_y c_j / h_j`` (``h_y`` is 1 for
labels of -1 and +1), so that ``scales_j = 1 / h_j``, and an l1 penalty and a box are divided by
``h_y``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import Bounds
from colonnade.linear.losses import Loss
from colonnade.linear.penalties import AnyPenalty, no_penalty
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.algorithms.gram_steps import NoisyNewton
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.checks import check_one_of
from colonnade.solvers.claims import Claim, claim_of
from colonnade.solvers.defaults import with_defaults
from colonnade.solvers.designs.dense import Design
from colonnade.solvers.iteration import Direct, Noiseless, Operator, Release, Trail
from colonnade.solvers.problem import Problem
from colonnade.solvers.registry import Solver, check
from colonnade.solvers.solve import check_promise, make_plan, solve
from colonnade.solvers.statistics import GramStatistics

NoiseName: TypeAlias = Literal["exact", "fast", "off"]
NOISES = ("exact", "fast", "off")


@dataclass(frozen=True, slots=True, eq=False)
class SolverTable:
    """A design whose last column is the intercept's, if there is one, and the label.

    Parameters
    ----------
    bounds
        Of the features, as quantised: symmetric about zero where there is no intercept.
    label
        Scaled to ``[-1, 1]``, or -1 and +1.
    label_bounds
        None for classes.

    Examples
    --------
    >>> from colonnade.solvers.designs.dense import dense_design
    >>> bounds = (Bounds(0.0, 1.0),)
    >>> design = dense_design(np.zeros((3, 1)), bounds)
    >>> SolverTable(design, bounds, np.array([-1.0, 1.0, 1.0]), None, intercept=False).label.size
    3
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
    statistics: GramStatistics | None = None  # of a solver that releases a Gram matrix


@dataclass(frozen=True, slots=True)
class Objective:
    """A loss, and a penalty in the users' units.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> Objective(SQUARED).penalty.name
    'none'
    """

    loss: Loss
    penalty: AnyPenalty = field(default_factory=no_penalty)


@dataclass(frozen=True, slots=True)
class ResolvedFit:
    """A fit of which every default is chosen and the noise is fixed; made by `resolve_fit`.

    Parameters
    ----------
    solver
        With a value for every hyperparameter.
    shape
        Rows and columns of the design, the intercept's among them.
    enforced
        Whether every release is charged in full, as a ledger does.
    n_problems
        How many problems on the same rows share the budget.
    plan
        The mechanisms of all of them.
    """

    objective: Objective
    solver: Solver
    shape: tuple[int, int]
    epsilon: float
    delta: float
    noise: NoiseName
    enforced: bool
    n_problems: int
    plan: BudgetPlan

    @property
    def steps(self) -> int:
        """Number of steps of one problem."""
        return self.solver.steps(*self.shape)

    @property
    def claim(self) -> Claim:
        """What all problems together promise, computed anew from the integers of the noise."""
        return claim_of(
            self.plan,
            self.solver,
            n_rows=self.shape[0],
            delta=self.delta,
            private=self.noise == "exact",
            enforced=self.enforced,
        )


def resolve_fit(
    objective: Objective,
    solver: Solver,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float | None = None,
    noise: NoiseName = "exact",
    enforced: bool = False,
    n_problems: int = 1,
) -> ResolvedFit:
    """Choose everything that was left open: the only place where defaults become values.

    Parameters
    ----------
    shape
        Rows and columns of the design, the intercept's among them.
    delta
        ``min(1e-6, 1 / (10 n))`` if None.
    noise
        ``"fast"`` and ``"off"`` are for experiments: the result is marked not private.
    enforced, n_problems
        As in `make_plan`.

    Examples
    --------
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> fit = resolve_fit(Objective(SQUARED), CoordinateDescent(), (1000, 4), epsilon=1.0)
    >>> fit.delta, fit.solver.passes, fit.steps
    (1e-06, 11, 44)
    >>> print(fit.claim)
    epsilon 1 at delta 1e-06, one row replaced
    """
    check_one_of("noise", noise, NOISES)
    delta = check_promise(epsilon, delta, shape[0])
    solver = with_defaults(
        solver,
        objective.loss,
        shape,
        epsilon=epsilon,
        delta=delta,
        enforced=enforced,
        n_problems=n_problems,
    )
    plan = make_plan(
        solver, shape, epsilon=epsilon, delta=delta, enforced=enforced, n_problems=n_problems
    )
    return ResolvedFit(objective, solver, shape, epsilon, delta, noise, enforced, n_problems, plan)


def fit_table(
    table: SolverTable,
    fit: ResolvedFit,
    *,
    seed: int | None = None,
    gated: Release | None = None,
    progress: Callable[[int], None] | None = None,
    keep_trail: bool = False,
) -> Fitted:
    """Fit, and state the guarantee.

    Parameters
    ----------
    seed
        Of fast noise.
    gated
        Where releases go instead of straight to the solver: a ledger, which charges them in full.
    keep_trail
        Whether to keep how the coefficients came about.

    Examples
    --------
    >>> from colonnade.solvers.scaling import scaled_label
    >>> import numpy as np
    >>> from colonnade.core.fixedpoint import Bounds
    >>> from colonnade.linear.losses import SQUARED
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> from colonnade.solvers.designs.dense import dense_design
    >>> x = np.linspace(0.0, 10.0, 50)
    >>> bounds, y_bounds = (Bounds(0.0, 10.0),), Bounds(0.0, 30.0)
    >>> design = dense_design(x[:, None], bounds, intercept=True)
    >>> label = scaled_label(3.0 * x, y_bounds)
    >>> table = SolverTable(design, bounds, label, y_bounds, intercept=True)
    >>> solver = CoordinateDescent(passes=100, clip=8.0)
    >>> fit = resolve_fit(Objective(SQUARED), solver, design.shape, epsilon=1.0, noise="off")
    >>> fit_table(table, fit).coef.round(3)
    array([3.])
    """
    if table.design.shape != fit.shape:
        raise ValueError("the fit was resolved for a table of another shape")
    if fit.enforced != (gated is not None) or (fit.enforced and fit.n_problems > 1):
        raise ValueError("a ledger takes a fit of one problem that was priced for a ledger")
    problem = problem_of(table, fit.objective, fit.solver)
    sampler: NoiseSource = OsNoise() if fit.noise == "exact" else SeededNoise(seed or 0)
    trail: Trail = []
    operators: list[Operator] = []
    coef = solve(
        problem,
        table.design,
        table.label,
        fit.solver,
        plan=fit.plan,
        release=gated or (Noiseless() if fit.noise == "off" else Direct(sampler)),
        sampler=sampler,
        progress=progress,
        trail=trail if keep_trail else None,
        started=operators.append,
    )
    (operator,) = operators
    told = GramStatistics.of(operator) if isinstance(operator, NoisyNewton) else None
    return replace(_in_users_units(coef, table, fit.claim, trail), statistics=told)


def problem_of(table: SolverTable, objective: Objective, solver: Solver) -> Problem:
    """Return the problem in the solver's units; raise `Unsuitable` if it cannot solve it."""
    half_widths = [bound.half_width for bound in table.bounds]
    scales = np.array([1.0 / half for half in half_widths] + [0.0] * table.intercept)
    width = _label_width(table)
    problem = Problem(objective.loss, objective.penalty.rescaled(width), scales)
    check(problem, solver)
    return problem


def _label_width(table: SolverTable) -> float:
    return 1.0 if table.label_bounds is None else table.label_bounds.half_width


def _in_users_units(coef: FloatArray, table: SolverTable, claim: Claim, trail: Trail) -> Fitted:
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
