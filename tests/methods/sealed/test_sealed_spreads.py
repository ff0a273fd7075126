"""What balls of rows tell of widths that few rows left uncertain."""

import numpy as np
import pytest
from support.sealed import JOB, ErrorsOnly, problem_of, small_data

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.solver.spreads import Spread, mean_noise, spread_of, uncertain
from colonnade.methods.sealed.solver.steps import SealedSolver

pytest.importorskip("seal")
from colonnade.simulate.inprocess.sealed import model_of, run
from colonnade.simulate.inprocess.vertical import quality

WEIGHT = 1.5
SURE, UNSURE = 0.0, 10.0


def seen(wide: float, wide_label: float, ball: float) -> tuple[FloatArray, float, FloatArray]:
    """Return mean squares in the ball, those of the label, and what the ball left of each."""
    made = np.random.default_rng(1).standard_normal((100_000, 11))
    rows = made * np.array([wide] * 10 + [WEIGHT * wide_label])
    inside = rows * np.minimum(1.0, ball / np.sqrt((rows**2).sum(axis=1)))[:, None]
    squares = (inside**2).mean(axis=0)
    return squares[:10], float(squares[10]), squares / (rows**2).mean(axis=0)


@pytest.mark.parametrize(("wide", "wide_label"), [(1.0, 1.0), (1.3, 0.7), (0.8, 1.7)])
@pytest.mark.parametrize("ball", [2.7, 4.0])
def test_widths_that_means_do_not_tell_are_those_of_the_columns(
    wide: float, wide_label: float, ball: float
) -> None:
    variances, label, left = seen(wide, wide_label, ball)
    found = spread_of(variances, ball, uncertain=UNSURE, label=(WEIGHT, label, UNSURE))
    # 4096 made-up rows: an error of some 2 %, which narrow balls enlarge.
    assert found.features == pytest.approx(wide, rel=0.05)
    assert found.label == pytest.approx(wide_label, rel=0.08)
    assert found.level == pytest.approx(left[:10].mean(), rel=0.1)
    assert found.label_level == pytest.approx(left[10], rel=0.16)


def test_widths_that_means_tell_are_not_touched() -> None:
    variances, label, _ = seen(1.3, 0.7, 4.0)
    found = spread_of(variances, 4.0, uncertain=SURE, label=(WEIGHT, label, SURE))
    assert found == Spread(1.0, float(variances.mean()), 1.0, label / WEIGHT**2)
    assert spread_of(np.ones(3), 2.0, uncertain=SURE, label=(0.0, 0.0, 0.0)).label == 1.0


def test_nothing_that_noise_can_make_of_a_variance_is_believed_without_end() -> None:
    for variance in (-1.0, 0.0, 1e9):
        found = spread_of(
            np.full(3, variance), 2.0, uncertain=UNSURE, label=(WEIGHT, variance, UNSURE)
        )
        assert 0.25 <= found.features <= 4.0
        assert 0.25 <= found.label <= 4.0
        assert 0.25 <= found.level <= 1.5
        assert 0.25 <= found.label_level <= 1.5


def test_the_error_of_widths_is_that_of_released_squares() -> None:
    # Squares of deviation 0.2 err by 0.008 each; four of them together by half of that.
    noise = mean_noise((8 * GRID) ** 2, 1000.0)
    assert noise == pytest.approx(0.008)
    assert uncertain(noise, np.full(4, 0.2)) == pytest.approx(0.004 / 0.08)


class MeansThatErr(ErrorsOnly):
    """No noise but on the owner's means, where it makes the label look narrower or wider."""

    def __init__(self, offset: int, size: int) -> None:
        super().__init__("means")
        self._offset, self._size, self._used = offset, size, False

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        drawn = super().discrete_gaussian(sigma2, size)
        if not self._used and sigma2 >= 100:
            assert size == self._size
            drawn[-1], self._used = self._offset, True
        return drawn


@pytest.mark.parametrize("told", [0.3, 2.5])
def test_a_label_whose_released_deviation_is_wrong_costs_little(told: float) -> None:
    data = small_data((4, 4, 4), n_rows=4000, seed=3)
    spec = recommend(problem_of(data)).spec
    variance = float((data.label / GRID).var())
    offset = round((told - 1.0) * variance * data.label.size * GRID)
    scores = []
    for noise in (ErrorsOnly("means"), MeansThatErr(offset, 10)):
        state, _ = run(data, spec, noise, job=JOB)
        scores.append(quality(data, model_of(spec, state), spec.loss))
        slope = SealedSolver(spec).in_deviations(state)
        assert np.isfinite(slope).all()
    assert scores[1] > scores[0] - 0.02
