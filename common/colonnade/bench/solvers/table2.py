"""Relative errors of DP-CD and DP-SGD, tuned on a grid, reported on fresh seeds."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from colonnade.bench.solvers.cases import PAPER, PASSES, Case, load_case
from colonnade.bench.solvers.one_record import one_record_error
from colonnade.optim.solvers.budgets import Plan
from colonnade.optim.solvers.coordinate import CoordinateDescent
from colonnade.optim.solvers.iteration import Direct, Diverged
from colonnade.optim.solvers.sgd import StochasticDescent
from colonnade.optim.solvers.smoothness import Squares
from colonnade.optim.solvers.solve import Solver, make_plan, solve
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise

SOLVERS = ("cd", "cd private", "sgd", "sgd batches")
"""DP-CD with given constants; with a tenth of the budget spent on them (the paper's DP-CD-P);
DP-SGD with one record a step, as in the paper; and with batches, as this project does it."""

CD_STEPS, CD_CLIPS = (0.5, 1.0, 2.0), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
ONE_STEPS, ONE_CLIPS = (1e-5, 1e-4, 1e-3, 1e-2), (0.03, 0.1, 0.3, 1.0, 3.0)
BATCH_STEPS, BATCH_CLIPS = (3.0, 30.0, 300.0, 3000.0), (0.01, 0.03, 0.1, 0.3)
BATCH = 1024

TUNING_SEEDS, FRESH_SEEDS = {"cd": 4, "cd private": 4, "sgd": 1, "sgd batches": 1}, 5
Setting: TypeAlias = tuple[float, float]

# (step, clip) by case and solver, for 2, 5, 10, 20 and 50 passes. Mostly what `tune` found, once;
# reported runs use noise that it never saw. Not from `tune` as it stands: "sgd" on electricity raw
# from 10 passes on (the grid's pick on one seed was worse than the zero model, so three settings
# were compared on two more seeds); "cd" on california raw at 50 passes (from an earlier search on
# two seeds); "sgd batches" on california raw at 2 passes (no setting leaves the zero model); the
# sparse lasso, where "cd" was tuned at a penalty of 0.35 up to 10 passes and SGD not at all.
TUNED: Mapping[str, Mapping[str, tuple[Setting, ...]]] = {
    "electricity raw": {
        "cd": ((1.0, 4.0), (1.0, 1.0), (1.0, 1.0), (1.0, 2.0), (1.0, 1.0)),
        "cd private": ((1.0, 2.0), (1.0, 1.0), (1.0, 2.0), (1.0, 2.0), (1.0, 2.0)),
        "sgd": ((1e-4, 1.0), (1e-3, 1.0), (1e-3, 1.0), (1e-3, 1.0), (1e-3, 1.0)),
        "sgd batches": ((3.0, 0.3),) * 5,
    },
    "electricity standardised": {
        "cd": ((2.0, 4.0), (2.0, 2.0), (2.0, 1.0), (2.0, 1.0), (1.0, 1.0)),
        "cd private": ((2.0, 4.0), (2.0, 2.0), (2.0, 1.0), (1.0, 2.0), (0.5, 2.0)),
        "sgd": ((1e-3, 0.3), (1e-4, 1.0), (1e-4, 1.0), (1e-4, 1.0), (1e-5, 1.0)),
        "sgd batches": ((3000.0, 0.03),) * 3 + ((300.0, 0.03),) * 2,
    },
    "california raw": {
        "cd": ((1.0, 8.0), (1.0, 8.0), (1.0, 4.0), (1.0, 4.0), (0.5, 4.0)),
        "cd private": ((1.0, 8.0), (1.0, 8.0), (1.0, 8.0), (1.0, 4.0), (0.5, 4.0)),
        "sgd": ((1e-5, 0.3), (1e-5, 0.1), (1e-5, 0.03), (1e-5, 0.03), (1e-5, 3.0)),
        "sgd batches": ((3.0, 0.3),) * 5,
    },
    "california standardised": {
        "cd": ((1.0, 8.0), (1.0, 8.0), (0.5, 8.0), (0.5, 8.0), (0.5, 8.0)),
        "cd private": ((1.0, 8.0), (1.0, 8.0), (0.5, 8.0), (0.5, 8.0), (0.5, 8.0)),
        "sgd": ((1e-4, 3.0), (1e-4, 3.0), (1e-4, 3.0), (1e-5, 3.0), (1e-5, 3.0)),
        "sgd batches": ((3000.0, 0.1),) * 2 + ((300.0, 0.1),) * 3,
    },
    "sparse lasso": {
        "cd": ((2.0, 2.0), (0.5, 2.0), (0.5, 0.25), (0.5, 0.25), (0.5, 0.25)),
        "cd private": ((2.0, 2.0), (2.0, 1.0), (0.5, 0.25), (0.5, 0.25), (0.5, 0.25)),
        "sgd": ((1e-5, 0.03), (1e-5, 0.03), (1e-5, 0.03), (1e-5, 0.03), (1e-5, 0.03)),
        "sgd batches": ((3.0, 0.01), (3.0, 0.01), (3.0, 0.01), (3.0, 0.01), (3.0, 0.01)),
    },
}


_GRIDS = {
    "cd": (CD_STEPS, CD_CLIPS),
    "cd private": (CD_STEPS, CD_CLIPS),
    "sgd": (ONE_STEPS, ONE_CLIPS),
    "sgd batches": (BATCH_STEPS, BATCH_CLIPS),
}


def make(case: Case, solver: str, passes: int, setting: Setting) -> Solver:
    """Return one of `SOLVERS` for a case."""
    step, clip = setting
    if solver.startswith("sgd"):
        batch = 1 if solver == "sgd" else BATCH
        return StochasticDescent(passes=passes, batch=batch, step=step, clip=clip)
    squares: Squares = case.squares if solver == "cd" else "private"
    return CoordinateDescent(passes=passes, step=step, clip=clip, squares=squares)


def plan_of(case: Case, solver: str, passes: int) -> Plan:
    """Return the noise of a run, which no step or clip changes."""
    made = make(case, solver, passes, (1.0, 1.0))
    return make_plan(made, case.design.shape, epsilon=case.epsilon, delta=case.delta)


def error(
    case: Case, solver: str, passes: int, setting: Setting, plan: Plan, *, seed: int | None
) -> float:
    """Return the relative error of one run, with exact noise if ``seed`` is None.

    A run that diverges counts as infinite.
    """
    if solver == "sgd":  # a baseline, never private
        step, clip = setting
        number = 10**6 if seed is None else seed
        return one_record_error(case, plan, passes=passes, step=step, clip=clip, seed=number)
    noise: NoiseSource = OsNoise() if seed is None else SeededNoise(seed)
    try:
        coef = solve(
            case.problem,
            case.design,
            case.y,
            make(case, solver, passes, setting),
            plan=plan,
            release=Direct(noise),
            sampler=noise,
        )
    except Diverged:
        return float("inf")
    return case.relative_error(coef)


def tune(case: Case, solver: str, passes: int, plan: Plan) -> Setting:
    """Return the step and the clip with the least mean error over the tuning seeds.

    Not charged to epsilon, as in the paper; with fast noise.
    """
    found: dict[Setting, float] = {}
    for setting in itertools.product(*_GRIDS[solver]):
        errors = [
            error(case, solver, passes, setting, plan, seed=seed)
            for seed in range(TUNING_SEEDS[solver])
        ]
        found[setting] = float(np.mean(errors))
    return min(found, key=found.__getitem__)


def table2(
    folder: Path | None,
    *,
    cases: tuple[str, ...],
    passes: tuple[int, ...] = PASSES,
    solvers: tuple[str, ...] = SOLVERS,
    again: bool = False,
    seeds: int = FRESH_SEEDS,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Return a row for each case, solver and number of passes, with exact noise.

    Parameters
    ----------
    again
        Whether to tune once more instead of taking what was found before.
    """
    rows = []
    for name in cases:
        case = load_case(name, folder)
        for solver in solvers:
            for count in passes:
                progress(f"{name}, {solver}, {count} passes")
                known = TUNED.get(name, {}).get(solver)
                plan = plan_of(case, solver, count)
                setting = (
                    tune(case, solver, count, plan)
                    if again or known is None
                    else known[PASSES.index(count)]
                )
                errors = [
                    error(case, solver, count, setting, plan, seed=_fresh(solver, seed))
                    for seed in range(seeds)
                ]
                rows.append(
                    {
                        "data": name,
                        "solver": solver,
                        "passes": count,
                        "relative_error": float(np.mean(errors)),
                        "spread": float(np.std(errors)),
                        "paper": _printed(name, solver, count),
                        "zero_model": case.zero,
                        "step": setting[0],
                        "clip": setting[1],
                    }
                )
    return rows


def _fresh(solver: str, number: int) -> int | None:
    """Return a seed that tuning never saw, or None for exact noise, which has none."""
    return 1000 + number if solver == "sgd" else None


def _printed(name: str, solver: str, passes: int) -> float | None:
    """Return what the paper's table says, if it has such a row."""
    rows = {"cd": PAPER[name].cd, "sgd": PAPER[name].sgd}
    return rows[solver][PASSES.index(passes)] if solver in rows else None
