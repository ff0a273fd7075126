"""Two more of the papers' comparisons: greedy descent in many dimensions, and the dual.

Greedy: logistic regression with an l2 penalty on `madelon`, standardised, 500 features of which
few matter, epsilon 1, delta 1/n**2 (Mangold et al. 2023; the penalty is not stated, 1 is used
here). Dual: accuracy on a held-out quarter, delta 0.001, rows scaled to unit norm (Damaskinos et
al. 2021); settings are chosen by accuracy on a fifth of the other rows.

Every solver has 24 settings to choose from, and nothing of the search is charged.
"""

# ruff: noqa: N803, N806 - X is what the papers call it

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.solvers.cases import SolverCase, make_case, read_table
from colonnade.bench.solvers.tuning import Setting, best_setting, grid, load_tuned
from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import Bounds
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED
from colonnade.linear.penalties import ridge
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.budgets import BudgetPlan
from colonnade.solvers.designs.dense import dense_design
from colonnade.solvers.iteration import Direct, Diverged
from colonnade.solvers.problem import Problem, plain
from colonnade.solvers.registry import Solver
from colonnade.solvers.solve import make_plan, solve

TUNING_SEEDS = 3
DUAL_DELTA = 1e-3
_MADELON = "madelon standardised"
_LOSSES = {"ridge": SQUARED, "logistic": LOGISTIC, "svm": HINGE}

GREEDY_GRIDS: Mapping[str, tuple[Setting, ...]] = {
    # Iterations or passes, step, clip.
    "gcd": grid((5, 10, 20), (0.3, 1.0), (0.1, 0.3, 1.0, 3.0), size=24),
    "cd": grid((1, 2, 5), (0.01, 0.1), (0.1, 0.3, 1.0, 3.0), size=24),
    "sgd": grid((2, 5, 20), (30.0, 300.0), (0.01, 0.03, 0.1, 0.3), size=24),
}
_DUAL = grid((1e-3, 1e-2), (3, 10), (500, 5000), (0.02, 0.1, 0.5), size=24)
DUAL_GRIDS: Mapping[str, tuple[Setting, ...]] = {
    # Penalty, epochs or passes, rows in a batch or step, clip.
    "dual": _DUAL,
    "dual sequential": grid((1e-3, 1e-2), (3, 10), (20, 500), (0.02, 0.1, 0.5), size=24),
    "sgd": grid((1e-3, 1e-2), (5, 20), (20.0, 200.0), (0.03, 0.1, 0.3), size=24),
}


def greedy_rows(tables: Path | None, *, seeds: int, again: bool = False) -> list[dict[str, Any]]:
    """Return relative errors on `madelon` of greedy, cyclic and full-gradient descent."""
    X, y = read_table("madelon", tables)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    case = make_case(_MADELON, X, y, LOGISTIC, ridge(1.0), epsilon=1.0)
    rows = []
    for name, settings in GREEDY_GRIDS.items():
        say(f"madelon, {name}")
        run = _greedy_run(case, name)
        setting = (
            best_setting(run, settings, seeds=TUNING_SEEDS)
            if again
            else load_tuned("greedy")[_MADELON][name][0]
        )
        errors = [run(setting, None) for _ in range(seeds)]
        rows.append(
            {
                "data": case.name,
                "solver": name,
                "relative_error": float(np.mean(errors)),
                "spread": float(np.std(errors)),
                "zero_model": case.zero,
                "settings": {case.name: setting},
            }
        )
    return rows


def _greedy_run(case: SolverCase, name: str) -> Callable[[Setting, int | None], float]:
    squares = case.squares

    def make(setting: Setting) -> Solver:
        times, step, clip = setting
        if name == "gcd":
            return GreedyDescent(iterations=int(times), step=step, clip=clip, squares=squares)
        if name == "cd":
            return CoordinateDescent(passes=int(times), step=step, clip=clip, squares=squares)
        return StochasticDescent(passes=times, batch_size="full", step=step, clip=clip)

    def run(setting: Setting, seed: int | None) -> float:
        solver = make(setting)
        plan = make_plan(solver, case.design.shape, epsilon=case.epsilon, delta=case.delta)
        return case.run_error(solver, plan, seed=seed)

    return run


