"""Coefficients that a report sets side by side are per released deviation, not per bounds."""

import json
import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.desk import UNITS, Desk, job_of

from colonnade.core.fixedpoint import GRID, Bounds, quantise
from colonnade.data.model import LinearModel
from colonnade.linear.sums import moments_mechanism
from colonnade.methods.base import Member, MethodSpec
from colonnade.methods.frank_wolfe.plan import recommend as recommend_frank_wolfe
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec
from colonnade.methods.job import Job
from colonnade.methods.moments.plan import recommend as recommend_moments
from colonnade.methods.problem import Problem
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.report import Report, read, to_html
from colonnade.report.schema import Model
from colonnade.report.views.effects import curves_of, effects_of
from colonnade.report.views.model import model_section
from colonnade.server.engine.progress import find_job, run_of
from colonnade.server.methods.deviations import (
    Deviations,
    SpreadEstimate,
    opening_spread,
    per_deviation,
)
from colonnade.server.methods.registry import algorithm_of, side_of
from colonnade.server.results import report_of
from colonnade.simulate.inprocess import moments
from colonnade.simulate.inprocess import vertical as inprocess
from colonnade.simulate.inprocess.vertical import Data

N_ROWS = 20_000
DEVIATION = 2.0
# In deviations: the same values under tight and under eight times wider bounds.
HALVES = {"p0": (3.0, 24.0), "p1": (3.0, 6.0)}
BOUNDS = {
    party: tuple(Bounds(-half * DEVIATION, half * DEVIATION) for half in halves)
    for party, halves in HALVES.items()
}
LABEL = Bounds(-40.0, 40.0)


def table() -> Data:
    """Make four columns of one deviation, of which the label is the sum of the first three."""
    draw = np.random.default_rng(5)
    values = draw.normal(0.0, DEVIATION, (4, N_ROWS))
    label = values[:3].sum(axis=0) + draw.normal(0.0, 1.0, N_ROWS)
    bounds = [each for party in BOUNDS.values() for each in party]
    columns = [quantise(x, b, grid=GRID) for x, b in zip(values, bounds, strict=True)]
    return Data(
        np.stack(columns).astype(np.int16),
        quantise(label, LABEL, grid=GRID).astype(np.int16),
        ((0, 1), (2, 3)),
    )


def fitted(method: str, rho: float, **changes: Any) -> tuple[Any, Any, LinearModel]:
    """Run a job and return its steps, last state and model."""
    features = {"p0": ("x0", "x1"), "p1": ("x2", "x3")}
    problem = Problem(n_rows=N_ROWS, features=features, rho_units=units_down(rho))
    noise = SeededNoise(7)
    spec: MethodSpec
    state: Any
    if method == "moments":
        spec = replace(recommend_moments(problem).spec, **changes)
        state, _ = moments.run(table(), spec, noise)
    else:
        spec = replace(recommend_frank_wolfe(problem).spec, **changes)
        state, _ = inprocess.run(table(), spec, noise)
    members = tuple(
        Member(party, "ab" * 16, names, BOUNDS[party], (0.0, 0.0), True)
        for party, names in features.items()
    )
    job = Job("a", bytes(16), 1e-6, 10, members, "y", LABEL, spec)
    algorithm = algorithm_of(job, "job")
    return algorithm, state, algorithm.model(state)


def deviations_of(algorithm: Any, state: Any) -> Deviations:
    return side_of(algorithm.spec.kind).deviations(algorithm, state)


@pytest.mark.parametrize(
    ("method", "changes"),
    [("moments", {}), ("frank-wolfe", {"mean_units": units_down(1.0)})],
    ids=["moments", "frank-wolfe"],
)
def test_deviations_are_those_of_the_columns(method: str, changes: dict[str, int]) -> None:
    algorithm, state, model = fitted(method, rho=3.0, **changes)
    found = per_deviation(deviations_of(algorithm, state), model)
    assert found is not None
    # Sums of squares err by 1.2e-4 at this price, 7 % of the least variance (1/24 squared) or 3.5 %
    # of its deviation: within three errors. The ball takes little of rows that are normal.
    for each in found["features"]:
        assert each["deviation"] == pytest.approx(DEVIATION, rel=0.1)
    for feature, coef, each in zip(model.features, model.coef, found["features"], strict=True):
        assert (each["party"], each["name"]) == (feature.party, feature.name)
        assert each["coef"] == pytest.approx(coef * each["deviation"], rel=1e-12, abs=1e-300)


