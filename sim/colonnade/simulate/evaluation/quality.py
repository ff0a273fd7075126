"""How good a simulated job's model is: numbers that read all data, so a real job never has them.

All models are scored on the same rows, against the label as it is, never clipped: by default rows
that were held out of everything. The job's model and the private reference clip features at the
job's bounds, as `predict` does.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.core.arrays import FloatArray, Int16Array
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.methods.job import Job
from colonnade.methods.problem import Loss
from colonnade.simulate.data.held_out import Divided
from colonnade.simulate.evaluation.linear_fit import fit_linear
from colonnade.simulate.evaluation.references import central_reference
from colonnade.simulate.inprocess.vertical import Data, ScaledModel, auc, r2
from colonnade.simulate.sites import Site, SiteColumn

NOTE = "simulation only: computed from all parties' data in one place"
CENTRAL_IS = (
    "Private, all data in one place: the solver gram by one party that holds all columns, under the"
    " job's bounds, for what the job may cost all parties together."
)
NONPRIVATE_IS = (
    "Not private: linear or logistic regression on all fitted rows, in one place, of standardised"
    " columns with an L1 penalty. The penalty, and whether columns are clipped at the job's bounds"
    " or at no value, are chosen on a fifth of those rows."
)


@dataclass(frozen=True, slots=True)
class References:
    """Scores of what a job is compared with: they need no model, only the job's bounds."""

    central: float
    nonprivate: float


def reference_scores(job: Job, divided: Divided, *, seed: int) -> References:
    """Fit and score the references, which may be done while the job runs."""
    loss, seen = job.method.loss, joined(divided.fitted, job)
    rows = seen if divided.held_out is None else joined(divided.held_out, job)
    units = sum(job.method.max_units(member.party) for member in job.members)
    central = central_reference(seen, loss=loss, rho_units=units, seed=seed)
    return References(
        _model_score(job, central, rows, divided),
        _score(_label(divided.scored), _nonprivate(job, divided, seed=seed), loss),
    )


def _model_score(job: Job, model: ScaledModel, rows: Data, divided: Divided) -> float:
    bounds = job.label_bounds
    predicted = bounds.middle + bounds.half_width * model.predict(rows)
    return _score(_label(divided.scored), predicted, job.method.loss)


def scored(
    job: Job,
    path: Sequence[Mapping[str, Any]],
    divided: Divided,
    *,
    references: References | None,
) -> dict[str, Any]:
    """Return the quality of a job's iterates beside that of its references, if there are any."""
    loss, rows, label = job.method.loss, joined(divided.scored, job), _label(divided.scored)
    models = [_model(job, point) for point in path]
    by_round = [_model_score(job, model, rows, divided) for model in models]
    found = {
        "simulation_only": True,
        "note": NOTE,
        "rows": "fitted" if divided.held_out is None else "held-out",
        "n_rows": label.size,
        "metric": "auc" if loss is Loss.LOGISTIC else "r2",
        "ours": by_round[-1],
        "nonprivate": None if references is None else references.nonprivate,
        "central": None if references is None else references.central,
        "by_round": by_round,
        "central_is": "" if references is None else CENTRAL_IS,
        "nonprivate_is": "" if references is None else NONPRIVATE_IS,
    }
    if loss is Loss.LOGISTIC:
        positive = label > job.label_bounds.middle
        found["probabilities"] = probabilities(positive, models[-1].predict(rows))
    return found


def probabilities(positive: NDArray[np.bool_], logits: FloatArray) -> dict[str, float]:
    """Return how probabilities fare: their mean and the base rate, and the log loss of both."""
    rate = float(positive.mean())
    alone = -sum(part * math.log(part) for part in (rate, 1.0 - rate) if part > 0.0)
    signed = np.where(positive, logits, -logits)
    return {
        "mean_probability": float(np.mean(np.exp(-np.logaddexp(0.0, -logits)))),
        "base_rate": rate,
        "log_loss": float(np.mean(np.logaddexp(0.0, -signed))),
        "base_rate_log_loss": alone,
    }


def joined(sites: Sequence[Site], job: Job) -> Data:
    """Return all columns of a job in one place, on the grid, under the job's bounds."""
    splits, first = [], 0
    for member in job.members:
        splits.append(tuple(range(first, first + len(member.features))))
        first += len(member.features)
    label = quantise(_label(sites), job.label_bounds, grid=GRID)
    return Data(_on_grid(_columns(sites, job), _bounds(job)), label, tuple(splits))


def _nonprivate(job: Job, divided: Divided, *, seed: int) -> FloatArray:
    """Return what the better of two fits without privacy predicts for the rows to be scored."""
    columns, label = _columns(divided.fitted, job), _label(divided.fitted)
    if classes := job.method.loss is Loss.LOGISTIC:
        label = np.where(label > 0.0, 1.0, -1.0)
    extremes = [_extremes(column) for column in columns]
    fits = [
        (fit_linear(_on_grid(columns, limits), label, classes=classes, seed=seed), limits)
        for limits in (_bounds(job), extremes)
    ]
    best, limits = min(fits, key=lambda fit: fit[0].left_out_loss)
    return best.predict(_on_grid(_columns(divided.scored, job), limits))


def _columns(sites: Sequence[Site], job: Job) -> list[SiteColumn]:
    """Return the columns of a job with the declared fills in place of missing values."""
    found = []
    for site, member in zip(sites, job.members, strict=True):
        by_name = {column.name: column for column in site.encoded()}
        for name, fill in zip(member.features, member.fills, strict=True):
            values = by_name[name].values
            found.append(replace(by_name[name], values=np.where(np.isnan(values), fill, values)))
    return found


def _bounds(job: Job) -> list[Bounds]:
    return [bounds for member in job.members for bounds in member.bounds]


def _extremes(column: SiteColumn) -> Bounds:
    """Return bounds that clip nothing."""
    try:
        return Bounds(float(column.values.min()), float(column.values.max()))
    except ValueError:  # one value only, or too close together
        return column.bounds


def _on_grid(columns: Sequence[SiteColumn], limits: Sequence[Bounds]) -> Int16Array:
    return np.stack(
        [
            quantise(column.values, bounds, grid=GRID)
            for column, bounds in zip(columns, limits, strict=True)
        ]
    )


def _label(sites: Sequence[Site]) -> FloatArray:
    return next(site.label.values for site in sites if site.label is not None)


def _model(job: Job, point: Mapping[str, Any]) -> ScaledModel:
    coefs = [np.array(point["coef"][member.party]) for member in job.members]
    return ScaledModel(coefs, float(point["intercept"]))


def _score(label: FloatArray, prediction: FloatArray, loss: Loss) -> float:
    return auc(label, prediction) if loss is Loss.LOGISTIC else r2(label, prediction)
