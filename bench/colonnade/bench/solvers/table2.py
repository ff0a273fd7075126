"""Relative errors of DP-CD, DP-SGD and DP-SCD, tuned on equal grids, reported on fresh seeds.

As in the paper, settings are tuned on the very table that is reported, each draw of the synthetic
one for itself; unlike there, the runs that are reported are not the ones that were tuned on.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.solvers.cases import PAPER, PASSES, SolverCase, load_draws
from colonnade.bench.solvers.one_record import one_record_error
from colonnade.bench.solvers.tuning import Setting, best_setting, grid, load_tuned
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.algorithms.smoothness import Squares
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import make_plan

SOLVERS = ("cd", "cd private", "sgd", "sgd batches", "dual")
"""DP-CD with given constants; with a tenth of the budget spent on them (the paper's DP-CD-P);
DP-SGD with one record a step, as in the paper; and with batches, as this project does it; DP-SCD,
for l2 penalties only, a pass being an epoch."""

BATCH = 1024
TUNING_SEEDS, FRESH_SEEDS = 4, range(1000, 1010)

_CD = grid((0.03, 0.25, 0.5, 1.0, 2.0), (0.1, 0.5, 1.0, 2.0, 4.0, 8.0), size=30)
GRIDS: Mapping[str, tuple[Setting, ...]] = {
    # Step and clip; the units are the solvers' own.
    "cd": _CD,
    "cd private": _CD,
    "sgd": grid((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), size=30),
    "sgd batches": grid(
        (0.3, 3.0, 30.0, 300.0, 3000.0), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), size=30
    ),
    # Rows in a batch, and clip.
    "dual": grid(
        (1000, 10_000, 100_000),
        (1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        size=30,
    ),
}


def suits(case: SolverCase, solver: str) -> bool:
    """Return whether a solver of `SOLVERS` can solve a case."""
    return solver != "dual" or case.problem.penalty.smooth


def make(case: SolverCase, solver: str, passes: int, setting: Setting) -> Solver:
    """Return one of `SOLVERS` for a case."""
    first, clip = setting
    if solver == "dual":
        return DualDescent(epochs=passes, batch_size=int(first), clip=clip)
    if solver.startswith("sgd"):
        batch = 1 if solver == "sgd" else BATCH
        return StochasticDescent(passes=passes, batch_size=batch, step=first, clip=clip)
    squares: Squares = case.squares if solver == "cd" else "private"
    return CoordinateDescent(passes=passes, step=first, clip=clip, squares=squares)


def error(
    case: SolverCase,
    solver: str,
    passes: int,
    setting: Setting,
    plan: BudgetPlan,
    *,
    seed: int | None,
) -> float:
    """Return the relative error of one run, with exact noise if ``seed`` is None.

    A run that diverges counts as infinite.
    """
    if solver == "sgd":  # a baseline, never private
        step, clip = setting
        number = FRESH_SEEDS[0] if seed is None else seed
        return one_record_error(case, plan, passes=passes, step=step, clip=clip, seed=number)
    return case.run_error(make(case, solver, passes, setting), plan, seed=seed)


def planner(case: SolverCase, solver: str, passes: int) -> Callable[[Setting], BudgetPlan]:
    """Return the noise of a run by setting; only the dual's depends on it."""

    @cache
    def planned(first: float) -> BudgetPlan:
        made = make(case, solver, passes, (first, 1.0))
        return make_plan(made, case.design.shape, epsilon=case.epsilon, delta=case.delta)

    return lambda setting: planned(setting[0] if solver == "dual" else 1.0)


def tune(case: SolverCase, solver: str, passes: int, *, seeds: int = TUNING_SEEDS) -> Setting:
    """Return the setting with the least mean error over the tuning seeds; with fast noise."""
    plan = planner(case, solver, passes)

    def run(setting: Setting, seed: int) -> float:
        return error(case, solver, passes, setting, plan(setting), seed=seed)

    return best_setting(run, GRIDS[solver], seeds=seeds)


def table2(
    folder: Path | None,
    *,
    cases: tuple[str, ...],
    passes: tuple[int, ...] = PASSES,
    solvers: tuple[str, ...] = SOLVERS,
    again: bool = False,
    seeds: int = len(FRESH_SEEDS),
) -> list[dict[str, Any]]:
    """Return a row for each case, solver and number of passes, with exact noise.

    Parameters
    ----------
    again
        Whether to search the grids again instead of taking what was found before.
    """
    tuned = {} if again else load_tuned("table2")
    rows = []
    for name in cases:
        draws = load_draws(name, folder)
        for solver in (solver for solver in solvers if suits(draws[0], solver)):
            for count in passes:
                say(f"{name}, {solver}, {count} passes")
                settings = {
                    case.name: tune(case, solver, count)
                    if again
                    else tuned[case.name][solver][PASSES.index(count)]
                    for case in draws
                }
                rows.append(_row(name, draws, solver, count, settings, seeds))
    return rows


def _row(
    name: str,
    draws: Sequence[SolverCase],
    solver: str,
    passes: int,
    settings: Mapping[str, Setting],
    seeds: int,
) -> dict[str, Any]:
    """Return a cell of the table: the mean over fresh seeds, taken by the draws in turn."""
    plan = planner(draws[0], solver, passes)
    errors = []
    for case, seed in zip(itertools.cycle(draws), FRESH_SEEDS[:seeds], strict=False):
        setting, number = settings[case.name], seed if solver == "sgd" else None
        errors.append(error(case, solver, passes, setting, plan(setting), seed=number))
    return {
        "data": name,
        "solver": solver,
        "passes": passes,
        "relative_error": float(np.mean(errors)),
        "spread": float(np.std(errors)),
        "paper": _printed(name, solver, passes),
        "zero_model": float(np.mean([case.zero for case in draws])),
        "settings": dict(settings),
    }


def _printed(name: str, solver: str, passes: int) -> float | None:
    """Return what the paper's table says, if it has such a row."""
    rows = {"cd": PAPER[name].cd, "sgd": PAPER[name].sgd}
    return rows[solver][PASSES.index(passes)] if solver in rows else None
