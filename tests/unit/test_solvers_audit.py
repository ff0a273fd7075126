"""Empirical audits of the solvers' releases: under the price, and half the noise is caught."""

import math

import numpy as np
import pytest
from support.audit import CONFIDENCE, numeric_audit, range_lower_bound
from support.entropy import ShakeNoise
from support.solvers import SMALL_CLIP, record

from colonnade.optim.solvers.budgets import gaussian_step, plan_sampled
from colonnade.optim.solvers.column_kernels import TOP
from colonnade.optim.solvers.losses import SQUARED
from colonnade.optim.solvers.solve import Solver
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection

# An audit needs little noise to show something in few draws: rho 0.5 a release.
AUDIT_UNITS = units_down(0.5)


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize(
    "solver", [solver for solver in SMALL_CLIP if solver.name != "frank_wolfe"][:5], ids=repr
)
def test_the_audit_of_a_sum_stays_under_its_price_and_catches_half_the_noise(
    solver: Solver, half: bool
) -> None:
    low, high = record(solver, SQUARED)
    # The release that the pair moves most.
    sums = [
        (int(((two - one).astype(object) ** 2).sum()), one, two)
        for (_, mechanism, one), (_, _, two) in zip(low, high, strict=True)
        if isinstance(mechanism, DiscreteGaussian) and mechanism.l2_sensitivity2 == (2 * TOP) ** 2
    ]
    _, one, two = max(sums, key=lambda found: found[0])
    right = gaussian_step(AUDIT_UNITS)
    assert isinstance(right, DiscreteGaussian)
    used = DiscreteGaussian(right.sigma2 // 4, right.l2_sensitivity2) if half else right
    noise = ShakeNoise(f"{solver!r} {half}")
    shown = numeric_audit(used, (one, two), noise, draws=4000)
    assert (shown > 0.5) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize("solver", [SMALL_CLIP[1], SMALL_CLIP[3]], ids=repr)
def test_the_audit_of_a_selection_stays_under_its_price_and_catches_half_the_noise(
    solver: Solver, half: bool
) -> None:
    low, _ = record(solver, SQUARED, n_features=2)
    kind, mechanism, _ = low[0 if solver.name == "frank_wolfe" else 1]
    assert kind == "select"
    assert isinstance(mechanism, SignedSelection)
    sensitivity = mechanism.sensitivity
    # Two equal scores moved apart as far as one row can: what the record shows is possible.
    pair = (
        np.array([40 * sensitivity, 40 * sensitivity], np.int64),
        np.array([41 * sensitivity, 39 * sensitivity], np.int64),
    )
    used = SignedSelection(sensitivity if half else 2 * sensitivity, sensitivity)
    claim = float(SignedSelection(2 * sensitivity, sensitivity).epsilon)
    shown = range_lower_bound(used, pair, ShakeNoise(f"{solver!r} {half}"), draws=5000)
    assert (shown > claim) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
def test_the_audit_of_a_sampled_step_stays_under_its_price_and_catches_half_the_noise(
    half: bool,
) -> None:
    # One step with batches of half the rows, epsilon 3 at delta 1e-6; the row moves from -TOP to
    # +TOP. A threshold test bounds epsilon by ln((true - delta) / false), Clopper-Pearson each.
    from scipy import stats

    claim, draws = 3.0, 20_000
    plan = plan_sampled("step", rate=0.5, steps=1, epsilon=claim, delta=1e-6)
    mechanism = plan.mechanism("step")
    assert isinstance(mechanism, DiscreteGaussian)
    sigma2 = mechanism.sigma2 // (16 if half else 1)
    noise = ShakeNoise(f"sampled {half}")
    drawn = noise.discrete_gaussian(sigma2, 2 * draws).astype(float).reshape(2, draws) / TOP
    coins = noise.discrete_laplace(10, 2 * draws).reshape(2, draws) % 2
    seen = drawn + coins * np.array([[-1.0], [1.0]])
    bounds = []
    for cut in np.linspace(0.0, 2.5, 26) if half else [0.5, 1.0, 1.5]:
        false, true = (int((side > cut).sum()) for side in seen)
        false_most = stats.beta.ppf(1 - CONFIDENCE / 60, false + 1, draws - false)
        true_least = stats.beta.ppf(CONFIDENCE / 60, true, draws - true + 1)
        bounds.append(math.log((true_least - 1e-6) / false_most))
    assert (max(bounds) > claim) is half
