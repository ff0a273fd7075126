"""Jobs beside references that are hard to beat, at the same total price, on rows held out.

``moments_limit`` is no job: the moments job with statistics of a party's own columns free of noise
and all of the budget on products between parties, where the plan buys any. It is an estimate for
this plan and its denoising, on few seeds, and no bound: a job can score above it. Where the plan
shares nothing, it shares nothing either. ``between_error`` is ``sqrt(pi / (rho n))``: the error of
one correlation if all of the budget goes into one shared direction of normal rows, cut to their
signs. The order ``1 / sqrt(n)`` is that of McGregor et al. (2010); the constant is this
mechanism's.
"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from colonnade.bench.accuracy.cases import DividedTable, cases, is_fresh
from colonnade.bench.scratch import say
from colonnade.bench.vertical.methods import Case, problem_of
from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID, Bounds
from colonnade.linear.losses import LOGISTIC, SQUARED
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.spec import MomentsSpec
from colonnade.methods.problem import Loss
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.evaluation.references import (
    central_reference,
    frank_wolfe_reference,
    nonprivate,
)
from colonnade.simulate.inprocess import moments
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, quality
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.fit import Objective, SolverTable, fit_table, resolve_fit
from colonnade.solvers.registry import default_solver

DELTA = 1e-6
_UNIT = Bounds(-1.0, 1.0)
EPSILONS = (0.1, 0.5, 1.0, 3.0)
FIRST_SEED = 9000
COLUMNS = ("nonprivate", "central", "frank_wolfe", "fit", "moments", "moments_label_at_one")
LIMIT = "moments_limit"


def reference_rows(quick: bool, folder: Path | None) -> list[dict[str, object]]:
    """Return one row a case and epsilon: medians over seeds on held-out rows."""
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 3))
    rows = []
    for case in cases(quick, folder):
        say(f"references: {case.name}")
        found: dict[tuple[float, str], list[float]] = {}
        epsilons = (1.0,) if quick else EPSILONS
        for seed in seeds:
            divided = case.data(seed)
            for epsilon, name, score in _scores(case, divided, epsilons, seed):
                found.setdefault((epsilon, name), []).append(score)
        for epsilon in epsilons:
            names = (*COLUMNS, LIMIT)
            medians = {name: _median(found.get((epsilon, name), [])) for name in names}
            least = math.sqrt(math.pi / (rho_of(epsilon, DELTA) * divided.fitted.label.size))
            rows.append(
                {
                    "case": case.name,
                    "epsilon": epsilon,
                    "metric": case.metric,
                    "fresh": is_fresh(case.name),
                }
                | medians
                | {"between_error": round(least, 3)}
            )
    return rows


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def _scores(
    case: Case[DividedTable], divided: DividedTable, epsilons: tuple[float, ...], seed: int
) -> Iterator[tuple[float, str, float]]:
    data, scored = divided.declared()
    loss = case.loss
    best = quality(scored, nonprivate(data, loss, seed=seed), loss)
    for epsilon in epsilons:
        units = units_down(rho_of(epsilon, DELTA))
        yield epsilon, "nonprivate", best
        for name, reference in (
            ("central", central_reference),
            ("frank_wolfe", frank_wolfe_reference),
        ):
            model = reference(data, loss=loss, rho_units=units, seed=seed)
            yield epsilon, name, quality(scored, model, loss)
        yield epsilon, "fit", quality(scored, fitted(data, loss, epsilon, seed), loss)
        for name, owner in (("moments", None), ("moments_label_at_one", "p0")):
            model = _moments(loss, data, units, owner, seed)
            yield epsilon, name, quality(scored, model, loss)
        limit = _moments(loss, data, units, None, seed, limit=True)
        yield epsilon, LIMIT, quality(scored, limit, loss)


def fitted(data: Data, loss: Loss, epsilon: float, seed: int) -> ScaledModel:
    """Run what `colonnade fit` runs by default, with seeded noise."""
    classes = loss is Loss.LOGISTIC
    n_features, n_rows = data.columns.shape
    columns = np.vstack([data.columns, np.full((1, n_rows), GRID, np.int16)])
    design = DenseDesign(columns, np.full(n_features + 1, 1.0 / GRID))
    label: FloatArray = np.where(data.label > 0, 1.0, -1.0) if classes else data.label / GRID
    table = SolverTable(
        design, (_UNIT,) * n_features, label, None if classes else _UNIT, intercept=True
    )
    objective = Objective(LOGISTIC if classes else SQUARED)
    resolved = resolve_fit(
        objective,
        default_solver(objective.loss),
        design.shape,
        epsilon=epsilon,
        delta=DELTA,
        noise="fast",
    )
    found = fit_table(table, resolved, seed=seed)
    cuts = np.cumsum([len(split) for split in data.splits])[:-1]
    return ScaledModel(np.split(found.coef_scaled, cuts), found.intercept_scaled)


def _moments(
    loss: Loss, data: Data, units: int, owner: str | None, seed: int, *, limit: bool = False
) -> ScaledModel:
    """Run a moments job under the declared bounds: its own means and deviations do for others.

    With ``limit`` as if what a party knows by itself cost nothing (see the module).
    """
    try:
        spec = recommend(problem_of(data, units, loss, owner)).spec
    except ValueError:
        return ScaledModel([np.zeros(len(split)) for split in data.splits], 0.0)
    if limit:
        spec = _only_between(spec, units)
    return moments.fit(data, spec, SeededNoise(seed), job=f"accuracy {seed}")


def _only_between(spec: MomentsSpec, units: int) -> MomentsSpec:
    """Return the job with means and Gram matrices free, and all of ``units`` between parties."""
    between = (spec.share_units + spec.cross_units) * len(spec.parts)
    more = units / between if between else 1.0
    return replace(
        spec,
        mean_units=spec.mean_units * 10**4,
        gram_units=spec.gram_units * 10**4,
        share_units=int(spec.share_units * more),
        cross_units=int(spec.cross_units * more),
    )
