"""Scores of all rows for one party after a simulated fit, compared with the joined table.

Policies are written after the fit, as people would write them: a grant names the job. Then the
processes start again, with the new grants, and run the prediction over TLS.
"""

import csv
import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.client.predict_builder import PredictOptions, author_prediction
from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import FloatArray, Int16Array, IntArray
from colonnade.core.errors import JobEnded
from colonnade.core.fixedpoint import FINE_GRID, GRID, quantise
from colonnade.data.integer_scores import IntegerScores, add_products
from colonnade.data.model import LinearModel
from colonnade.data.model_columns import ModelFeature
from colonnade.data.requantise import requantise
from colonnade.data.table import COARSE_NAME, Table
from colonnade.methods.prediction.spec import MAX_ROWS
from colonnade.party.prediction.people import names_of
from colonnade.party.prediction.store import PredictionFolder
from colonnade.simulate.federation import FEDERATION, HUB, Federation, only_mine
from colonnade.simulate.processes import Processes
from colonnade.simulate.run import Show
from colonnade.simulate.sites import Site, SiteColumn

_PURPOSE = "a simulation"


def check_receiver(name: str | None, parties: Sequence[str]) -> None:
    """Refuse a receiver that is no party."""
    if name is None:
        return
    if name not in parties:
        raise BadArgument("predict_to", f"must be one of {', '.join(parties)}")
    if len(parties) < 2:
        raise BadArgument("predict_to", "needs two parties or more")


def run_prediction(
    federation: Federation, sites: Sequence[Site], report: Mapping[str, Any], *, to: str, show: Show
) -> dict[str, Any]:
    """Score all rows of a finished job's tables for ``to``, and compare with the joined table."""
    grant(federation, report["job_id"], to, purpose=_PURPOSE)
    with Processes(federation, federation.folder / "logs") as processes:
        with processes.client() as client, processes.blamed():
            offers = processes.wait_for_parties(client)
            began = time.monotonic()
            n_rows = min(offers[0].population, MAX_ROWS)
            job = author_prediction(
                client.show(report["job_id"]).spec,
                client.releases(report["job_id"]),
                np.arange(n_rows),
                PredictOptions(to, _PURPOSE),
                offers=offers,
                timeout_s=60,
            )
            name = client.submit(job)
            view = deque(show(client.watch(name)), maxlen=1).pop()
            seconds = time.monotonic() - began
            uplink = client.report(name)["uplink"]
        if view.state != "finished":
            processes.check()
            raise JobEnded(f"the simulated prediction {view.state}: {view.reason}")
    model = LinearModel.from_object(report["model"])
    scores, predictions = _received(federation.folder / to, name)
    total = joined_total(federation, sites, model, n_rows)
    expected = IntegerScores.of(model).score(total)
    return {
        "receiver": to,
        "rows": n_rows,
        "equal_to_joined": scores.tobytes() == expected.tobytes()
        and predictions.tobytes() == model.from_score(expected).tobytes(),
        "payload_bytes": uplink["payload_bytes"],
        "predicted_bytes": uplink["predicted_bytes"],
        "seconds": seconds,
    }


def grant(federation: Federation, job: str, receiver: str, *, purpose: str) -> None:
    """Let every party's policy grant the job's model to ``receiver``, with all keys pinned."""
    write_grants(federation, f"spiffe://{FEDERATION}/coordinator/{HUB}", job, receiver, purpose)


@only_mine()
def write_grants(
    federation: Federation, coordinator: str, job: str, receiver: str, purpose: str
) -> None:
    """Add a grant of a job's model to every party's policy."""
    keys = federation.keys().items()
    peers = ", ".join(f"{json.dumps(name)} = {json.dumps(key)}" for name, key in keys)
    for party in federation.parties:
        with federation.party_config(party).with_name("policy.toml").open("a") as file:
            file.write(f"""
[[predict]]
coordinator = {json.dumps(coordinator)}
job = "{job}"
receiver = {json.dumps(receiver)}
purpose = {json.dumps(purpose)}
max_rows = {MAX_ROWS}
until = 9999-12-31
peers = {{ {peers} }}
""")


def joined_total(
    federation: Federation, sites: Sequence[Site], model: LinearModel, n_rows: int
) -> IntArray:
    """Return the sums over all columns of one joined table, with values as training saw them."""
    numbers = dict(
        zip((f.full_name for f in model.features), IntegerScores.of(model).coef, strict=True)
    )
    total = np.zeros(n_rows, np.int64)
    for site in sites:
        places = _places(federation.folder / site.party / "data", n_rows)
        by_name = {column.name: column for column in site.encoded()}
        for feature in model.features:
            if feature.party == site.party and feature.coef_scaled:
                column = _in_order(by_name[feature.name], places, n_rows)
                held = as_trained(feature, column)[None, :]
                add_products(total, held, [numbers[feature.full_name]])
    return total


def as_trained(feature: ModelFeature, column: SiteColumn) -> Int16Array:
    """Return a column as ingest stores it and a job reads it, through the fine copy if need be."""
    values = np.where(np.isnan(column.values), feature.fill, column.values)
    if feature.bounds == column.bounds:
        return quantise(values, column.bounds, grid=GRID)
    fine = quantise(values, column.bounds, grid=FINE_GRID)
    return requantise(fine, declared=column.bounds, tight=feature.bounds)


def _places(data: Path, n_rows: int) -> IntArray | None:
    """Return which row of a site each row of its table is, -1 for nobody; None for the same."""
    columns, people = names_of(data, _alignment(data))
    if not columns:
        return None
    places = np.full(n_rows, -1, np.int64)
    for row, (person,) in people.items():
        if row < n_rows:
            places[row] = int(person)
    return places


def _in_order(column: SiteColumn, places: IntArray | None, n_rows: int) -> SiteColumn:
    if places is None:
        return replace(column, values=column.values[:n_rows])
    return replace(column, values=np.where(places < 0, np.nan, column.values[places]))


def _alignment(data: Path) -> str:
    return Table.open(data / COARSE_NAME).header.alignment


def _received(home: Path, job: str) -> tuple[FloatArray, FloatArray]:
    """Read the scores and predictions in the receiver's file."""
    with PredictionFolder.beside(home / "data").scores_path(job).open(newline="") as file:
        _, *lines = csv.reader(file)
    numbers = np.array([line[-2:] for line in lines], np.float64)
    return np.ascontiguousarray(numbers[:, 0]), np.ascontiguousarray(numbers[:, 1])