def test_equal_effects_under_unequal_bounds_have_equal_sizes() -> None:
    algorithm, state, model = fitted("moments", rho=3.0)
    found = per_deviation(deviations_of(algorithm, state), model)
    assert found is not None
    scaled = [abs(feature.coef_scaled) for feature in model.features]
    sizes = [abs(each["coef"]) for each in found["features"]]
    assert scaled[1] > 6.0 * scaled[0]  # eight times wider: what does not compare
    # Products of a party's columns are nearly exact; deviations are within a tenth, as above.
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_variances_from_an_opening_are_not_biased_by_noise() -> None:
    # Sums of columns with means 0 and .6 and variances .04 and .09, in half ranges.
    exact = np.array([0.0, 0.6, 0.04, 0.09 + 0.36]) * N_ROWS * GRID
    mechanism, noise, count = moments_mechanism(2, units_down(1e-7)), SeededNoise(3), 4000
    spreads = [
        opening_spread(mechanism.perturb(np.rint(exact).astype(np.int64), noise), N_ROWS, mechanism)
        for _ in range(count)
    ]
    values = np.stack([each.variance for each in spreads])
    error = values.std(axis=0)
    # Means of 4000 draws err by error / 63; four of these, for two numbers. The square of a mean's
    # noise, which an unbiased estimate has to take off, is more than that.
    limit = 4.0 * error / math.sqrt(count)
    assert np.all(np.abs(values.mean(axis=0) - [0.04, 0.09]) < limit)
    assert mechanism.sigma2 / (N_ROWS * GRID) ** 2 > 1.5 * limit.max()
    # The error is told from a noisy mean, whose square is .1 too large. With mean 0 that makes a
    # variance of .16 of one of .12, 16 % of its root; four errors of 4000 draws are another 5 %.
    told = np.sqrt(np.mean([each.error**2 for each in spreads], axis=0))
    assert told == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize("method", ["moments", "frank-wolfe"])
def test_a_deviation_that_noise_hides_is_not_told(method: str) -> None:
    algorithm, state, model = fitted(method, rho=2e-4)
    known = deviations_of(algorithm, state)
    assert known["p0"][1] is None  # a 24th of its bounds
    found = per_deviation(deviations_of(algorithm, state), model)
    assert found is not None
    hidden = found["features"][1]
    assert hidden["deviation"] is None
    assert hidden["coef"] == (None if model.coef[1] else 0.0)


def test_a_variance_of_less_than_two_errors_is_hidden() -> None:
    found = SpreadEstimate(
        np.array([0.01, 0.01, -0.01]), np.array([0.0049, 0.0051, 0.001])
    ).deviations()
    assert found[0] == pytest.approx(0.1)
    assert found[1:] == [None, None]


def test_a_job_without_released_deviations_says_what_its_scale_is() -> None:
    algorithm, state, model = fitted("frank-wolfe", rho=3.0, mean_units=0)
    assert isinstance(algorithm.spec, FrankWolfeSpec)
    assert per_deviation(deviations_of(algorithm, state), model) is None


def reported(**changes: Any) -> dict[str, Any]:
    """Run a job through the coordinator's engine and return its report."""
    desk = Desk("a", "b")
    name = desk.run(job_of("a", "b", **changes))
    run = run_of(desk.engine, desk.store, find_job(desk.engine, desk.store, name))
    found: dict[str, Any] = json.loads(json.dumps(report_of(desk.engine, desk.store, run)))
    desk.store.close()
    return found


def sections_text(report: Report) -> str:
    """Return all words of the section of effects, captions and headings among them."""
    return repr(model_section(report))


def test_the_page_compares_by_deviations_where_they_were_released() -> None:
    document = reported(mean_units=150 * UNITS)
    report = read(document)
    scales = report.per_deviation
    assert scales
    sizes = [abs(each.size or 0.0) for each in effects_of(report)]
    assert sizes == sorted((abs(each.coef or 0.0) for each in scales.features), reverse=True)
    ends = {(curve.party, curve.name): curve.values[-1] for curve in curves_of(report)}
    assert ends
    coefs = {(each.party, each.name): each.coef for each in scales.features}
    for key, end in ends.items():
        assert end == pytest.approx(coefs[key], rel=1e-9, abs=1e-15)
    page = to_html(document)
    assert "one standard deviation more of the column, so that sizes compare" in page
    assert "After each round, per deviation." in page
    assert "Coefficients after each round, per deviation" in page
    for each in scales.features:
        assert repr(each.deviation) in page
        assert repr(each.coef) in page


def test_the_page_compares_nothing_where_they_were_not() -> None:
    report = read(reported(mean_units=0))
    assert report.per_deviation is None
    text = sections_text(report)
    assert "After each round, on scaled values." in text
    assert "No deviations of columns were released" in text
    assert "so that sizes compare" not in text


def test_order_follows_deviations_and_hidden_ones_are_counted() -> None:
    document = reported(mean_units=150 * UNITS)
    model = document["model"]
    first, second = model["features"][:2]
    first |= {"coef_scaled": 5.0}
    second |= {"coef_scaled": 0.1}
    features = [
        {"party": each["party"], "name": each["name"], "deviation": 1.0, "coef": 0.01}
        for each in model["features"]
    ]
    features[0] |= {"deviation": None, "coef": None}
    features[1] |= {"coef": 7.0}
    document["per_deviation"] = {"features": features}
    report = read(document)
    assert effects_of(report)[0].feature.name == second["name"]
    # Largest on scaled values, yet its deviation is not known.
    assert effects_of(report)[-1].feature.coef_scaled == 5.0
    assert "Noise hides the deviation of 1 more." in sections_text(report)
    curves = [(curve.party, curve.name) for curve in curves_of(report)]
    assert (first["party"], first["name"]) not in curves


def test_a_fit_of_one_party_says_what_its_scale_is() -> None:
    model = msgspec.convert(fitted("moments", rho=3.0)[2].to_object(), Model)
    report = Report(job_id="", name="", loss="squared", private=True, model=model)
    assert "sizes compare only between columns whose values fill their" in sections_text(report)
