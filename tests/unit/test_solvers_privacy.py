"""What the solvers release moves as little as they claim, costs what they say, and is audited."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.audit import CONFIDENCE, numeric_audit, range_lower_bound
from support.entropy import ShakeNoise
from support.ledgers import new_ledger
from support.solvers import UNIT, Recorder, toy

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.optim.solvers.admm import Admm
from colonnade.optim.solvers.budgets import (
    Part,
    gaussian_step,
    plan_sampled,
    plan_units,
    sampled_claim,
    sampled_epsilon,
)
from colonnade.optim.solvers.column_kernels import TOP
from colonnade.optim.solvers.coordinate import CoordinateDescent
from colonnade.optim.solvers.design import DenseDesign
from colonnade.optim.solvers.dual import DualDescent
from colonnade.optim.solvers.frank_wolfe import FrankWolfe
from colonnade.optim.solvers.greedy import GreedyDescent
from colonnade.optim.solvers.iteration import Direct, Gated
from colonnade.optim.solvers.losses import LOGISTIC, SQUARED, Loss
from colonnade.optim.solvers.penalties import no_penalty, ridge
from colonnade.optim.solvers.problem import plain
from colonnade.optim.solvers.sgd import StochasticDescent, poisson_batch
from colonnade.optim.solvers.solve import SOLVERS, Solver, make_plan, solve
from colonnade.privacy.accounting import epsilon_of, rho_from_units, rho_of, units_down
from colonnade.privacy.gate import Gate
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism, SignedSelection
from colonnade.privacy.sampling import OsNoise

SMALL_CLIP: list[Solver] = [
    CoordinateDescent(passes=2, clip=0.1),
    GreedyDescent(iterations=3, clip=0.1),
    StochasticDescent(passes=3, batch=0, clip=0.01),
    FrankWolfe(iterations=3, clip=0.1),
    Admm(iterations=3, clip=0.01),
    DualDescent(epochs=2, batch=20, clip=0.01),
    DualDescent(epochs=2, batch=20, clip=0.01, noisy_alpha=True),
    DualDescent(epochs=2, batch=20, clip=0.01, sequential=True),
    DualDescent(epochs=2, batch=20, clip=0.01, sequential=True, noisy_alpha=True),
]
ROW = 7


def neighbours(n_features: int = 3) -> tuple[DenseDesign, DenseDesign]:
    """Return two tables that differ in one row, from one corner of the bounds to the other."""
    columns = toy(60, n_features).design.columns
    low, high = columns.copy(), columns.copy()
    low[:, ROW], high[:, ROW] = -GRID, GRID
    units = np.full(n_features, UNIT)
    return DenseDesign(low, units), DenseDesign(high, units)


def record(
    solver: Solver, loss: Loss, *, n_features: int = 3
) -> list[list[tuple[str, Mechanism, IntArray]]]:
    """Run on both neighbours with no noise; the second sees the first one's releases."""
    penalty = no_penalty() if isinstance(solver, FrankWolfe) else ridge(0.1)
    asked = []
    told: list[IntArray] = []
    label = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    for side, design in enumerate(neighbours(n_features)):
        recorder = Recorder()

        def release(kind, round_, mechanism, compute, recorder=recorder, side=side):  # type: ignore[no-untyped-def]
            said = recorder(kind, round_, mechanism, compute)
            if side == 0:
                told.append(said)
                return said
            return told[len(recorder.asked) - 1]  # the same history: what composition is about

        problem = plain(loss, penalty, n_features)
        plan = make_plan(solver, design.shape, epsilon=1.0, delta=1e-6)
        solve(problem, design, label, solver, plan=plan, release=release)
        asked.append(recorder.asked)
    return asked


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("solver", SMALL_CLIP, ids=repr)
def test_one_row_moves_a_release_by_at_most_the_sensitivity(solver: Solver, loss: Loss) -> None:
    low, high = record(solver, loss)
    assert len(low) == len(high)
    moved = []
    for (kind, mechanism, one), (_, _, two) in zip(low, high, strict=True):
        difference = [int(a) - int(b) for a, b in zip(two, one, strict=True)]
        if isinstance(mechanism, SignedSelection):
            assert max(abs(d) for d in difference) <= mechanism.sensitivity
            moved.append(max(abs(d) for d in difference) / mechanism.sensitivity)
        else:
            assert isinstance(mechanism, DiscreteGaussian)
            square = sum(d * d for d in difference)
            assert square <= mechanism.l2_sensitivity2, kind
            moved.append(math.sqrt(square / mechanism.l2_sensitivity2))
    # The bound is not idle: the pair comes near to it, except where the bound is for all of a batch
    # to turn round at once.
    sequential = isinstance(solver, DualDescent) and solver.sequential
    assert max(moved) > (0.03 if sequential else 0.6)


@pytest.mark.parametrize("solver", SMALL_CLIP[5:8], ids=repr)
def test_one_row_touches_one_batch_an_epoch(solver: Solver) -> None:
    low, high = record(solver, SQUARED)
    changed = sum((one != two).any() for (_, _, one), (_, _, two) in zip(low, high, strict=True))
    assert changed == 2  # epochs
    assert len(low) == 6


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_a_plan_costs_at_most_its_budget_and_most_of_it(name: str) -> None:
    solver = SOLVERS[name]()
    units = units_down(rho_of(1.0, 1e-6))
    for enforced in (False, True):
        plan = plan_units(solver.parts(5000, 8), units, enforced=enforced)
        assert 0.99 * units < plan.units(enforced=enforced) <= units
        assert plan.units(enforced=True) >= plan.units(enforced=False)


