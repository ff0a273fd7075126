"""Empirical audits: the loss that can be shown stays under the claim, and bugs are caught.

One row is replaced, from one end of its bounds to the other, in a sketch and in a score.
"""

import numpy as np
import pytest
from support.audit import numeric_audit, range_lower_bound, rho_lower_bound
from support.entropy import ScriptedNoise, ShakeNoise

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.kernels import score
from colonnade.privacy.accounting import rho_from_units, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, SignedSelection
from colonnade.sketching.dense import HadamardSketch
from colonnade.sketching.sparse import Sketch, SparseSketch

RHO = 0.5
SKETCHES: list[Sketch] = [
    SparseSketch(b"audit", 300, 16, 1),
    SparseSketch(b"audit", 300, 16, 4),
    HadamardSketch(b"audit", 300, 16),
]


def neighbours(sketch: Sketch) -> tuple[IntArray, IntArray]:
    """Return the sketches of two columns that differ in one row as much as they can."""
    column = np.random.default_rng(1).integers(-GRID, GRID + 1, (1, 300), dtype=np.int16)
    low, high = column.copy(), column.copy()
    low[0, 77], high[0, 77] = -GRID, GRID
    return sketch.apply(low)[0], sketch.apply(high)[0]


def sketch_mechanism(sketch: Sketch) -> DiscreteGaussian:
    sensitivity2 = (2 * GRID) ** 2 * sketch.column_norm2
    return DiscreteGaussian.within(units_down(RHO), l2_sensitivity2=sensitivity2)


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_a_noisy_sketch_reveals_no_more_than_it_costs(sketch: Sketch) -> None:
    mechanism = sketch_mechanism(sketch)
    shown = numeric_audit(mechanism, neighbours(sketch), ShakeNoise("sketch"))
    assert rho_from_units(mechanism.cost) == pytest.approx(RHO)
    assert 0.5 * RHO < shown <= RHO  # the pair is the worst one: most of the loss can be shown


@pytest.mark.parametrize("sketch", SKETCHES, ids=repr)
def test_the_audit_catches_half_the_sensitivity(sketch: Sketch) -> None:
    right = sketch_mechanism(sketch)
    wrong = DiscreteGaussian(right.sigma2 // 4, right.l2_sensitivity2 // 4)
    assert wrong.cost == pytest.approx(right.cost, rel=1e-3)  # it claims the same
    assert numeric_audit(wrong, neighbours(sketch), ShakeNoise("half")) > RHO


def test_the_audit_catches_a_variance_used_as_a_deviation() -> None:
    # On a scale where sigma is 2: sigma2 = 4 asked for, 2 = sqrt(4) delivered as the variance.
    right = DiscreteGaussian(sigma2=4, l2_sensitivity2=4)
    pair = (np.zeros(1, np.int64), np.full(1, 2, np.int64))
    assert numeric_audit(right, pair, ShakeNoise("right")) <= RHO
    wrong = DiscreteGaussian(sigma2=2, l2_sensitivity2=2)
    assert wrong.cost == right.cost
    assert numeric_audit(wrong, pair, ShakeNoise("variance")) > RHO


def test_the_audit_catches_redrawn_noise() -> None:
    # Four answers to one key, averaged by the asker: half the noise for the price of one.
    mechanism = DiscreteGaussian(sigma2=10**6, l2_sensitivity2=10**6)
    pair, noise = (0, 1000), ShakeNoise("redrawn")
    idempotency_key, often = [], []
    for value in pair:
        draws = value + noise.discrete_gaussian(mechanism.sigma2, 80_000).astype(float)
        idempotency_key.append(draws[:20_000])
        often.append(draws.reshape(-1, 4).mean(axis=1))
    assert rho_lower_bound(idempotency_key[0], idempotency_key[1]) <= RHO
    assert rho_lower_bound(often[0], often[1]) > RHO


def test_laplace_noise_reveals_no_more_than_it_costs() -> None:
    pair = (np.zeros(1, np.int64), np.full(1, 100, np.int64))
    right = DiscreteLaplace(scale=100, l1_sensitivity=100)
    shown = numeric_audit(right, pair, ShakeNoise("laplace"))
    assert shown <= rho_from_units(right.cost) == RHO
    wrong = DiscreteLaplace(scale=50, l1_sensitivity=50)
    assert numeric_audit(wrong, pair, ShakeNoise("laplace half")) > RHO


def close_scores(scale_of_table: int) -> tuple[IntArray, IntArray]:
    """Return the scores of two tables that differ in one row; two features move oppositely."""
    columns = np.zeros((2, 50), np.int16)
    columns[:, 0] = (-GRID, GRID)
    other = columns.copy()
    other[:, 0] = (GRID, -GRID)
    residual = np.full(50, scale_of_table, np.int16)
    return score(columns, residual), score(other, residual)


def test_a_selection_reveals_no_more_than_it_costs_and_half_its_scale_is_caught() -> None:
    pair = close_scores(GRID)
    sensitivity = 2 * GRID * GRID
    assert int(np.abs(pair[1] - pair[0]).max()) == sensitivity
    # An offset keeps the opposite signs out of reach, as a large common score would.
    pair = (pair[0] + 20 * sensitivity, pair[1] + 20 * sensitivity)
    right = SignedSelection(scale=2 * sensitivity, sensitivity=sensitivity)
    claim = float(right.epsilon)
    shown = range_lower_bound(right, pair, ShakeNoise("select"), draws=20_000)
    # Both scores move by the sensitivity, in opposite directions: the odds move by twice that
    # over the scale, twice over, which is the whole claimed range.
    assert 0.8 * claim < shown <= claim
    wrong = SignedSelection(scale=sensitivity, sensitivity=sensitivity)
    assert range_lower_bound(wrong, pair, ShakeNoise("select half"), draws=20_000) > claim


def test_released_integers_cover_the_same_grid_for_neighbours() -> None:
    # Floating-point noise leaves marks of its input in its low bits; integers have one grid.
    sketch = SKETCHES[0]
    mechanism = sketch_mechanism(sketch)
    low, high = neighbours(sketch)
    for value in (low, high):
        seen = mechanism.perturb(np.tile(value, (500, 1)), ShakeNoise("grid"))
        assert seen.dtype == np.int64
        assert set(np.unique(seen % 16).tolist()) == set(range(16))


def test_scripted_noise_fails_the_audit() -> None:
    pair = (np.zeros(1, np.int64), np.full(1, 1000, np.int64))
    mechanism = DiscreteGaussian(sigma2=10**6, l2_sensitivity2=10**6)
    assert numeric_audit(mechanism, pair, ScriptedNoise(3)) > 10 * RHO
