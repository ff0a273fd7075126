"""Run a solver on a problem: check, plan, iterate."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.privacy.accounting import delta_for, rho_of, units_down
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.budgets import BudgetPlan, plan_sampled, plan_units
from colonnade.solvers.context import Setting
from colonnade.solvers.designs.dense import Design
from colonnade.solvers.iteration import Operator, Release, Trail, iterate
from colonnade.solvers.problem import Problem
from colonnade.solvers.registry import Solver, check

MAX_RELEASES = 10**7
"""More are almost certainly a mistake: days of work, and noise that leaves nothing to learn."""

_MAX_EPSILON = 1000.0


def check_promise(epsilon: Any, delta: Any, n_rows: int | None = None) -> float:
    """Return delta, or its default; `ValueError`, naming which, unless both can be promised.

    Examples
    --------
    >>> check_promise(1.0, None, n_rows=10**6)
    1e-07
    >>> check_promise(-1.0, None)
    Traceback (most recent call last):
    ValueError: epsilon must lie above 0 and below 1000
    """
    for name, value in (("epsilon", epsilon), ("delta", 0 if delta is None else delta)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number, not {type(value).__name__}")
    if not 0.0 < epsilon < _MAX_EPSILON:
        raise ValueError(f"epsilon must lie above 0 and below {_MAX_EPSILON:g}")
    return delta_for(delta, n_rows)


def sampling_rate(solver: Solver, n_rows: int) -> float:
    """Return the probability with which a row is in a secret batch; 1 if all rows are in all.

    Examples
    --------
    >>> sampling_rate(StochasticDescent(batch_size="full"), 1000)
    1.0
    """
    return solver.rate(n_rows) if isinstance(solver, StochasticDescent) else 1.0


def make_plan(
    solver: Solver,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    enforced: bool = False,
    n_problems: int = 1,
) -> BudgetPlan:
    """Return the noise with which a run is (``epsilon``, ``delta``)-DP for one row replaced.

    Privacy: runs of several problems on the same rows compose. In zCDP their costs add (Bun and
    Steinke 2016, Lemma 2.3), so each gets an equal share of rho; with secret batches their steps
    are one longer sequence of sampled releases.

    Parameters
    ----------
    solver
        With its defaults resolved (`with_defaults`).
    shape
        Rows and features.
    enforced
        Price what a ledger would charge: no sampling, no disjoint batches.
    n_problems
        How many problems on the same rows share the budget, such as the classes of a
        one-versus-rest classifier.

    References
    ----------
    Bun and Steinke (2016). Concentrated differential privacy: simplifications, extensions, and
    lower bounds. TCC.

    Examples
    --------
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> solver = CoordinateDescent(passes=5)
    >>> one = make_plan(solver, (1000, 4), epsilon=1.0, delta=1e-6)
    >>> three = make_plan(solver, (1000, 4), epsilon=1.0, delta=1e-6, n_problems=3)
    >>> 0.0 <= one.units() - three.units() < 100  # the same price, but for rounding
    True
    >>> round(three.mechanism("step").sigma2 / one.mechanism("step").sigma2, 6)
    3.0
    """
    n_rows, n_features = shape
    parts = [
        replace(part, count=n_problems * part.count, touches=n_problems * part.touches)
        for part in solver.parts(n_rows, n_features)
    ]
    if (count := sum(part.count for part in parts)) > MAX_RELEASES:
        raise ValueError(
            f"this would make {count} releases and {MAX_RELEASES} are the most; ask for fewer "
            "passes, iterations or epochs, or for larger batches"
        )
    rate = sampling_rate(solver, n_rows)
    if rate < 1.0 and not enforced:
        steps = n_problems * solver.steps(n_rows, n_features)
        return plan_sampled(STEP, rate=rate, steps=steps, epsilon=epsilon, delta=delta)
    units = units_down(rho_of(epsilon, delta))
    return plan_units(parts, units, enforced=enforced)


def solve(
    problem: Problem,
    design: Design,
    label: FloatArray,
    solver: Solver,
    *,
    plan: BudgetPlan,
    release: Release,
    sampler: NoiseSource | None = None,
    progress: Callable[[int], None] | None = None,
    trail: Trail | None = None,
    started: Callable[[Operator], None] | None = None,
) -> FloatArray:
    """Return the coefficients that ``solver`` finds, as functions of releases alone.

    Parameters
    ----------
    solver
        With its defaults resolved (`with_defaults`).
    label
        Shape ``(n_rows,)``: within ``[-1, 1]`` for squared error, else -1 or +1.
    sampler
        Where secret batches come from; operating-system entropy by default.
    progress, trail
        As in `iterate`.
    started
        Is given the operator, which may tell more of its releases when all is done.

    Examples
    --------
    >>> from colonnade.linear import SQUARED, Penalty
    >>> from colonnade.solvers.algorithms.coordinate import CoordinateDescent
    >>> from colonnade.solvers.designs.dense import DenseDesign
    >>> from colonnade.solvers.iteration import Noiseless
    >>> from colonnade.solvers.problem import plain
    >>> design = DenseDesign(np.array([[-16384, 0, 16384]], np.int16), np.full(1, 2.0**-14))
    >>> solver = CoordinateDescent(passes=50, clip=8.0)
    >>> plan = make_plan(solver, design.shape, epsilon=1.0, delta=1e-6)
    >>> label = np.array([-0.5, 0.0, 0.5])
    >>> problem = plain(SQUARED, Penalty(), 1)
    >>> solve(problem, design, label, solver, plan=plan, release=Noiseless()).round(6)
    array([0.5])
    """
    check(problem, solver)
    if design.shape[1] != problem.n_features or label.shape != (design.shape[0],):
        raise ValueError("design, label and problem have different sizes")
    if not np.isfinite(label).all():
        raise ValueError("replace missing labels before fitting")
    label = np.ascontiguousarray(label, np.float64)  # what the kernels are compiled for
    given = Setting(problem, design, label, plan, release, sampler or OsNoise())
    operator = solver.start(given)
    if started is not None:
        started(operator)
    return iterate(
        operator,
        np.zeros(problem.n_features),
        release,
        steps=solver.steps(*design.shape),
        average_every=getattr(solver, "average_every", 0),
        progress=progress,
        trail=trail,
    )