def test_the_smoothness_constants_cost_a_tenth() -> None:
    plan = plan_units(CoordinateDescent().parts(5000, 8), units_down(1.0))
    bought = plan.releases["smoothness"]
    assert rho_from_units(bought.mechanism.cost) == pytest.approx(0.1, rel=1e-6)
    assert set(plan_units(CoordinateDescent(squares="bounds").parts(9, 2), 10**9).releases) == {
        "step"
    }


def test_shares_that_are_no_whole_and_budgets_of_nothing_are_refused() -> None:
    (part,) = Admm().parts(10, 2)
    with pytest.raises(ValueError, match="add up to 1"):
        plan_units([part, part], 10**9)
    with pytest.raises(ValueError, match="too small"):
        plan_units([Part("x", part.share, 100, 100, gaussian_step)], 99)


@pytest.mark.parametrize(
    ("rate", "steps", "multiplier", "factor"),
    [
        (0.01, 1000, 1.0, 1.8),  # so little noise that high orders blow up
        (0.05, 200, 2.0, 1.5),
        (0.01, 1000, 4.0, 1.25),
        (0.3, 50, 8.0, 1.25),
    ],
)
def test_the_sampled_price_lies_between_the_exact_one_and_not_much_more(
    rate: float, steps: int, multiplier: float, factor: float
) -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    # A PLD accountant knows replacement exactly, for continuous noise. It doubles what the event
    # says under this relation (see google/differential-privacy #378), so the multiplier goes in as
    # it is: noise over the norm of one row.
    accountant = PLDAccountant(
        dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-3
    )
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(multiplier))
    accountant.compose(event, steps)
    exact = accountant.get_epsilon(1e-6)
    mine = sampled_epsilon(rate=rate, steps=steps, multiplier=multiplier, delta=1e-6)
    assert exact <= mine <= factor * exact


def test_sampling_never_costs_more_than_none() -> None:
    plain_price = epsilon_of(20 * 4.0 / (2.0 * 30.0**2), 1e-6)
    for rate in (0.9, 0.999, 1.0):
        price = sampled_epsilon(rate=rate, steps=20, multiplier=30.0, delta=1e-6)
        assert price <= plain_price


def test_calibration_and_claim_are_inverse() -> None:
    for epsilon in (0.5, 3.0):
        plan = plan_sampled("step", rate=0.02, steps=500, epsilon=epsilon, delta=1e-6)
        claim = sampled_claim(plan, "step", rate=0.02, delta=1e-6)
        assert 0.999 * epsilon < claim <= epsilon
    with pytest.raises(ValueError, match="epsilon"):
        plan_sampled("step", rate=0.02, steps=500, epsilon=0.0, delta=1e-6)


@pytest.mark.parametrize("scale", [1, 3, 40])
def test_a_poisson_batch_holds_each_row_with_its_probability(scale: int) -> None:
    noise, n_rows, draws = ShakeNoise(f"poisson {scale}"), 50, 4000
    counts = np.zeros(n_rows)
    pairs = 0
    for _ in range(draws):
        batch = poisson_batch(n_rows, scale, noise)
        counts[batch] += 1
        pairs += bool({10, 11} <= set(batch.tolist()))
    q = -math.expm1(-1.0 / scale)
    # 51 frequencies, each within 4.5 standard deviations: a risk of 51 * 7e-6.
    assert np.abs(counts / draws - q).max() < 4.5 * math.sqrt(q * (1 - q) / draws)
    assert abs(pairs / draws - q * q) < 4.5 * math.sqrt(q * q * (1 - q * q) / draws)


def test_all_rows_are_in_a_full_batch() -> None:
    np.testing.assert_array_equal(poisson_batch(5, 0, OsNoise()), np.arange(5))
    assert StochasticDescent(batch=100).scale(100) == 0
    assert StochasticDescent(batch=10).rate(1000) <= 0.01


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


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_a_run_through_a_ledger_is_charged_in_full_and_replayed_for_nothing(name: str) -> None:
    settings = {
        "sgd": {"passes": 3, "batch": 20},
        "cd": {"passes": 2},
        "dual": {"epochs": 2, "batch": 30},
    }
    counts = settings.get(name, {"iterations": 4})
    solver = SOLVERS[name](**counts)
    data = toy(100, 3)
    plan = make_plan(solver, data.design.shape, epsilon=1.0, delta=1e-6, enforced=True)
    units = plan.units(enforced=True)
    ledger = new_ledger("memory", None, caps={"": units})  # type: ignore[arg-type]
    ledger.admit("job", units=units)
    problem = plain(SQUARED, no_penalty() if name == "frank_wolfe" else ridge(0.1), 3)

    class Killed(Exception):
        """Ends a run half way."""

    def kill(step: int) -> None:
        if step == 2:
            raise Killed

    def run(progress: Callable[[int], None] | None = None) -> FloatArray:
        release = Gated(Gate(ledger, OsNoise()), "job", b"request")
        return solve(
            problem,
            data.design,
            data.target,
            solver,
            plan=plan,
            release=release,
            progress=progress,
        )

    with pytest.raises(Killed):
        run(kill)
    assert 0 < ledger.budget().spent < units
    first = run()
    assert ledger.budget().spent == units
    np.testing.assert_array_equal(run(), first)
    assert ledger.budget().spent == units


def test_noise_drawn_ahead_is_used_once_and_is_as_large_as_asked() -> None:
    release = Direct(ShakeNoise("ahead"))
    mechanism = DiscreteGaussian(sigma2=10**6, l2_sensitivity2=1)
    seen = [
        int(release("step", k, mechanism, lambda: np.zeros(1, np.int64))[0]) for k in range(2000)
    ]
    # The sample variance of 2000 draws has a relative deviation of sqrt(2 / 2000) = 0.032.
    assert np.var(seen) == pytest.approx(10**6, rel=0.15)
    assert len(set(seen)) > 1500
