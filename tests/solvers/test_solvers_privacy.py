"""What the solvers release moves as little as they claim, costs what they say, and is audited."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.ledgers import new_ledger
from support.solvers import ROW, SMALL_CLIP, UNIT, Recorder, record, resolved, toy

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.gate import Gate
from colonnade.ledger.ledger import Ledger
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import no_penalty, ridge
from colonnade.privacy.accounting import epsilon_of, rho_from_units, rho_of, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.privacy.sampling import OsNoise
from colonnade.privacy.simulation import ZeroNoise
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent, poisson_batch
from colonnade.solvers.budgets import (
    ReleasePart,
    gaussian_step,
    plan_sampled,
    plan_units,
    sampled_claim,
    sampled_epsilon,
)
from colonnade.solvers.defaults import with_defaults
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.iteration import Direct, Gated
from colonnade.solvers.problem import plain
from colonnade.solvers.registry import SOLVERS, Solver
from colonnade.solvers.solve import make_plan, solve


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
    (part,) = solver.parts(60, 3)
    assert (part.touches, part.count) == (2, 6)


@pytest.mark.parametrize("noisy_alpha", [False, True])
@pytest.mark.parametrize("sequential", [False, True])
def test_the_dual_pays_for_every_row_that_one_row_can_change(
    sequential: bool, noisy_alpha: bool
) -> None:
    # One row of a batch of L may turn itself round, or in the sequential variant all L of them:
    # each by 2 TOP in v, where they may all point the same way, and by 2 TOP in its own alpha.
    solver = DualDescent(batch_size=20, sequential=sequential, noisy_alpha=noisy_alpha)
    (part,) = solver.parts(60, 3)
    rows = 20 if sequential else 1
    worst = (2 * TOP * rows) ** 2 + noisy_alpha * rows * (2 * TOP) ** 2
    mechanism = part.make(10**9)
    assert isinstance(mechanism, DiscreteGaussian)
    assert mechanism.l2_sensitivity2 == worst


@pytest.mark.parametrize("sequential", [False, True])
def test_a_released_dual_variable_is_clipped_on_its_own(sequential: bool) -> None:
    # A row of tiny norm may move its alpha far before its part of v is long: the clip of v alone
    # would let alpha pass its own bound.
    columns = np.ones((3, 60), np.int16)
    label = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    solver = DualDescent(
        epochs=1, batch_size=20, clip=0.01, sequential=sequential, noisy_alpha=True
    )
    plan = make_plan(solver, (60, 3), epsilon=1.0, delta=1e-6)
    recorder = Recorder()
    design = DenseDesign(columns, np.full(3, UNIT))
    problem = plain(SQUARED, ridge(0.1), 3)
    solve(problem, design, label, solver, plan=plan, release=recorder)
    alphas = np.concatenate([value[3:] for _, _, value in recorder.asked])
    assert alphas.size == 60
    assert np.abs(alphas).max() <= TOP
    assert np.abs(alphas).min() > 0.99 * TOP  # every one was clipped


def test_one_row_moves_the_sums_of_squares_by_exactly_their_sensitivity() -> None:
    columns = toy(60, 3).design.columns
    none, most = columns.copy(), columns.copy()
    none[:, ROW], most[:, ROW] = 0, GRID
    units = np.full(3, UNIT)
    moved = DenseDesign(most, units).square_sums() - DenseDesign(none, units).square_sums()
    (part, _) = CoordinateDescent(passes=10).parts(60, 3)
    mechanism = part.make(10**9)
    assert isinstance(mechanism, DiscreteGaussian)
    assert sum(int(each) ** 2 for each in moved) == mechanism.l2_sensitivity2


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_a_plan_costs_at_most_its_budget_and_most_of_it(name: str) -> None:
    solver = with_defaults(SOLVERS[name](), SQUARED, (5000, 8), epsilon=1.0, delta=1e-6)
    units = units_down(rho_of(1.0, 1e-6))
    for enforced in (False, True):
        plan = plan_units(solver.parts(5000, 8), units, enforced=enforced)
        assert 0.99 * units < plan.units(enforced=enforced) <= units
        assert plan.units(enforced=True) >= plan.units(enforced=False)


def test_the_smoothness_constants_cost_a_tenth() -> None:
    plan = plan_units(CoordinateDescent(passes=10).parts(5000, 8), units_down(1.0))
    bought = plan.releases["smoothness"]
    assert rho_from_units(bought.mechanism.cost) == pytest.approx(0.1, rel=1e-6)
    assert set(
        plan_units(CoordinateDescent(passes=10, squares="bounds").parts(9, 2), 10**9).releases
    ) == {"step"}


def test_shares_that_are_no_whole_and_budgets_of_nothing_are_refused() -> None:
    (part,) = Admm().parts(10, 2)
    with pytest.raises(ValueError, match="up to 1"):
        plan_units([part, part], 10**9)
    with pytest.raises(ValueError, match="too small"):
        plan_units([ReleasePart("x", part.share, 100, 100, gaussian_step)], 99)


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
    assert StochasticDescent(batch_size=100).scale(100) == 0
    assert StochasticDescent(batch_size=10).rate(1000) <= 0.01


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_a_run_through_a_ledger_is_charged_in_full_and_replayed_for_nothing(name: str) -> None:
    settings = {
        "sgd": {"passes": 3, "batch_size": 20},
        "cd": {"passes": 2},
        "dual": {"epochs": 2, "batch_size": 30},
        "gram": {"refinements": 3},
    }
    counts = settings.get(name, {"iterations": 4})
    solver = resolved(SOLVERS[name](**counts))
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


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"sgd"}))
def test_a_killed_run_goes_on_to_the_model_of_an_unbroken_one(name: str) -> None:
    # Without noise in a simulation's ledger both are functions of the rows, so hidden state that
    # a replay forgot to move would show.
    settings: dict[str, dict[str, float]] = {
        "cd": {"passes": 4},
        "dual": {"epochs": 3, "batch_size": 30, "clip": 5.0},
        "gram": {"refinements": 8},
    }
    solver = resolved(SOLVERS[name](**settings.get(name, {"iterations": 9})))
    data = toy(100, 3)
    plan = make_plan(solver, data.design.shape, epsilon=100.0, delta=1e-6, enforced=True)
    problem = plain(SQUARED, no_penalty() if name == "frank_wolfe" else ridge(0.1), 3)
    models = []
    for breaks in ((), (2, 5)):
        ledger = new_ledger(
            "memory",
            None,  # type: ignore[arg-type]
            caps={"": plan.units(enforced=True)},
            simulation=True,
        )

        def run(stop: int, ledger: Ledger = ledger) -> FloatArray:
            def kill(step: int) -> None:
                if step == stop:
                    raise KeyboardInterrupt

            release = Gated(Gate(ledger, ZeroNoise()), "job", b"request")
            return solve(
                problem,
                data.design,
                data.target,
                solver,
                plan=plan,
                release=release,
                progress=kill,
            )

        for stop in breaks:
            with pytest.raises(KeyboardInterrupt):
                run(stop)
        models.append(run(0))
    np.testing.assert_allclose(models[0], models[1], rtol=1e-9)
    assert np.abs(models[0]).max() > 1e-3


def test_noise_drawn_ahead_is_used_once_and_is_as_large_as_asked() -> None:
    release = Direct(ShakeNoise("ahead"))
    mechanism = DiscreteGaussian(sigma2=10**6, l2_sensitivity2=1)
    seen = [
        int(release("step", k, mechanism, lambda: np.zeros(1, np.int64))[0]) for k in range(2000)
    ]
    # The sample variance of 2000 draws has a relative deviation of sqrt(2 / 2000) = 0.032.
    assert np.var(seen) == pytest.approx(10**6, rel=0.15)
    assert len(set(seen)) > 1500
