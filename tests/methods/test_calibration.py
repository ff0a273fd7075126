"""From a score's moments to a logit."""

import math

import numpy as np
import pytest

from colonnade.methods.calibration import discriminant, shaped
from colonnade.methods.column_moments import ColumnMoments, shared_column
from colonnade.methods.frank_wolfe import plan as frank_wolfe
from colonnade.methods.frank_wolfe.solver.scores import correlations
from colonnade.methods.made_up_scores import bounded, made_up_scores
from colonnade.methods.problem import Loss, Problem
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.evaluation.quality import probabilities
from colonnade.simulate.inprocess.vertical import grid


def rate_of(logits: np.ndarray) -> float:
    return float(np.mean(1.0 / (1.0 + np.exp(-logits))))


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.9])
def test_normal_classes_get_the_logit_that_they_have(rate: float) -> None:
    # Class means 0.4 apart, deviation 0.3: the logit is gap / within * score, and
    # log(p / q) - gap / within * (sum of class means) / 2 at 0.
    gap, within, mean = 0.4, 0.09, 2.0 * rate - 1.0
    high, low = mean + (1.0 - rate) * gap, mean - rate * gap
    variance = within + rate * (1.0 - rate) * gap**2
    found = discriminant(mean, variance, 2.0 * rate * (1.0 - rate) * gap)
    slope = gap / within
    assert found.slope == pytest.approx(slope, rel=1e-7)
    exact = math.log(rate / (1.0 - rate)) - slope * (high + low) / 2.0
    assert found.intercept(0.0) == pytest.approx(exact, abs=2e-6)


@pytest.mark.parametrize("slope", [0.5, 2.0, 8.0])
def test_a_score_has_the_base_rate_as_its_mean_probability_whatever_its_shape(slope: float) -> None:
    scores = 0.3 * np.random.default_rng(0).exponential(size=20_000)
    found = shaped(-0.8, scores, slope=slope)
    # The constant is solved for on these very scores.
    centred = -0.8 + scores - scores.mean()
    assert rate_of(found.slope * centred + found.intercept(0.0)) == pytest.approx(0.1, abs=1e-6)


def test_a_shape_is_brought_to_the_variance() -> None:
    scores = np.random.default_rng(0).exponential(size=20_000)
    once, tenfold = (
        discriminant(-0.5, 0.3, 0.25, scores=factor * scores) for factor in (1.0, 10.0)
    )
    assert once.constant == pytest.approx(tenfold.constant, abs=1e-6)
    # A long right tail moves the bulk below the mean: more is added than for normal classes.
    assert once.constant > discriminant(-0.5, 0.3, 0.25).constant + 0.1
    assert once.slope == discriminant(-0.5, 0.3, 0.25).slope


def test_a_rare_category_has_its_deviation_and_its_two_values() -> None:
    # Released deviations have a floor of 0.05; a category of one in 10,000 has 0.02.
    rare = ColumnMoments(np.array([-0.9998]), np.array([0.05]))
    assert bounded(rare).deviation[0] == pytest.approx(0.02, rel=1e-3)
    half = ColumnMoments(np.array([-0.6]), np.array([0.8]))
    scores = made_up_scores(np.array([1.0]), half)
    # One in five at 1. Draws of 16,384: five standard errors of 0.0031; few lie between.
    assert np.mean(scores > 1.0) == pytest.approx(0.2, abs=0.016)
    assert np.mean(np.abs(scores - np.median(scores)) < 0.05) + np.mean(scores > 1.5) > 0.95


def test_made_up_scores_have_the_moments_and_the_correlations_that_were_released() -> None:
    found = ColumnMoments(np.array([0.0, 0.1]), np.array([0.2, 0.2]))
    for correlation in (-0.7, 0.0, 0.7):
        matrix = np.array([[1.0, correlation], [correlation, 1.0]])
        scores = made_up_scores(np.ones(2), found, correlation=matrix)
        # A variance of 16,384 draws errs by a percent; betas of this size are nearly normal.
        assert scores.var() == pytest.approx(0.08 * (1.0 + correlation), rel=0.06)
        assert scores.mean() == pytest.approx(0.0, abs=1e-12)


