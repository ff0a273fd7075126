"""Clients whose rows differ: sorted by label, the planned job for each kind beside tuned DP-SGD."""

import functools
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from colonnade.bench.admm.utility import (
    FULL,
    QUICK,
    AdmmEffort,
    ClientsCase,
    bench_of,
    cases,
    planned_spec,
)
from colonnade.bench.scratch import say
from colonnade.methods.admm.prox import factorise
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.admm.baselines import federated

FIRST_SEED = 9000
TABLES = ("adult", "credit_default", "electricity")


def skewed_rows(quick: bool, folder: Path | None) -> list[dict[str, Any]]:
    """Return a row for each case and epsilon: medians of the score on held-out rows."""
    effort = QUICK if quick else replace(FULL, tables=TABLES)
    rows = []
    for case in cases(effort, folder, skewed=True):
        for epsilon in effort.epsilons:
            say(f"sorted by label: {case.name}, epsilon {epsilon:g}")
            metric = "accuracy" if case.loss is Loss.LOGISTIC else "r2"
            row = {"case": case.name, "metric": metric, "epsilon": epsilon}
            rows.append(row | _medians(case, epsilon, effort))
    return rows


def _medians(case: ClientsCase, epsilon: float, effort: AdmmEffort) -> dict[str, float]:
    bench, seeds = bench_of(case, epsilon), range(FIRST_SEED, FIRST_SEED + effort.seeds)
    rate = max(effort.sgd, key=functools.partial(bench.mean_score, "federated_sgd"))
    coefs = {"federated_sgd": [bench.coef("federated_sgd", rate, seed) for seed in seeds]}
    for likeness in ("alike", "different"):
        spec = planned_spec(case, epsilon, likeness=likeness)
        problems = factorise(case.clients, spec)
        coefs[likeness] = [federated(problems, SeededNoise(seed), seed=seed) for seed in seeds]
    return {
        name: statistics.median(bench.held_out.score(coef) for coef in found)
        for name, found in coefs.items()
    }
