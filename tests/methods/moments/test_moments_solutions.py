"""One moments job, many answers: other penalties, and what a report shows beside the model."""

import functools
import json
import math

import numpy as np
import pytest
from support.vertical import planned

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.linear.solutions import Wanted
from colonnade.methods.moments.plan import recommend
from colonnade.methods.moments.solver.contribution import explained
from colonnade.methods.moments.solver.scales import Scales
from colonnade.methods.moments.solver.solutions import moments_summary, solved
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.problem import Loss
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.data.synthetic import STRUCTURES, make
from colonnade.simulate.inprocess.moments import model_of, run
from colonnade.simulate.inprocess.vertical import Data, quality


@functools.cache
def finished(parties: int = 3, n_rows: int = 20_000) -> tuple[Data, MomentsSolver, MomentsState]:
    data = make(n_rows, (4,) * parties, informative=4, correlation=0.3, seed=3).data()
    spec = recommend(planned(data, 2.0)).spec
    state, _ = run(data, spec, SeededNoise(3), job="solutions")
    return data, MomentsSolver(spec, "solutions"), state


def in_deviations(solver: MomentsSolver, state: MomentsState) -> FloatArray:
    """Return the state's coefficients as the solve saw them."""
    scales = Scales.of(solver.spec, state.bodies)
    units = [
        scales.features[part.party].deviation / scales.label_deviation for part in solver.spec.parts
    ]
    coefs = solver.coefficients(state).values()
    return np.concatenate([coef * unit for coef, unit in zip(coefs, units, strict=True)])


def test_what_the_job_solved_is_solved_again_to_the_last_bit() -> None:
    _, solver, state = finished()
    again = solved(solver, state, Wanted())
    assert again.intercept == state.intercept
    for party, coef in state.coef.items():
        assert np.array_equal(again.coef[party], coef)


def test_each_penalty_meets_its_own_conditions() -> None:
    _, solver, state = finished()
    found = solver.estimate(state)

    def slope(wanted: Wanted) -> tuple[FloatArray, FloatArray]:
        x = in_deviations(solver, solved(solver, state, wanted))
        return x, found.target - found.gram @ x

    # Coefficients are kept in fixed point, of about 1e-9 of a deviation.
    x, left = slope(Wanted("ridge", strength=0.3))
    assert np.allclose(left, 0.3 * x, atol=1e-6)
    x, left = slope(Wanted("l1", strength=0.05))
    active = np.abs(x) > 1e-8
    assert 0 < active.sum() < x.size
    assert np.allclose(left[active], 0.05 * np.sign(x[active]), atol=1e-5)
    assert np.all(np.abs(left[~active]) < 0.05 + 1e-6)
    x, left = slope(Wanted("elastic-net", strength=0.1, mix=0.25))
    active = np.abs(x) > 1e-8
    wanted = 0.025 * np.sign(x[active]) + 0.075 * x[active]
    assert np.allclose(left[active], wanted, atol=1e-5)
    x, left = slope(Wanted("box", low=0.0))
    assert x.min() > -1e-8
    assert np.allclose(left[x > 1e-6], 0.0, atol=1e-5)
    assert np.all(left[x < 1e-8] < 1e-6)
    x, _ = slope(Wanted("ball", radius=0.4, strength=0.0))
    assert np.abs(x).sum() == pytest.approx(0.4, abs=1e-6)


