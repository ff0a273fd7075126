"""A whole simulated job over clients: real processes, real ledgers, then quality in the open."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.methods.admm.prox import ClientRows
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.admm.baselines import centralised, optimum
from colonnade.simulate.data.synthetic import BOUND, make
from colonnade.simulate.evaluation.quality import NOTE
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.inprocess.admm import Pool, deal
from colonnade.simulate.inprocess.vertical import auc, r2
from colonnade.simulate.sites import Site, SiteColumn

TARGET = "y"
MAX_HOSTS = 16
_MAX_VALUES = 10**9


@dataclass(frozen=True, slots=True)
class Population:
    """Made-up clients: how many, with how many rows each, and how rows are dealt out."""

    clients: int
    rows_per_client: int
    features: int
    loss: Loss = Loss.SQUARED
    skewed: bool = False
    hosts: int = 1
    drop_out: float = 0.0  # chance that a client is away
    seed: int = 0
    held_out: int = 0  # more rows, that no client has

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("clients", "rows_per_client", "features")}
        for name, size in sizes.items():
            if not 1 <= size <= _MAX_VALUES:
                raise BadArgument(name, f"must lie between 1 and {_MAX_VALUES}")
        if not 2 <= math.prod(sizes.values()) <= _MAX_VALUES:
            raise BadInput(f"clients times rows times features must lie in 2 .. {_MAX_VALUES}")
        if not 1 <= self.hosts <= min(self.clients, MAX_HOSTS):
            text = f"must lie between 1 and {MAX_HOSTS}, and not above the clients"
            raise BadArgument("hosts", text)
        if not 0.0 <= self.drop_out < 1.0:
            raise BadArgument("drop_out", "must be at least 0 and below 1")
        if self.seed < 0:
            raise BadArgument("seed", "cannot be negative")


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """The clients as hosts hold them, and in the open; and rows that none of them has."""

    sites: tuple[Site, ...]
    clients: tuple[ClientRows, ...]
    held_out: ClientRows | None


def people(population: Population) -> Dealt:
    """Make up the clients' rows: few columns matter, all within declared bounds."""
    n_rows = population.clients * population.rows_per_client
    made = make(
        n_rows + population.held_out,
        [population.features],
        informative=max(1, population.features // 2),
        noise=0.5,
        seed=population.seed,
        loss=population.loss,
        structure="independent",
    )
    label_bounds = Bounds(0.0, 1.0)
    if population.loss is Loss.SQUARED:
        label_bounds = Bounds(-BOUND, BOUND)
    data = made.data()
    parts = deal(
        made.label[:n_rows], population.clients, seed=population.seed, skewed=population.skewed
    )
    shares = np.array_split(np.arange(population.clients), population.hosts)
    names = [f"host-{number + 1}" for number in range(population.hosts)]
    sites = tuple(
        _site(name, made.columns, made.label, label_bounds, parts[share])
        for name, share in zip(names, shares, strict=True)
    )
    clients = tuple(
        ClientRows(np.ascontiguousarray(data.columns[:, rows]), data.label[rows]) for rows in parts
    )
    held_out = None
    if population.held_out:
        held_out = ClientRows(data.columns[:, n_rows:], data.label[n_rows:])
    return Dealt(sites, clients, held_out)


def _site(
    name: str,
    columns: FloatArray,
    label: FloatArray,
    label_bounds: Bounds,
    parts: "np.ndarray[Any, np.dtype[np.int64]]",
) -> Site:
    rows, bounds = parts.ravel(), Bounds(-BOUND, BOUND)
    features = [
        SiteColumn(f"x{place + 1}", bounds, column[rows]) for place, column in enumerate(columns)
    ]
    owners = np.repeat(np.arange(len(parts)), parts.shape[1])
    return Site(name, features, SiteColumn(TARGET, label_bounds, label[rows]), owners)


def found(
    folder: Path,
    dealt: Dealt,
    *,
    cap_units: int,
    drop_out: float = 0.0,
    host_settings: Mapping[str, int] | None = None,
    cohort: bool = False,
) -> Federation:
    """Make the federation on disk; every client's cap is exactly what the job may cost it."""
    settings = {"drop_out_percent": round(100 * drop_out), **(host_settings or {})}
    return create_federation(
        folder, dealt.sites, cap_units=cap_units, party_settings=settings, cohort=cohort
    )


@dataclass(frozen=True, slots=True)
class Scores:
    """How good a model is: simulation only."""

    objective_gap: float  # on the clients' rows
    score: float  # R2, or the share of rows classified rightly
    ranking: float  # R2, or the area under the ROC curve

    @classmethod
    def of(cls, pool: Pool, rows: Pool, coef: FloatArray, *, least: float) -> "Scores":
        """Score a model on ``rows``; ``least`` is the best value of the objective on ``pool``."""
        margins = rows.rows @ coef
        rank = auc if pool.spec.loss.classifies else r2
        return cls(pool.objective(coef) - least, rows.score(coef), rank(rows.y, margins))


@dataclass(frozen=True, slots=True)
class Judged:
    """A report with quality, and the scores of its model and of the best without privacy."""

    report: dict[str, Any]
    ours: Scores
    best: Scores


def judged(report: Mapping[str, Any], spec: AdmmSpec, dealt: Dealt, *, seed: int) -> Judged:
    """Score the models of a report beside the best one, and a private one at one place."""
    pool = Pool.of(dealt.clients, spec)
    rows = pool if dealt.held_out is None else Pool.of([dealt.held_out], spec)
    coef = optimum(pool)
    least = pool.objective(coef)

    def scored(coef: FloatArray) -> Scores:
        return Scores.of(pool, rows, coef, least=least)

    best = scored(coef)
    rounds = [scored(_coef(point, spec)) for point in report["path"]]
    whole = centralised(dealt.clients, spec, SeededNoise(seed))
    central, ours = scored(whole), rounds[-1]

    def compared(metric: str, field: str) -> dict[str, Any]:
        models = {"ours": ours, "central": central, "nonprivate": best}
        return {"metric": metric, **{name: getattr(each, field) for name, each in models.items()}}

    others = [compared("objective above the best, fitted rows", "objective_gap")]
    if spec.loss.classifies:
        others.append(compared("accuracy", "score"))
    quality = {
        "simulation_only": True,
        "note": NOTE,
        "rows": "fitted" if dealt.held_out is None else "held-out",
        "n_rows": rows.y.size,
        **compared("auc" if spec.loss.classifies else "r2", "ranking"),
        "by_round": [each.ranking for each in rounds],
        "objective_gap": ours.objective_gap,
        "others": others,
        "central_is": _central_is(report),
        "nonprivate_is": "Not private: what minimises the job's objective on all clients' rows.",
    }
    return Judged({**report, "quality": quality}, ours, best)


def _central_is(report: Mapping[str, Any]) -> str:
    """Describe what the private reference promises to whom."""
    promised = report["clients"]["local"]["promised"]["epsilon"]
    return (
        "Private, all data in one place: the same algorithm at one trusted place that sees all rows"
        f" and publishes only noisy models, all clients in every round. Its epsilon {promised:.3g}"
        f" (delta {report['privacy']['delta']:g}) is for the replacement of all rows of one client,"
        " as here; it is no promise about single rows."
    )


def _coef(point: Mapping[str, Any], spec: AdmmSpec) -> FloatArray:
    (coef,) = point["coef"].values()
    return np.array([*coef, point["intercept"]] if spec.intercept else coef)
