"""How good a model over clients is at a given epsilon of each client, beside its peers.

All private methods protect a whole client, within the same epsilon, with the same sample. Federated
ADMM is the planned variant as `colonnade job admm` runs it, with nothing tuned. DP-SGD and the
paper's ADMM are tuned over grids of the same size, on seeds of their own, by the mean score on the
clients' rows, and reported on fresh ones: what they gain by that costs no privacy here, and would.
Tuning and non-private figures read the data in the open: simulation only.
"""

import functools
import itertools
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.tables import FRESH, TABLES, load
from colonnade.client import AdmmOptions
from colonnade.client.admm_planning import admm_spec
from colonnade.core.arrays import FloatArray
from colonnade.linear.losses import LOGISTIC, SQUARED
from colonnade.linear.penalties import ridge
from colonnade.methods.admm.plan import participations_of, release_units
from colonnade.methods.admm.prox import ClientRows, Problems, factorise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.admm.baselines import centralised, dp_sgd, federated, optimum
from colonnade.simulate.data.synthetic import make
from colonnade.simulate.inprocess.admm import Pool, partition
from colonnade.simulate.inprocess.vertical import Data

DELTA = 1e-6
ROUNDS, PART = 10, 5  # a fifth of the clients in each round
TUNING_SEEDS = 2
METHODS = ("federated_admm", "centralised_admm", "federated_sgd", "paper_admm")
TUNED = ("federated_sgd", "paper_admm")
Settings = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class AdmmEffort:
    """How much is tried."""

    clients: int
    epsilons: tuple[float, ...]
    seeds: int
    tables: tuple[str, ...]
    admm: tuple[Settings, ...]
    sgd: tuple[Settings, ...]


def _grid(**values: tuple[float, ...]) -> tuple[Settings, ...]:
    return tuple(
        dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())
    )


FULL = AdmmEffort(
    clients=500,
    epsilons=(2.0, 8.0, 32.0),
    seeds=9,
    tables=("adult", "credit_default"),
    admm=_grid(gamma=(1.0, 3.0, 10.0, 30.0), lipschitz=(0.1,), dual_weight=(0.0, 1.0)),
    sgd=_grid(rate=(0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), lipschitz=(0.1,)),
)
QUICK = AdmmEffort(
    clients=120,
    epsilons=(8.0,),
    seeds=2,
    tables=(),
    admm=_grid(gamma=(3.0, 10.0), lipschitz=(0.1,), dual_weight=(0.0, 1.0)),
    sgd=_grid(rate=(1.0, 3.0, 10.0, 30.0), lipschitz=(0.1,)),
)


@dataclass(frozen=True, slots=True, eq=False)
class ClientsCase:
    """Clients to learn from, and rows to judge by that no client has."""

    name: str
    clients: list[ClientRows]
    held_out: ClientRows
    loss: Loss


def cases(effort: AdmmEffort, folder: Path | None, *, skewed: bool = False) -> list[ClientsCase]:
    """Return the made-up cases and the public tables at hand; ``skewed`` sorts clients by label."""
    case = functools.partial(_case, clients=effort.clients, skewed=skewed)
    found = [
        case(f"synthetic ({loss.value})", _synthetic(effort, loss), loss)
        for loss in (Loss.SQUARED, Loss.LOGISTIC)
    ]
    if folder is None:
        return found
    return found + [
        case(name, load(folder, name, parties=1), (TABLES | FRESH)[name].loss)
        for name in effort.tables
    ]


def _synthetic(effort: AdmmEffort, loss: Loss) -> Data:
    rows = 60 * effort.clients
    return make(
        rows, [10], informative=5, noise=0.5, seed=11, loss=loss, structure="independent"
    ).data()


