"""DP-SCD beside DP-SGD at the price that its paper computes, and at the one that holds.

Figure 1 of Damaskinos et al. (2021) compares accuracy by epsilon for ridge and logistic regression
and the SVM. Two things are mixed in such a comparison: what a step costs, and what a method makes
of its noise. So both solvers run here under both accountings.

ours
    What this project promises: for DP-SCD a public partition of the rows, in zCDP; for DP-SGD
    Poisson batches, with the Renyi divergences of the replacement of a row.
the paper's
    Benchmark code, **no promise**: every batch counts as a Poisson sample of the rows, one row
    added or removed, for DP-SCD as well, though its hidden duals remember earlier batches and its
    batches are a walk over a permutation (`solvers.algorithms.dual` says why that does not follow).
    Its noise is the least for which dp-accounting's Renyi accountant stays below epsilon.

Settings are those that `--only dual` was tuned with, under our accounting; other noise needs other
settings, so the paper's columns are a lower bound of what tuning for them would give. Ridge is on
classes here: the paper's table for it is not to be had.

References
----------
Damaskinos, Mendler-Duenner, Guerraoui, Papandreou and Parnell (2021). Differentially private
stochastic coordinate descent. AAAI.
"""

# ruff: noqa: N806 - X is what the papers call it

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant

from colonnade.bench.scratch import say
from colonnade.bench.solvers.cases import read_table
from colonnade.bench.solvers.others import (
    DUAL_DELTA,
    Trial,
    dual_plan,
    dual_solver,
    split_rows,
    unit_rows,
)
from colonnade.bench.solvers.tuning import Setting, load_tuned
from colonnade.privacy.mechanisms import DiscreteGaussian
from colonnade.solvers.algorithms.coordinate import STEP
from colonnade.solvers.budgets import STEP_SENSITIVITY2, BudgetPlan, Priced
from colonnade.solvers.designs.column_kernels import TOP

SOLVERS = ("dual", "sgd")
ACCOUNTINGS = ("ours", "paper")
EPSILONS = (0.1, 1.0)
_LOSSES = ("ridge", "logistic", "svm")
_MOST_MULTIPLIER = 2.0**20
_ORDERS = [float(order) for order in (*range(2, 64), 72, 96, 128, 192, 256)]


def dpscd_rows(
    tables: Path | None,
    *,
    names: tuple[str, ...] = ("phishing", "adult"),
    epsilons: tuple[float, ...] = EPSILONS,
    seeds: int,
) -> list[dict[str, Any]]:
    """Return held-out accuracies by table, loss, epsilon, solver and accounting."""
    rows = []
    for name in names:
        X, y = unit_rows(*read_table(name, tables))
        known, test = split_rows(y.size)
        majority = float(max(np.mean(y[test] > 0), np.mean(y[test] < 0)))
        for kind in _LOSSES:
            for epsilon in epsilons:
                case = f"{name} {kind} {epsilon:g}"
                for solver in SOLVERS:
                    setting = load_tuned("dual")[case][solver][0]
                    trial = Trial(X, y, kind, solver, epsilon, known, test)
                    for accounting in ACCOUNTINGS:
                        say(f"{case}, {solver}, {accounting} accounting")
                        plan = _plan(accounting, solver, setting, (known.size, X.shape[1]), epsilon)
                        right = [1.0 - trial.error(setting, None, plan=plan) for _ in range(seeds)]
                        rows.append(
                            {
                                "data": name,
                                "loss": kind,
                                "epsilon": epsilon,
                                "solver": solver,
                                "accounting": accounting,
                                "promise": accounting == "ours",
                                "noise": _noise(plan),
                                "accuracy": float(np.mean(right)),
                                "spread": float(np.std(right)),
                                "majority": majority,
                            }
                        )
    return rows


def _plan(
    accounting: str, solver: str, setting: Setting, shape: tuple[int, int], epsilon: float
) -> BudgetPlan:
    if accounting == "ours":
        return dual_plan(solver, setting[1:3], shape, epsilon)
    made = dual_solver(solver, setting)
    batch = int(setting[2]) if solver == "dual" else 512
    steps = made.steps(*shape)
    multiplier = papers_multiplier(min(batch / shape[0], 1.0), steps, epsilon)
    # A row that comes or goes moves a sum by the clip once, not twice.
    sigma2 = math.ceil((multiplier * TOP) ** 2)
    return BudgetPlan({STEP: Priced(DiscreteGaussian(sigma2, STEP_SENSITIVITY2), steps, steps)})


def _noise(plan: BudgetPlan) -> float:
    """Return the noise of a step in clips."""
    mechanism = plan.mechanism(STEP)
    if not isinstance(mechanism, DiscreteGaussian):
        raise TypeError("a step is a Gaussian sum")
    return round(math.sqrt(mechanism.sigma2) / TOP, 3)


@cache
def papers_multiplier(rate: float, steps: int, epsilon: float) -> float:
    """Return the least noise, in clips, by the accountant of sampled Gaussians. No promise.

    Examples
    --------
    >>> papers_multiplier(0.05, 100, 1.0) < papers_multiplier(0.2, 100, 1.0)
    True
    """

    def spent(multiplier: float) -> float:
        accountant = RdpAccountant(orders=_ORDERS)
        batch = PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))
        accountant.compose(SelfComposedDpEvent(batch, steps))
        return float(accountant.get_epsilon(DUAL_DELTA))

    low, high = 0.1, 1.0
    while spent(high) > epsilon:
        low, high = high, 2.0 * high
        if high > _MOST_MULTIPLIER:
            raise ValueError("the budget is too small for so many steps")
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spent(middle) > epsilon else (low, middle)
    return high
