"""What a vertical job is compared with: no privacy, and one place that holds all the columns."""

from dataclasses import replace

import numpy as np

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.vertical.spec import Block, FrankWolfeSpec, Labels, Loss, Sampling
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.inprocess import Data, Model, fit

# Rows that the non-private fits look at: more change nothing in the second digit.
_MOST_ROWS = 30_000


def nonprivate(data: Data, loss: Loss) -> Model:
    """Fit without privacy: the LASSO, cross-validated, or a logistic regression."""
    columns = data.columns[:, :_MOST_ROWS].astype(np.float64) / GRID
    label = data.label[:_MOST_ROWS].astype(np.float64) / GRID
    if loss is Loss.LOGISTIC:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=10.0, solver="newton-cholesky").fit(columns.T, label > 0.0)
        coef, intercept = model.coef_[0], float(model.intercept_[0])
    else:
        from sklearn.linear_model import LassoCV

        # Gram matrix first: the path then costs nothing in the number of rows.
        lasso = LassoCV(cv=3, alphas=20, eps=1e-4, precompute=True, max_iter=5000)
        lasso.fit(columns.T, label)
        coef, intercept = lasso.coef_, float(lasso.intercept_)
    return Model([np.asarray(coef)[list(split)] for split in data.splits], intercept)


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
    together = replace(data, splits=(order,))
    model = fit(together, spec, SeededNoise(seed), job=f"central {seed}")
    cuts = np.cumsum([len(split) for split in data.splits])[:-1]
    parts: list[FloatArray] = np.split(model.coefs[0], cuts)
    return Model(parts, model.intercept)
