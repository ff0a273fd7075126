"""Jobs over clients beside tuned federated DP-SGD and one trusted place, on rows held out.

500 clients at ten hosts, each client protected with all of its rows. Federated ADMM is planned as
`colonnade job admm` plans it, with nothing tuned, and three ways for noise to enter:

- ``admm``: every client's answer has its own;
- ``admm_host``: each host's sum has one (``--aggregate host``);
- ``admm_cohort``: the sum over all hosts has it in parts, under masks (``--aggregate cohort``: ten
  maskers of whom three may collude, so ten parts of a quarter of the variance each). Masks cancel
  exactly, so that they are left out here.

``central`` is one trusted place that sees all rows and asks every client in every round. DP-SGD is
tuned over eight rates in the open. Every table was looked at while some rule of the plan was made,
adult least (docs/benchmarks/clients.md).
"""

import functools
import statistics
from collections.abc import Callable
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
from colonnade.core.arrays import FloatArray
from colonnade.methods.admm.prox import factorise
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.admm.baselines import centralised, federated

HOSTS = 10
FIRST_SEED = 9000
MORE_TABLES = ("electricity", "phishing")
COLUMNS = ("dp_sgd", "admm", "admm_host", "admm_cohort", "central")


def admm_rows(quick: bool, folder: Path | None) -> list[dict[str, object]]:
    """Return one row a case and epsilon: medians over seeds on held-out rows."""
    effort = replace(QUICK if quick else FULL, tables=() if quick else (*FULL.tables, *MORE_TABLES))
    rows: list[dict[str, object]] = []
    for case in cases(effort, folder):
        for epsilon in effort.epsilons:
            say(f"clients: {case.name}, epsilon {epsilon:g}")
            metric = "accuracy" if case.loss is Loss.LOGISTIC else "r2"
            row = {"case": case.name, "epsilon": epsilon, "metric": metric}
            rows.append(row | _medians(case, epsilon, effort))
    return rows


def _medians(case: ClientsCase, epsilon: float, effort: AdmmEffort) -> dict[str, object]:
    bench = bench_of(case, epsilon)
    score = functools.partial(bench.mean_score, "federated_sgd")
    rate = max(effort.sgd, key=score)
    plain = planned_spec(case, epsilon)
    summed = {
        aggregate: planned_spec(case, epsilon, aggregate=aggregate, hosts=HOSTS)
        for aggregate in ("host", "cohort")
    }
    factors = factorise(case.clients, plain)
    # Less noise has longer steps, so that each kind of sum has its own factors.
    of_sums = {name: factorise(case.clients, spec) for name, spec in summed.items()}

    def sums(aggregate: str, seed: int) -> FloatArray:
        return federated(of_sums[aggregate], SeededNoise(seed), seed=seed, hosts=HOSTS)

    runs: dict[str, Callable[[int], FloatArray]] = {
        "dp_sgd": lambda seed: bench.coef("federated_sgd", rate, seed),
        "admm": lambda seed: federated(factors, SeededNoise(seed), seed=seed),
        "admm_host": lambda seed: sums("host", seed),
        "admm_cohort": lambda seed: sums("cohort", seed),
        "central": lambda seed: centralised(case.clients, plain, SeededNoise(seed)),
    }
    seeds = range(FIRST_SEED, FIRST_SEED + effort.seeds)
    found: dict[str, Any] = {
        name: statistics.median(bench.held_out.score(run(seed)) for seed in seeds)
        for name, run in runs.items()
    }
    return {name: found[name] for name in COLUMNS}
