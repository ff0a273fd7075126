"""What a vertical job is compared with: no privacy, and one place that holds all the columns."""

from dataclasses import replace

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC, SQUARED
from colonnade.linear.penalties import no_penalty
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, PartySampling
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.evaluation.linear_fit import fit_linear
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, fit
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.budgets import plan_units
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.iteration import Direct
from colonnade.solvers.problem import Problem
from colonnade.solvers.solve import solve

# Radius of the one ball and rounds of centralised Frank-Wolfe: the best of a coarse search.
_RADIUS = 3.0
_ROUNDS = ((10_000, 24), (50_000, 40), (200_000, 64), (10**12, 96))


def central_reference(data: Data, *, loss: Loss, rho_units: int, seed: int) -> ScaledModel:
    """Fit the solver ``gram`` with all columns in one place, at the same total cost.

    It is what `colonnade fit` runs, with seeded noise: not private, and about no real ledger. What
    is left of a budget that buys not even its releases is the model that is zero.
    """
    solver, classes = Gram(), loss is Loss.LOGISTIC
    order = [feature for split in data.splits for feature in split]
    ones = np.full((1, data.label.size), GRID, np.int16)
    design = DenseDesign(np.vstack([data.columns[order], ones]), np.full(len(order) + 1, 1 / GRID))
    try:
        plan = plan_units(solver.parts(*design.shape), rho_units)
    except ValueError:
        return _zero(data)
    label = np.where(data.label > 0, 1.0, -1.0) if classes else data.label / GRID
    scales = np.append(np.ones(len(order)), 0.0)
    problem = Problem(LOGISTIC if classes else SQUARED, no_penalty(), scales)
    noise = SeededNoise(seed)
    release = Direct(noise)
    coef = solve(problem, design, label, solver, plan=plan, release=release, sampler=noise)
    return ScaledModel(_by_party(data, coef[:-1]), float(coef[-1]))


def frank_wolfe_reference(data: Data, *, loss: Loss, rho_units: int, seed: int) -> ScaledModel:
    """Fit private Frank-Wolfe with all columns in one place: the papers' centralised baseline."""
    rounds = next(count for rows, count in _ROUNDS if data.label.size <= rows)
    try:
        spec = central_spec(data, rho_units=rho_units, loss=loss, radius=_RADIUS, rounds=rounds)
    except ValueError:
        return _zero(data)
    return central(data, spec, seed=seed)


def _zero(data: Data) -> ScaledModel:
    return ScaledModel([np.zeros(len(split)) for split in data.splits], 0.0)


def _by_party(data: Data, coef: FloatArray) -> list[FloatArray]:
    return np.split(coef, np.cumsum([len(split) for split in data.splits])[:-1])


def nonprivate(data: Data, loss: Loss, *, seed: int = 0) -> ScaledModel:
    """Fit all rows without privacy: standardised columns, an L1 penalty chosen on a part of them.

    ``seed`` is that of the part. Columns and label are as clipped as ``data``.
    """
    classes = loss is Loss.LOGISTIC
    label = np.where(data.label > 0, 1.0, -1.0) if classes else data.label / GRID
    found = fit_linear(data.columns, label, classes=classes, seed=seed)
    return ScaledModel([GRID * found.coef[list(split)] for split in data.splits], found.constant)


def central_spec(
    data: Data, *, rho_units: int, loss: Loss, radius: float, rounds: int, clip: float = 1.0
) -> FrankWolfeSpec:
    """Return private Frank-Wolfe with all columns in one place: the same code, one party.

    ``radius`` is that of the one ball over all columns.
    """
    features = tuple(f"x{i}" for split in data.splits for i in split)
    means = max(1, rho_units // 50)
    return FrankWolfeSpec(
        n_rows=data.label.size,
        blocks=(Block("all", features, radius, shares=0, holds_label=True),),
        rounds=rounds,
        sketch_dim=1,
        sketch_entries=1,
        select_units=(rho_units - means) // rounds,
        share_units=0,
        label_units=0,
        labels=Labels.SHARED,
        loss=loss,
        sampling=PartySampling.ALL,
        mean_units=means,
        clip=clip,
    )


def central(data: Data, spec: FrankWolfeSpec, *, seed: int) -> ScaledModel:
    """Fit private Frank-Wolfe with all columns in one place."""
    order = tuple(feature for split in data.splits for feature in split)
    concat = replace(data, splits=(order,))
    model = fit(concat, spec, SeededNoise(seed), job=f"central {seed}")
    return ScaledModel(_by_party(data, model.coefs[0]), model.intercept)
