"""What a vertical job is compared with: no privacy, and one place that holds all the columns."""

from dataclasses import replace

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.frank_wolfe.spec import Block, FrankWolfeSpec, Sampling
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.evaluation.linear_fit import fit_linear
from colonnade.simulate.inprocess.vertical import Data, Model, fit


def nonprivate(data: Data, loss: Loss, *, seed: int = 0) -> Model:
    """Fit all rows without privacy: standardised columns, an L1 penalty chosen on a part of them.

    ``seed`` is that of the part. Columns and label are as clipped as ``data``.
    """
    classes = loss is Loss.LOGISTIC
    label = np.where(data.label > 0, 1.0, -1.0) if classes else data.label / GRID
    found = fit_linear(data.columns, label, classes=classes, seed=seed)
    return Model([GRID * found.coef[list(split)] for split in data.splits], found.constant)


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
        sampling=Sampling.ALL,
        mean_units=means,
        clip=clip,
    )


def central(data: Data, spec: FrankWolfeSpec, *, seed: int) -> Model:
    """Fit private Frank-Wolfe with all columns in one place."""
    order = tuple(feature for split in data.splits for feature in split)
    concat = replace(data, splits=(order,))
    model = fit(concat, spec, SeededNoise(seed), job=f"central {seed}")
    cuts = np.cumsum([len(split) for split in data.splits])[:-1]
    parts: list[FloatArray] = np.split(model.coefs[0], cuts)
    return Model(parts, model.intercept)