def _case(name: str, data: Data, loss: Loss, *, clients: int, skewed: bool) -> ClientsCase:
    order = np.random.default_rng(5).permutation(data.label.size)
    learn, judge = np.split(order, [int(0.8 * order.size)])
    rows = data.columns[:, learn], data.label[learn]
    parts = partition(*rows, clients, seed=5, skewed=skewed)
    held = ClientRows(np.ascontiguousarray(data.columns[:, judge]), data.label[judge])
    return ClientsCase(name, parts, held, loss)


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """One case at one epsilon."""

    case: ClientsCase
    spec: AdmmSpec  # of what is tuned
    planned: AdmmSpec
    planned_problems: Problems
    pool: Pool
    held_out: Pool

    def coef(self, method: str, settings: Settings, seed: int) -> FloatArray:
        """Return the model of one run."""
        spec, noise = self.spec, SeededNoise(seed)
        if method == "federated_admm":
            return federated(self.planned_problems, noise, seed=seed)
        if method == "centralised_admm":
            return centralised(self.case.clients, self.planned, noise)
        spec = replace(
            spec,
            gamma=settings.get("gamma", spec.gamma),
            lipschitz=settings["lipschitz"],
            dual_weight=settings.get("dual_weight", spec.dual_weight),
        )
        if method == "paper_admm":
            return federated(factorise(self.case.clients, spec), noise, seed=seed)
        return dp_sgd(spec, self.case.clients, noise, rate=settings["rate"], seed=seed)

    def mean_score(self, method: str, settings: Settings) -> float:
        """Return the mean over the tuning seeds; one seed's luck would choose a setting."""
        coefs = (self.coef(method, settings, seed) for seed in range(TUNING_SEEDS))
        return statistics.mean(self.pool.score(coef) for coef in coefs)

    def figures(self, coefs: list[FloatArray], least: float) -> dict[str, float]:
        """Return the medians of the gap on fitted rows and of the score on held-out ones."""
        return {
            "objective_gap": statistics.median(self.pool.objective(coef) - least for coef in coefs),
            "test_score": statistics.median(self.held_out.score(coef) for coef in coefs),
        }


def utility(effort: AdmmEffort, folder: Path | None) -> list[dict[str, Any]]:
    """Return a row for each case and epsilon: gap of the objective and score on held-out rows."""
    rows = []
    for case in cases(effort, folder):
        for epsilon in effort.epsilons:
            say(f"utility: {case.name}, epsilon {epsilon:g}")
            rows.append(_row(case, epsilon, effort))
    return rows


def _row(case: ClientsCase, epsilon: float, effort: AdmmEffort) -> dict[str, Any]:
    bench = bench_of(case, epsilon)
    best = optimum(bench.pool)
    least = bench.pool.objective(best)
    row: dict[str, Any] = {
        "case": case.name,
        "metric": "accuracy" if case.loss is Loss.LOGISTIC else "r2",
        "epsilon": epsilon,
        "delta": DELTA,
        "clients": len(case.clients),
        "nonprivate": bench.figures([best], least),
    }
    for method in METHODS:
        chosen: Settings = {}
        if method in TUNED:
            grid = effort.sgd if method == "federated_sgd" else effort.admm
            chosen = max(grid, key=functools.partial(bench.mean_score, method))
        fresh = [bench.coef(method, chosen, 100 + seed) for seed in range(effort.seeds)]
        row[method] = {**bench.figures(fresh, least), "settings": dict(chosen)}
    return row


def bench_of(case: ClientsCase, epsilon: float) -> Bench:
    """Return a case at one epsilon: what tuned methods run with, and the planned job."""
    clients = len(case.clients)
    sampled = clients // PART
    most = participations_of(ROUNDS, sampled, clients)
    spec = AdmmSpec(
        n_clients=clients,
        n_features=len(case.held_out.columns),
        rounds=ROUNDS,
        sampled=sampled,
        release_units=release_units(epsilon, DELTA, most),
        gamma=1.0,
        lipschitz=0.1,
        loss=LOGISTIC if case.loss is Loss.LOGISTIC else SQUARED,
        penalty=ridge(1e-3),
        intercept=True,
        participations=most,
    )
    pool, held_out = Pool.of(case.clients, spec), Pool.of([case.held_out], spec)
    planned = planned_spec(case, epsilon)
    return Bench(case, spec, planned, factorise(case.clients, planned), pool, held_out)


def planned_spec(
    case: ClientsCase,
    epsilon: float,
    *,
    aggregate: str = "none",
    hosts: int = 1,
    likeness: str = "alike",
) -> AdmmSpec:
    """Return the job as `colonnade job admm` plans it; how many rows clients have is public."""
    rows = round(statistics.mean(client.label.size for client in case.clients))
    options = AdmmOptions(
        epsilon=epsilon,
        delta=DELTA,
        loss=case.loss.value,
        rounds=ROUNDS,
        sampled=len(case.clients) // PART,
        aggregate=aggregate,
        clients=likeness,
        expected_rows=rows if likeness == "alike" else None,
    )
    features = len(case.held_out.columns)
    return admm_spec(options, clients=len(case.clients), features=features, hosts=hosts)
