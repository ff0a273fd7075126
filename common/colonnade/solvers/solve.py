"""Run a solver on a problem: check, plan, iterate."""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.privacy.accounting import delta_for, rho_of, units_down
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.solvers.admm import Admm
from colonnade.solvers.budgets import Part, Plan, plan_sampled, plan_units
from colonnade.solvers.context import Setting
from colonnade.solvers.coordinate import STEP, CoordinateDescent
from colonnade.solvers.defaults import with_thresholds
from colonnade.solvers.design import Design
from colonnade.solvers.dual import DualDescent
from colonnade.solvers.frank_wolfe import FrankWolfe
from colonnade.solvers.greedy import GreedyDescent
from colonnade.solvers.iteration import Operator, Release, Trail, iterate
from colonnade.solvers.problem import Problem
from colonnade.solvers.sgd import StochasticDescent


class Solver(Protocol):
    """A value that says how to solve a problem.

    ``reads_rows`` tells in which order it reads a table: whole rows, else whole columns.
    """

    name: ClassVar[str]
    reads_rows: ClassVar[bool]

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot solve ``problem``, or None."""

    def steps(self, n_rows: int, n_features: int) -> int:
        """Return the number of steps."""

    def parts(self, n_rows: int, n_features: int) -> tuple[Part, ...]:
        """Return what a run releases."""

    def start(self, given: Setting) -> Operator:
        """Return the operator, with anything bought that it needs first."""


SOLVERS: dict[str, type[Solver]] = {
    "cd": CoordinateDescent,
    "gcd": GreedyDescent,
    "sgd": StochasticDescent,
    "frank_wolfe": FrankWolfe,
    "admm": Admm,
    "dual": DualDescent,
}


MAX_RELEASES = 10**7
"""More are almost certainly a mistake: days of work, and noise that leaves nothing to learn."""

_MAX_EPSILON = 1000.0


class Unsuitable(ValueError):
    """The loss, the penalty and the solver do not go together."""


def check(problem: Problem, solver: Solver) -> None:
    """Raise `Unsuitable`, with the reason, unless ``solver`` can solve ``problem``."""
    if (reason := solver.refusal(problem)) is not None:
        raise Unsuitable(reason)


def check_promise(epsilon: Any, delta: Any, n_rows: int | None = None) -> float:
    """Return delta, or its default; `ValueError`, naming which, unless both can be promised."""
    for name, value in (("epsilon", epsilon), ("delta", 0 if delta is None else delta)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number, not {type(value).__name__}")
    if not 0.0 < epsilon < _MAX_EPSILON:
        raise ValueError(f"epsilon must lie between 0 and {_MAX_EPSILON:g}")
    return delta_for(delta, n_rows)


def sampling_rate(solver: Solver, n_rows: int) -> float:
    """Return the probability with which a row is in a secret batch; 1 if all rows are in all."""
    return solver.rate(n_rows) if isinstance(solver, StochasticDescent) else 1.0


def make_plan(
    solver: Solver,
    shape: tuple[int, int],
    *,
    epsilon: float,
    delta: float,
    enforced: bool = False,
) -> Plan:
    """Return the noise with which a run is (``epsilon``, ``delta``)-DP for one row replaced.

    ``enforced`` prices what a ledger would charge: no sampling, no disjoint batches.
    """
    n_rows, n_features = shape
    if solver.steps(n_rows, n_features) < 1:
        raise ValueError("how many passes to make is not chosen yet; call settled() first")
    parts = solver.parts(n_rows, n_features)
    if (count := sum(part.count for part in parts)) > MAX_RELEASES:
        raise ValueError(
            f"this would make {count} releases and {MAX_RELEASES} are the most; ask for fewer "
            "passes, iterations or epochs, or for larger batches"
        )
    rate = sampling_rate(solver, n_rows)
    if rate < 1.0 and not enforced:
        steps = solver.steps(n_rows, n_features)
        return plan_sampled(STEP, rate=rate, steps=steps, epsilon=epsilon, delta=delta)
    units = units_down(rho_of(epsilon, delta))
    return plan_units(parts, units, enforced=enforced)


def solve(
    problem: Problem,
    design: Design,
    label: FloatArray,
    solver: Solver,
    *,
    plan: Plan,
    release: Release,
    sampler: NoiseSource | None = None,
    progress: Callable[[int], None] | None = None,
    trail: Trail | None = None,
) -> FloatArray:
    """Return the coefficients that ``solver`` finds, as functions of releases alone.

    Parameters
    ----------
    label
        Shape ``(n_rows,)``: within ``[-1, 1]`` for squared error, else -1 or +1.
    sampler
        Where secret batches come from; operating-system entropy by default.
    progress, trail
        As in `iterate`.
    """
    check(problem, solver)
    solver = with_thresholds(solver, problem.loss)
    if design.shape[1] != problem.n_features or label.shape != (design.shape[0],):
        raise ValueError("design, label and problem have different sizes")
    if not np.isfinite(label).all():
        raise ValueError("replace missing labels before fitting")
    label = np.ascontiguousarray(label, np.float64)  # what the kernels are compiled for
    given = Setting(problem, design, label, plan, release, sampler or OsNoise())
    return iterate(
        solver.start(given),
        np.zeros(problem.n_features),
        release,
        steps=solver.steps(*design.shape),
        average_every=getattr(solver, "average_every", 0),
        progress=progress,
        trail=trail,
    )