def dual_rows(
    tables: Path | None,
    *,
    names: tuple[str, ...] = ("phishing", "adult"),
    epsilons: tuple[float, ...] = (0.1, 1.0),
    seeds: int,
    again: bool = False,
) -> list[dict[str, Any]]:
    """Return the held-out accuracy of DP-SCD, its sequential variant and DP-SGD."""
    rows = []
    for name in names:
        X, y = unit_rows(*read_table(name, tables))
        known, test = split_rows(y.size)
        learn, check = np.split(known, [4 * known.size // 5])
        for kind in _LOSSES:
            for epsilon in epsilons:
                case = f"{name} {kind} {epsilon:g}"
                for solver, settings in DUAL_GRIDS.items():
                    say(f"{case}, {solver}")
                    if again:
                        search = Trial(X, y, kind, solver, epsilon, learn, check).error
                        setting = best_setting(search, settings, seeds=TUNING_SEEDS)
                    else:
                        setting = load_tuned("dual")[case][solver][0]
                    error = Trial(X, y, kind, solver, epsilon, known, test).error
                    right = [1.0 - error(setting, None) for _ in range(seeds)]
                    rows.append(
                        {
                            "data": name,
                            "loss": kind,
                            "epsilon": epsilon,
                            "solver": solver,
                            "accuracy": float(np.mean(right)),
                            "spread": float(np.std(right)),
                            "majority": float(max(np.mean(y[test] > 0), np.mean(y[test] < 0))),
                            "settings": {case: setting},
                        }
                    )
    return rows


def split_rows(n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the rows to learn from, and a quarter to predict."""
    known, test = np.split(np.random.default_rng(0).permutation(n_rows), [3 * n_rows // 4])
    return known, test


def unit_rows(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale columns to [-1, 1] and rows to unit norm, as the paper does."""
    X = X / np.abs(X).max(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Learn from some rows and predict others."""

    X: FloatArray
    y: FloatArray
    kind: str
    solver: str
    epsilon: float
    train: IntArray
    test: IntArray

    def error(self, setting: Setting, seed: int | None, *, plan: BudgetPlan | None = None) -> float:
        """Return the share of wrong predictions, with exact noise if ``seed`` is None."""
        solver = dual_solver(self.solver, setting)
        n_features = self.X.shape[1]
        design = dense_design(self.X[self.train], [Bounds(-1.0, 1.0)] * n_features)
        problem = _ridge_problem(self.kind, setting[0], n_features)
        noise: NoiseSource = OsNoise() if seed is None else SeededNoise(seed)
        try:
            coef = solve(
                problem,
                design,
                self.y[self.train],
                solver,
                plan=plan or dual_plan(self.solver, setting[1:3], design.shape, self.epsilon),
                release=Direct(noise),
                sampler=noise,
            )
        except Diverged:
            return 1.0
        return float(np.mean(np.sign(self.X[self.test] @ coef) != self.y[self.test]))


def dual_solver(name: str, setting: Setting) -> Solver:
    """Return a solver of `DUAL_GRIDS`."""
    _, times, batch, clip = setting
    if name == "sgd":
        return StochasticDescent(passes=times, batch_size=512, step=batch, clip=clip)
    sequential = name == "dual sequential"
    return DualDescent(
        epochs=int(times), batch_size=int(batch), clip=clip, norm=1.0, sequential=sequential
    )


def _ridge_problem(kind: str, strength: float, n_features: int) -> Problem:
    return plain(_LOSSES[kind], ridge(strength), n_features)


def dual_plan(name: str, times: Setting, shape: tuple[int, int], epsilon: float) -> BudgetPlan:
    """Return the noise of a solver of `DUAL_GRIDS`, as this project prices it."""
    # The noise of SGD depends on its passes alone, and calibrating it takes a while.
    return _planned(name, (times[0], 1.0) if name == "sgd" else times, shape, epsilon)


@cache
def _planned(name: str, times: Setting, shape: tuple[int, int], epsilon: float) -> BudgetPlan:
    solver = dual_solver(name, (0.0, *times, 1.0))
    return make_plan(solver, shape, epsilon=epsilon, delta=DUAL_DELTA)