def test_other_penalties_give_models_that_predict() -> None:
    data, solver, state = finished()
    own = quality(data, model_of(solver.spec, state), Loss.SQUARED)
    for penalty in ("l1", "ridge", "elastic-net"):
        other = solved(solver, state, Wanted(penalty))
        # With their default strength they differ from the job's own by less than its noise does.
        assert quality(data, model_of(solver.spec, other), Loss.SQUARED) > own - 0.05


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"penalty": "l3"}, "one of"),
        ({"strength": -1.0}, "strength"),
        ({"strength": math.nan}, "strength"),
        ({"penalty": "elastic-net", "mix": 1.5}, "mix"),
        ({"radius": 0.0}, "radius"),
        ({"penalty": "box"}, "low end"),
        ({"penalty": "box", "low": 1.0, "high": 0.0}, "above"),
        ({"penalty": "box", "low": math.inf}, "above"),
        ({"penalty": "box", "low": math.nan}, "above"),
        ({"penalty": "box", "low": 0.0, "strength": 1.0}, "no strength"),
        ({"penalty": "l1", "mix": 0.2}, "no mix"),
        ({"penalty": "ridge", "radius": 1.0}, "no radius"),
        ({"penalty": "ball", "low": 0.0}, "low or high"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Wanted(**wrong)  # type: ignore[arg-type]


def test_a_job_whose_rounds_are_not_over_has_nothing_to_solve() -> None:
    _, solver, state = finished()
    with pytest.raises(BadInput, match="not over"):
        solved(solver, solver.start(), Wanted("ridge"))
    assert moments_summary(solver, solver.start()) is None
    assert moments_summary(solver, state) is not None


def test_a_summary_is_plain_values_about_the_same_features() -> None:
    _, solver, state = finished()
    summary = moments_summary(solver, state)
    assert summary is not None
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    size = len(summary["features"])
    assert [each["party"] for each in summary["features"]] == ["p0"] * 4 + ["p1"] * 4 + ["p2"] * 4
    assert np.array(summary["correlations"]).shape == (size + 1, size + 1)
    assert np.allclose(np.diag(summary["correlations"]), 1.0)
    assert np.allclose(summary["correlations"], np.transpose(summary["correlations"]))
    path = summary["path"]
    assert np.array(path["coefs"]).shape == (len(path["penalties"]), size)
    assert not np.any(path["coefs"][0])
    assert np.count_nonzero(path["coefs"][-1]) > size // 2
    intervals = summary["intervals"]
    assert all(len(intervals[key]) == size for key in ("coef", "error", "low", "high"))
    assert np.all(np.array(intervals["low"]) < np.array(intervals["high"]))


def test_only_so_many_features_are_summarised_and_the_rest_is_counted() -> None:
    data = make(4000, (22,) * 6, informative=6, correlation=0.3, seed=1).data()
    spec = recommend(planned(data, 1.0)).spec
    state, _ = run(data, spec, SeededNoise(1))
    summary = moments_summary(MomentsSolver(spec, "job"), state)
    assert summary is not None
    assert len(summary["features"]) == 120
    assert summary["left_out"] == 6 * 22 - 120
    assert summary["intervals"] is None  # nothing was bought between parties
    assert summary["explained"] is None


def test_a_party_alone_has_intervals_and_nothing_to_share() -> None:
    _, solver, state = finished(parties=1, n_rows=4000)
    summary = moments_summary(solver, state)
    assert summary is not None
    assert summary["intervals"] is not None


def test_correlations_are_those_of_the_table_within_a_party() -> None:
    data, solver, state = finished()
    summary = moments_summary(solver, state)
    assert summary is not None
    exact = np.asarray(np.corrcoef(np.vstack([data.columns, data.label]) / GRID))
    found = np.array(summary["correlations"])
    # Noise of the Gram matrices is below 0.02 here, and rows beyond the ball are scaled into it,
    # which takes up to a quarter of a correlation.
    for span in (slice(0, 4), slice(4, 8), slice(8, 12)):
        assert np.allclose(found[span, span], exact[span, span], atol=0.1)
    label, true = found[-1, :-1], exact[-1, :-1]
    assert np.all(np.abs(label - 0.85 * true) < 0.15 * np.abs(true) + 0.05)
    assert np.abs(true).max() > 0.4  # so that a sign or an order gone wrong is noticed


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_is_explained_lies_within_its_error(structure: str) -> None:
    # Five tables a shape. At a coverage of 0.9 for two standard errors, more than two misses of
    # five have probability 0.009; errors are also asked to say something.
    misses = 0
    for seed in range(40, 45):
        made = make(
            20_000, (6,) * 4, informative=5, correlation=0.4, seed=seed, structure=structure
        )
        data = made.data()
        spec = recommend(planned(data, 2.0)).spec
        state, _ = run(data, spec, SeededNoise(seed), job=f"explained {seed}")
        found = explained(MomentsSolver(spec, ""), state)
        true = quality(data, model_of(spec, state), Loss.SQUARED)
        misses += abs(found.share - true) > 2.0 * found.error
        assert 0.02 < found.error < 0.2
    assert misses <= 2
