"""How good a simulated job's model is: numbers that read all data, so a real job never has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.optim.job import Job
from colonnade.optim.vertical.spec import Loss
from colonnade.simulate.federation import Site
from colonnade.simulate.inprocess import Data

NOTE = "simulation only: computed from all parties' data in one place"


def joined(sites: Sequence[Site], job: Job) -> Data:
    """Return all columns of a job in one place, on the grid, under the job's bounds."""
    columns: list[AnyArray] = []
    splits, label = [], None
    for site, member in zip(sites, job.members, strict=True):
        values = {column.name: column.values for column in site.features}
        first = len(columns)
        for name, bounds in zip(member.features, member.bounds, strict=True):
            columns.append(_on_grid(values[name], bounds))
        splits.append(tuple(range(first, len(columns))))
        if site.label is not None:
            label = _on_grid(site.label.values, job.label_bounds)
    if label is None:
        raise ValueError("no site has the label")
    return Data(np.stack(columns), label, tuple(splits))


def quality_by_round(data: Data, job: Job, path: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the quality of each iterate in a report's path."""
    return [
        score(
            data,
            job.method.loss,
            [np.array(point["coef"][member.party]) for member in job.members],
            float(point["intercept"]),
        )
        for point in path
    ]


def score(data: Data, loss: Loss, coefs: Sequence[FloatArray], intercept: float) -> float:
    """Return R2, or for the logistic loss the area under the ROC curve, of a scaled model."""
    prediction = np.full(data.label.size, intercept)
    for coef, split in zip(coefs, data.splits, strict=True):
        for feature in np.flatnonzero(coef):
            prediction += coef[feature] / GRID * data.columns[split[feature]]
    label = data.label.astype(np.float64) / GRID
    if loss is Loss.LOGISTIC:
        return area_under_curve(label > 0.0, prediction)
    return float(1.0 - ((label - prediction) ** 2).sum() / ((label - label.mean()) ** 2).sum())


def area_under_curve(positive: "np.ndarray[Any, np.dtype[np.bool_]]", scores: FloatArray) -> float:
    """Return the probability that a positive is ranked above a negative, ties counting half."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if not n_positive or not n_negative:
        return 0.5
    total = float(ranks[place][positive].sum()) - n_positive * (n_positive + 1) / 2.0
    return total / (n_positive * n_negative)


def _on_grid(values: FloatArray, bounds: Bounds) -> AnyArray:
    filled = np.where(np.isnan(values), bounds.middle, values)
    return quantise(filled, bounds, grid=GRID)
