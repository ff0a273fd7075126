"""Prices and distributions of the mechanisms."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.entropy import ScriptedNoise, ShakeNoise

from colonnade.privacy import mechanisms
from colonnade.privacy.accounting import RHO_UNIT
from colonnade.privacy.disclosure import Disclosure
from colonnade.privacy.distributed import GaussianShare, MaskingMessage
from colonnade.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    SignedSelection,
    record_of,
)
from colonnade.privacy.membership import Covered, MembershipNoise
from colonnade.privacy.person_claim import PersonClaim
from colonnade.privacy.records import MECHANISMS, mechanism_from_record
from colonnade.privacy.ring_noise import SealedCiphertext, SealedOpening, SealedReply
from colonnade.privacy.sampling import OsNoise

positive = st.integers(1, 2**60)
ANY: list[Mechanism] = [
    DiscreteGaussian(sigma2=1000, l2_sensitivity2=30),
    DiscreteLaplace(scale=40, l1_sensitivity=3),
    SignedSelection(scale=500, sensitivity=7),
    MembershipNoise(scale=2, shift=45),
    Covered(),
    SealedCiphertext(97, 4, 2, error_sigma2=22, key="ab", peers="laboratory"),
    SealedReply(2**24, 9, 16, 5, 3, 1, 2, 4, 41, 97, low_step=32, high_step=64),
    SealedOpening(2**24, 9, 16, 2, 97, low_step=32, high_step=64),
    GaussianShare(sigma2=400, parts=5, l2_sensitivity2=30, dim=3),
    MaskingMessage(),
    Disclosure("ab" * 32, "hospital", "triage", rows=7),
    PersonClaim("ab" * 16, 7),
]


@given(sigma2=positive, l2_sensitivity2=positive)
def test_gaussian_cost_is_the_smallest_integer_not_below_the_price(
    sigma2: int, l2_sensitivity2: int
) -> None:
    exact = Fraction(l2_sensitivity2 * RHO_UNIT, 2 * sigma2)
    assert exact <= DiscreteGaussian(sigma2, l2_sensitivity2).cost < exact + 1


@given(cost=st.integers(1, 2**52), l2_sensitivity2=positive)
def test_gaussian_within_a_cost_has_the_least_noise(cost: int, l2_sensitivity2: int) -> None:
    found = DiscreteGaussian.within(cost, l2_sensitivity2=l2_sensitivity2)
    assert found.cost <= cost
    if found.sigma2 > 1:
        assert DiscreteGaussian(found.sigma2 - 1, l2_sensitivity2).cost > cost


@given(cost=st.integers(2**20, 2**52), sensitivity=st.integers(1, 2**50))
def test_selection_within_a_cost_has_the_least_noise(cost: int, sensitivity: int) -> None:
    found = SignedSelection.within(cost, sensitivity=sensitivity)
    assert found.cost <= cost
    if found.scale > 1:
        # Rounding the root costs at most one part in 2**35 of the scale.
        finer = found.scale - 1 - (found.scale >> 35)
        assert finer < 1 or SignedSelection(finer, sensitivity).cost >= cost


def test_a_selection_cannot_cost_less_than_its_rounding() -> None:
    with pytest.raises(ValueError, match="so little"):
        SignedSelection.within(1, sensitivity=5)


def test_the_price_of_a_selection_is_a_quarter_of_laplace_noise_at_equal_scale() -> None:
    # Laplace report-noisy-max is epsilon-DP with epsilon = 2 Delta / b and nothing better is
    # proven than epsilon**2 / 2: four times the exponential mechanism's price.
    selection = SignedSelection(scale=10**9, sensitivity=10**7)
    laplace = Fraction(2 * 10**7, 10**9) ** 2 / 2 * RHO_UNIT
    assert float(laplace / selection.cost) == pytest.approx(4.0, rel=1e-3)


def test_laplace_cost_is_half_its_epsilon_squared() -> None:
    assert DiscreteLaplace(scale=10, l1_sensitivity=5).cost == RHO_UNIT // 8


@pytest.mark.parametrize("mechanism", ANY, ids=lambda m: record_of(m)["mechanism"])
def test_a_record_gives_the_mechanism_back(mechanism: Mechanism) -> None:
    rebuilt = mechanism_from_record(record_of(mechanism))
    assert rebuilt == mechanism
    assert rebuilt.cost == mechanism.cost


def test_every_mechanism_is_listed() -> None:
    assert {record_of(m)["mechanism"] for m in ANY} == set(MECHANISMS)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"mechanism": "none"},
        {"mechanism": "discrete_gaussian"},
        {"mechanism": "discrete_gaussian", "sigma2": 0, "l2_sensitivity2": 1},
        {"mechanism": "discrete_gaussian", "sigma2": -4, "l2_sensitivity2": 1},
        {"mechanism": "discrete_gaussian", "sigma2": "4", "l2_sensitivity2": 1},
        {"mechanism": "discrete_gaussian", "sigma2": True, "l2_sensitivity2": 1},
        {"mechanism": "discrete_gaussian", "sigma2": 4, "l2_sensitivity2": 1, "more": 1},
        {"mechanism": "signed_selection", "sigma2": 4, "l2_sensitivity2": 1},
        {**record_of(ANY[3]), "key": ""},
        {**record_of(ANY[3]), "modulus": "97"},
        {**record_of(ANY[3]), "polynomials": 0},
        {**record_of(ANY[4]), "error": "5"},
        {**record_of(ANY[5]), "move2": -9},
    ],
)
def test_a_record_of_no_mechanism_is_refused(record: dict[str, int | str]) -> None:
    with pytest.raises(ValueError, match=r"entry|positive|key"):
        mechanism_from_record(record)


@pytest.mark.parametrize("mechanism", ANY[:2], ids=lambda m: record_of(m)["mechanism"])
def test_noise_is_added_to_every_entry_and_the_input_is_left_alone(mechanism: Mechanism) -> None:
    value = np.arange(6, dtype=np.int64).reshape(2, 3)
    noisy = mechanism.perturb(value, ScriptedNoise(100))
    assert noisy.tolist() == [[100, 101, 102], [103, 104, 105]]
    assert value.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_selection_has_the_softmax_probabilities() -> None:
    scores = np.array([30, -50, 10, 0, 45], np.int64)
    mechanism, noise = SignedSelection(scale=20, sensitivity=1), ShakeNoise("softmax")
    counts = np.zeros((5, 2))
    for _ in range(40_000):
        feature, sign = mechanism.perturb(scores, noise)
        counts[feature, int(sign < 0)] += 1
    weights = np.exp(np.stack([scores, -scores], axis=1) / 20)
    expected = 40_000 * weights / weights.sum()
    # Chi-square with 9 degrees of freedom; a right sampler fails once in 10,000 seeds.
    assert stats.chisquare(counts.ravel(), expected.ravel()).pvalue > 1e-4
    # and the test can fail: at another scale it does.
    wrong = np.exp(np.stack([scores, -scores], axis=1) / 10)
    assert stats.chisquare(counts.ravel(), (40_000 * wrong / wrong.sum()).ravel()).pvalue < 1e-12


@given(
    scores=st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=40),
    scale=st.integers(1, 2**50),
)
def test_integer_weights_are_within_the_stated_error(scores: list[int], scale: int) -> None:
    value = np.array(scores, np.int64)
    weights = np.empty(2 * value.size, np.uint64)
    high, low = mechanisms._weigh(value, 1.0 / scale, weights)
    assert (int(high) << 32) + int(low) == sum(int(w) for w in weights)
    top = max(abs(s) for s in scores)
    for i, score in enumerate(scores):
        for sign, weight in ((1, weights[2 * i]), (-1, weights[2 * i + 1])):
            x = max((sign * score - top) / scale, mechanisms._LOWEST)
            exact = 2.0**62 * np.exp(x)
            # 2**-20.9 of the docstring, less the rounding of this line.
            assert abs(float(weight) / exact - 1) < 2.0**-20.9


def test_every_point_of_the_total_weight_belongs_to_its_candidate() -> None:
    weights = np.array([5, 2**40, 7, 2**62, 2**21], np.uint64)
    ends = np.cumsum([int(w) for w in weights], dtype=object)
    for candidate, end in enumerate(ends):
        for point in (end - int(weights[candidate]), end - 1):
            high, low = np.uint64(point >> 32), np.uint64(point & 0xFFFFFFFF)
            assert mechanisms._pick(weights, high, low) == candidate


def test_clipping_keeps_far_candidates_possible() -> None:
    # A score infinitely far below keeps weight 2**21 of 2**62: the last point of the range.
    mechanism = SignedSelection(scale=1, sensitivity=1)
    chosen = mechanism.perturb(np.array([10**9, 0], np.int64), ScriptedNoise(-1))
    assert chosen.tolist() == [1, -1]


@pytest.mark.parametrize("scores", [[], [2**61], [-(2**61), 0], [-(2**63), 1]])
def test_scores_that_cannot_be_handled_exactly_are_refused(scores: list[int]) -> None:
    with pytest.raises(ValueError, match="score"):
        SignedSelection(1, 1).perturb(np.array(scores, np.int64), ScriptedNoise(0))


def test_kernels_equal_their_python_functions() -> None:
    scores = np.array([3, -9, 0, 8], np.int64)
    compiled, plain = np.empty(8, np.uint64), np.empty(8, np.uint64)
    sums = mechanisms._weigh(scores, 0.4, compiled)
    again = mechanisms._weigh.py_func(scores, 0.4, plain)  # type: ignore[attr-defined]
    # Two exponentials may differ in the last place; the weights then differ by a few units.
    assert np.allclose(compiled.astype(float), plain.astype(float), rtol=2**-50)
    assert sums[0] == pytest.approx(int(again[0]), rel=2**-30)
    point = (np.uint64(int(sums[0]) // 2), np.uint64(7))
    picked = mechanisms._pick.py_func(compiled, *point)  # type: ignore[attr-defined]
    assert mechanisms._pick(compiled, *point) == picked


def test_noise_has_the_variance_that_is_paid_for() -> None:
    # 20000 draws from entropy: their mean square over sigma2 errs by sqrt(2 / 20000) = 0.01, so
    # 0.08 is eight deviations, one false alarm in 10**14; half the noise would give 0.25.
    zeros = np.zeros(20_000, np.int64)
    for mechanism in (
        DiscreteGaussian(sigma2=10_000, l2_sensitivity2=1),
        DiscreteLaplace(scale=100, l1_sensitivity=1),
    ):
        drawn = mechanism.perturb(zeros, OsNoise())
        wide = isinstance(mechanism, DiscreteLaplace)
        expected = 2.0 * 100**2 if wide else 10_000.0
        # A Laplace square has variance 5 times that of a Gaussian one.
        assert abs(np.mean(drawn.astype(float) ** 2) / expected - 1.0) < (0.18 if wide else 0.08)


def test_the_price_of_a_selection_covers_both_signs_and_the_rounding_of_weights() -> None:
    mechanism = SignedSelection(scale=1000, sensitivity=10)
    epsilon = Fraction(2 * 10, 1000) + Fraction(1, 2**18)
    assert mechanism.cost == -(-(epsilon**2 / 8 * RHO_UNIT) // 1)