def test_made_up_scores_have_two_humps_if_the_label_is_all_that_columns_have_in_common() -> None:
    many, label = 20, np.full(20, 0.7)
    matrix = np.where(np.eye(many, dtype=bool), 1.0, 0.49)
    found = ColumnMoments(np.zeros(many), np.full(many, 0.2))
    with_label, without = (
        made_up_scores(np.ones(many), found, correlation=matrix, label=each, rate=0.5)
        for each in (label, None)
    )
    # Two classes 2 * 0.7 * 20 * 0.2 apart with deviation 0.64: the kurtosis of two points is 1, of
    # a normal score 3.
    kurtosis = [np.mean(s**4) / np.mean(s**2) ** 2 for s in (with_label, without)]
    assert kurtosis[0] < 1.6
    assert kurtosis[1] > 2.7


def test_nothing_known_gives_the_base_rate_and_numbers_stay_finite() -> None:
    nothing = discriminant(-0.8, 0.0, 0.0)
    assert nothing.constant == pytest.approx(math.log(0.1 / 0.9), rel=1e-6)
    for mean in (-1.0, 0.0, 1.0):
        for variance, covariance in ((1e-9, 1.0), (1.0, 5.0), (0.5, -0.3), (1e-30, 0.0)):
            found = discriminant(mean, variance, covariance)
            assert math.isfinite(found.intercept(0.3))
            assert found.slope > 0.0  # ranks stay


def test_doubt_lowers_confidence() -> None:
    plain, doubtful = (discriminant(0.0, 0.5, 0.5, error=error) for error in (0.0, 0.2))
    assert plain.slope == pytest.approx(2.0 / 0.5, rel=1e-6)
    assert doubtful.slope == pytest.approx(2.0 / 0.6, rel=1e-6)


def test_probabilities_are_scored_beside_the_base_rate() -> None:
    positive = np.array([True, False, False, False])
    found = probabilities(positive, np.full(4, math.log(1.0 / 3.0)))
    assert found["base_rate"] == 0.25
    assert found["mean_probability"] == pytest.approx(0.25)
    assert found["log_loss"] == pytest.approx(found["base_rate_log_loss"])
    assert probabilities(positive, np.where(positive, 800.0, -800.0))["log_loss"] == 0.0


def test_correlations_follow_from_shared_sketches_and_nothing_else() -> None:
    rows, draw = 4_000, np.random.default_rng(3)
    common = draw.standard_normal(rows)
    columns = np.stack([common, common, draw.standard_normal(rows)])
    columns[:2] += 0.5 * draw.standard_normal((2, rows))  # a correlation of 0.8
    problem = Problem(
        n_rows=rows,
        features={"a": ["x", "y"], "b": ["z"]},
        rho_units=units_down(rho_of(1000.0, 1e-6)),
        loss=Loss.LOGISTIC,
    )
    spec = frank_wolfe.recommend(problem).spec
    assert spec.share_units > 0
    sketch = spec.sketch("job")
    mechanism, code = spec.share(sketch)
    shared = [shared_column(x, 0.0, 0.25, spec.share_clip) for x in grid(columns / 4.0)]
    exact = sketch.apply(np.stack(shared))
    noise = SeededNoise(1).discrete_gaussian(mechanism.sigma2, exact.size).reshape(exact.shape)
    bodies = [code.encode(row) for row in exact + noise]
    found = correlations(spec, sketch, bodies)
    assert found[0, 1] > 0.5
    assert abs(found[0, 2]) < 0.2
    assert np.array_equal(correlations(spec, sketch, [bodies[0], b"", bodies[2]])[1], [0, 1, 0])
