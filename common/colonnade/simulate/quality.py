"""How good a simulated job's model is: numbers that read all data, so a real job never has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from colonnade.core.arrays import AnyArray, FloatArray
from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.optim.job import Job
from colonnade.simulate.federation import Site
from colonnade.simulate.inprocess import Data, Model, quality

NOTE = "simulation only: computed from all parties' data in one place"


def joined(sites: Sequence[Site], job: Job) -> Data:
    """Return all columns of a job in one place, on the grid, under the job's bounds."""
    columns: list[AnyArray] = []
    splits, label = [], None
    for site, member in zip(sites, job.members, strict=True):
        values = {column.name: column.values for column in site.features}
        first = len(columns)
        for name, bounds, fill in zip(member.features, member.bounds, member.fills, strict=True):
            columns.append(_on_grid(values[name], bounds, fill))
        splits.append(tuple(range(first, len(columns))))
        if site.label is not None:
            label = _on_grid(site.label.values, job.label_bounds, site.label.bounds.middle)
    if label is None:
        raise ValueError("no site has the label")
    return Data(np.stack(columns), label, tuple(splits))


def quality_by_round(data: Data, job: Job, path: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the quality of each iterate in a report's path."""
    return [
        quality(
            data,
            Model(
                [np.array(point["coef"][member.party]) for member in job.members],
                float(point["intercept"]),
            ),
            job.method.loss,
        )
        for point in path
    ]


def _on_grid(values: FloatArray, bounds: Bounds, fill: float) -> AnyArray:
    return quantise(np.where(np.isnan(values), fill, values), bounds, grid=GRID)
