"""From a score's moments to a logit."""

import math

import numpy as np
import pytest

from colonnade.server.methods.calibration import centred, discriminant
from colonnade.simulate.quality import probabilities


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
    assert found.slope == pytest.approx(slope, rel=1e-9)
    exact = math.log(rate / (1.0 - rate)) - slope * (high + low) / 2.0
    assert found.intercept(0.0) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("slope", [0.5, 2.0, 8.0])
def test_a_normal_score_has_the_base_rate_as_its_mean_probability(slope: float) -> None:
    points = np.random.default_rng(0).standard_normal(400_000)
    found = centred(-0.8, 0.09, slope=slope)
    score = -0.8 + 0.3 * points
    # 400,000 draws of probabilities with a deviation below 0.3: five standard errors.
    assert rate_of(found.slope * score + found.intercept(0.0)) == pytest.approx(0.1, abs=0.0025)


def test_nothing_known_gives_the_base_rate_and_numbers_stay_finite() -> None:
    nothing = discriminant(-0.8, 0.0, 0.0)
    assert nothing.constant == pytest.approx(math.log(0.1 / 0.9))
    for mean in (-1.0, 0.0, 1.0):
        for variance, covariance in ((1e-9, 1.0), (1.0, 5.0), (0.5, -0.3), (1e-30, 0.0)):
            found = discriminant(mean, variance, covariance)
            assert math.isfinite(found.intercept(0.3))
            assert found.slope > 0.0  # ranks stay


def test_doubt_lowers_confidence() -> None:
    plain, doubtful = (discriminant(0.0, 0.5, 0.5, error=error) for error in (0.0, 0.2))
    assert plain.slope == pytest.approx(2.0 / 0.5)
    assert doubtful.slope == pytest.approx(2.0 / 0.6)


def test_probabilities_are_scored_beside_the_base_rate() -> None:
    positive = np.array([True, False, False, False])
    found = probabilities(positive, np.full(4, math.log(1.0 / 3.0)))
    assert found["base_rate"] == 0.25
    assert found["mean_probability"] == pytest.approx(0.25)
    assert found["log_loss"] == pytest.approx(found["base_rate_log_loss"])
    assert probabilities(positive, np.where(positive, 800.0, -800.0))["log_loss"] == 0.0
