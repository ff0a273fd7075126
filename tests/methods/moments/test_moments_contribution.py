"""What releases tell of each party's columns, beside what the joined table says."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.vertical import planned

from colonnade.bench.vertical.coverage import log_odds, shares_covered
from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.explained import auc_of
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.contribution import (
    intervals_of,
    moments_contribution,
    odds_ratios,
)
from colonnade.methods.moments.solver.solutions import moments_summary
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import STRUCTURES, make
from colonnade.simulate.inprocess.moments import model_of, run
from colonnade.simulate.inprocess.vertical import Data, quality


@functools.cache
def finished(
    structure: str, seed: int, loss: Loss = Loss.SQUARED, epsilon: float = 2.0
) -> tuple[Data, MomentsSolver, MomentsState, FloatArray]:
    """Run a job; return its table, steps, last state, and the table's correlations, label last."""
    made = make(
        20_000,
        (6,) * 4,
        informative=5,
        correlation=0.4,
        seed=seed,
        structure=structure,
        loss=loss,
    )
    data = made.data()
    spec = recommend(planned(data, epsilon, loss)).spec
    state, _ = run(data, spec, SeededNoise(seed), job=f"contribution {seed}")
    exact = np.asarray(np.corrcoef(np.vstack([data.columns, data.label]) / GRID))
    return data, MomentsSolver(spec, ""), state, exact


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Loss.SQUARED, Loss.LOGISTIC])
def test_what_parties_explain_alone_and_without_each_lies_within_its_error(loss: Loss) -> None:
    # Four shapes, eight shares a table: 32 that go together within a table, worth about 12.
    # At a coverage of 0.95 more than two misses of 12 have probability 0.02.
    inside = [
        shares_covered(solver, state, exact)
        for structure in STRUCTURES
        for _, solver, state, exact in [finished(structure, 311, loss)]
    ]
    assert np.concatenate(inside).size == 32
    assert np.concatenate(inside).mean() > 0.8


@pytest.mark.slow
def test_where_nothing_is_bought_between_parties_each_alone_lies_within_its_error() -> None:
    # Two parties and four, three tables each: 24 shares, of which those of two parties come twice,
    # as one's alone and the other's without. At a coverage of 0.95 five misses have probability
    # below 0.01.
    inside = []
    for count, structure, seed in itertools.product((2, 4), STRUCTURES[:3], (5,)):
        made = make(
            1500, (5,) * count, informative=4, correlation=0.4, seed=seed, structure=structure
        )
        data = made.data()
        plan = recommend(planned(data, 4.0, Loss.SQUARED)).spec
        spec = replace(plan, share_units=0, cross_units=0)
        state, _ = run(data, spec, SeededNoise(seed), job=f"alone {structure} {count}")
        solver = MomentsSolver(spec, "")
        told = moments_contribution(solver, state)
        assert told is not None
        exact = np.asarray(np.corrcoef(np.vstack([data.columns, data.label]) / GRID))
        inside.append(shares_covered(solver, state, exact))
        assert inside[-1].size == 4
        for party, each in told.items():
            assert "lost" not in each
            if count == 2:
                (other,) = told.keys() - {party}
                assert each["without"] == told[other]["alone"]
                assert each["without_error"] == told[other]["alone_error"]
            else:
                assert each["without"] is None
        summary = moments_summary(solver, state)
        assert summary is not None
        assert summary["explained"] is None  # of all together it would be a guess
    assert np.concatenate(inside).mean() > 0.8


def test_parties_are_ranked_as_the_joined_table_ranks_them() -> None:
    _, solver, state, exact = finished("equicorrelated", 311)
    told = moments_contribution(solver, state)
    assert told is not None
    truth = {}
    for place in range(4):
        own = np.arange(6 * place, 6 * place + 6)
        target = exact[-1, own]
        truth[f"p{place}"] = float(target @ np.linalg.solve(exact[np.ix_(own, own)], target))
    # Of columns within one party the releases know all but noise of a percent; the ball takes up to
    # 15 % of a share, and the job's penalty about a hundredth.
    for party, share in truth.items():
        found = told[party]
        assert abs(found["alone"] - share) < 2.0 * found["alone_error"] + 0.02
        assert found["alone_error"] < 0.08
        assert told[party]["lost"] < told[party]["alone"] + 2.0 * told[party]["lost_error"]
    assert max(truth, key=lambda p: truth[p]) == max(told, key=lambda p: told[p]["alone"])
    assert max(truth.values()) > 2.0 * min(truth.values())  # so that a wrong order is noticed


def test_statistics_agree_with_least_squares_on_the_joined_table() -> None:
    data, solver, state, exact = finished("independent", 310, epsilon=8.0)
    summary = moments_summary(solver, state)
    assert summary is not None
    found = summary["intervals"]
    truth = np.linalg.solve(exact[:-1, :-1], exact[:-1, -1])
    strong = np.abs(truth) > 0.2
    assert 0 < strong.sum() < 10
    # A coefficient of 0.2 is more than four of its errors here, and zero is at most three.
    assert np.all(np.array(found["p_value"])[strong] < 1e-3)
    assert np.all(np.array(found["p_value"])[np.abs(truth) < 0.02] > 1e-3)
    inflation = np.diag(np.linalg.inv(exact[:-1, :-1]))
    assert np.allclose(found["vif"], inflation, rtol=0.15)
    assert "odds_ratio" not in found
    assert data.label.size == 20_000


def test_classes_have_odds_ratios_and_an_area_under_the_curve() -> None:
    data, solver, state, _ = finished("equicorrelated", 311, Loss.LOGISTIC, epsilon=8.0)
    found = odds_ratios(solver, state, intervals_of(solver, state))
    truth = np.exp(log_odds(data.columns, data.label > 0))
    assert np.mean((found["odds_low"] <= truth) & (truth <= found["odds_high"])) > 0.9
    strong = np.abs(np.log(truth)) > 0.5
    assert strong.any()
    # Discriminant analysis and logistic regression agree on normal columns up to a tenth; noise and
    # what was not bought between parties take as much again.
    ratio = np.log(found["odds_ratio"][strong]) / np.log(truth[strong])
    assert np.all((ratio > 0.6) & (ratio < 1.3))
    summary = moments_summary(solver, state)
    assert summary is not None
    true = quality(data, model_of(solver.spec, state), Loss.LOGISTIC)
    explained = summary["explained"]
    assert abs(explained["auc"] - true) < 2.0 * explained["auc_error"]
    assert 0.005 < explained["auc_error"] < 0.06


def test_a_share_becomes_the_area_of_two_normal_classes() -> None:
    draw = np.random.default_rng(5)
    positive = draw.random(200_000) < 0.2
    score = draw.standard_normal(200_000) + 1.2 * positive
    share = float(np.corrcoef(score, positive)[0, 1] ** 2)
    ranks = np.argsort(np.argsort(score))[positive] + 1.0
    count = positive.sum()
    area = (ranks.sum() - count * (count + 1) / 2) / (count * (score.size - count))
    # The area's standard error is about 0.3 / sqrt(count) = 0.0015.
    assert auc_of(share, 0.2) == pytest.approx(float(area), abs=0.006)
