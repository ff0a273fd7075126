"""Empirical audits of the solvers' releases: under the price, and half the noise is caught."""

import math

import numpy as np
import pytest
from support.audit import CONFIDENCE, numeric_audit, range_lower_bound, rho_lower_bound
from support.entropy import ShakeNoise
from support.solvers import ROW, SMALL_CLIP, UNIT, neighbours, record, toy

from colonnade.core.arrays import IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import no_penalty, ridge
from colonnade.privacy.accounting import units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, SignedSelection
from colonnade.solvers.algorithms.admm import Admm
from colonnade.solvers.algorithms.coordinate import CoordinateDescent
from colonnade.solvers.algorithms.dual import DualDescent
from colonnade.solvers.algorithms.frank_wolfe import FrankWolfe
from colonnade.solvers.algorithms.gram import Gram
from colonnade.solvers.algorithms.greedy import GreedyDescent
from colonnade.solvers.algorithms.sgd import StochasticDescent
from colonnade.solvers.budgets import gaussian_step, plan_sampled, plan_units
from colonnade.solvers.claims import claim_of
from colonnade.solvers.designs.column_kernels import TOP
from colonnade.solvers.designs.dense import DenseDesign
from colonnade.solvers.iteration import Direct, Noiseless, Release
from colonnade.solvers.problem import plain
from colonnade.solvers.registry import SOLVERS, Solver
from colonnade.solvers.solve import solve

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


# -- the whole run, from the rows to the model --------------------------------------------------

ONE_STEP: list[Solver] = [
    CoordinateDescent(passes=1, clip=0.1, squares="bounds"),
    StochasticDescent(passes=1, batch_size="full", clip=0.01),
    Admm(iterations=1, gamma=30.0, clip=0.01, relaxation=0.5),
    DualDescent(epochs=1, batch_size=60, clip=0.01),
    DualDescent(epochs=1, batch_size=60, clip=0.01, noisy_alpha=True),
    GreedyDescent(iterations=1, clip=0.1, squares="bounds"),
    # Two steps: what the second is asked depends on what the first released.
    StochasticDescent(passes=2, batch_size="full", clip=0.01),
    Admm(iterations=2, gamma=30.0, clip=0.01, relaxation=0.5),
]
WHOLE = [
    pytest.param(solver, loss, id=f"{solver!r} {loss.name}")
    for solver in ONE_STEP
    for loss in (SQUARED, LOGISTIC, HINGE)
    if solver.refusal(plain(loss, ridge(0.1), 1)) is None
]


class HalfNoise(ShakeNoise):
    """Draws half as much noise as it is asked for: the fault that an audit must find."""

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        return super().discrete_gaussian(sigma2 // 4, size)


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize(("solver", "loss"), WHOLE)
def test_the_audit_of_a_whole_fit_stays_under_its_claim_and_catches_half_the_noise(
    solver: Solver, loss: Loss, half: bool
) -> None:
    # Neighbours differ in one row. A model is scored along the line between the two models that
    # no noise gives; the claim is rho 0.5 for the whole run, whatever it consists of.
    problem = plain(loss, ridge(0.1), 1)
    tables = neighbours(1)
    label = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    plan = plan_units(solver.parts(60, 1), units_down(0.5))
    source = HalfNoise if half else ShakeNoise
    release = Direct(source(f"whole {solver!r} {loss.name} {half}"))

    def fit(side: int, through: Release) -> float:
        found = solve(problem, tables[side], label, solver, plan=plan, release=through)
        return float(found[0])

    far = [fit(side, Noiseless()) for side in (0, 1)]
    sign = math.copysign(1.0, far[1] - far[0])
    seen = [np.array([sign * fit(side, release) for _ in range(1500)]) for side in (0, 1)]
    shown = rho_lower_bound(seen[0], seen[1])
    claim = claim_of(plan, solver, n_rows=60, delta=1e-6, private=True, enforced=False)
    assert claim.rho is not None
    assert claim.rho == pytest.approx(0.5, rel=1e-6)
    assert (shown > claim.rho) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_the_audit_of_frank_wolfes_model_stays_under_its_claim_and_catches_half_the_noise(
    loss: Loss, half: bool
) -> None:
    # One step on one feature ends at one of two vertices. The log odds of which, on either of the
    # neighbours, differ by at most the epsilon of a selection; rho 0.5 is epsilon 2. 3.3 standard
    # errors are taken off, for a risk of 5e-4.
    solver, problem, draws = FrankWolfe(iterations=1, clip=0.1), plain(loss, no_penalty(), 1), 3000
    plan = plan_units(solver.parts(60, 1), units_down(0.5))
    label = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    noise = ShakeNoise(f"vertices {loss.name} {half}")

    def release(kind, round_, mechanism, compute):  # type: ignore[no-untyped-def]
        scale = mechanism.scale // 2 if half else mechanism.scale
        return SignedSelection(scale, mechanism.sensitivity).perturb(compute(), noise)

    ups = [
        sum(
            solve(problem, table, label, solver, plan=plan, release=release)[0] > 0.0
            for _ in range(draws)
        )
        for table in neighbours(1)
    ]
    odds = abs(math.log(ups[0] * (draws - ups[1]) / (ups[1] * (draws - ups[0]))))
    error = math.sqrt(sum(1.0 / up + 1.0 / (draws - up) for up in ups))
    assert (odds - 3.3 * error > 2.0) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
def test_the_audit_of_the_mean_squares_stays_under_its_price_and_catches_half_the_noise(
    half: bool,
) -> None:
    (part, _) = CoordinateDescent(passes=10).parts(60, 3)
    right = part.make(AUDIT_UNITS)
    assert isinstance(right, DiscreteGaussian)
    used = DiscreteGaussian(right.sigma2 // 4, right.l2_sensitivity2) if half else right
    columns = toy(60, 3).design.columns
    none, most = columns.copy(), columns.copy()
    none[:, ROW], most[:, ROW] = 0, GRID
    pair = tuple(DenseDesign(each, np.full(3, UNIT)).square_sums() for each in (none, most))
    shown = numeric_audit(used, (pair[0], pair[1]), ShakeNoise(f"squares {half}"), draws=4000)
    assert (shown > 0.5) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize("kind", ["moments", "gram", "products", "step"])
def test_the_audit_of_the_gram_solvers_releases_catches_half_the_noise(
    kind: str, half: bool
) -> None:
    # A replaced row turns round (moments, products, residuals), or turns by a right angle along the
    # axes (Gram matrix): what comes near to the sensitivity, with the first table's history.
    columns = toy(60, 2).design.columns // 8
    low, high = columns.copy(), columns.copy()
    low[:, ROW], high[:, ROW] = ((GRID, 0), (0, GRID)) if kind == "gram" else (GRID, -GRID)
    tables = [DenseDesign(each, np.full(2, UNIT)) for each in (low, high)]
    labels = [(np.arange(60) == ROW) * 1.0, (np.arange(60) == ROW) * 1.0]
    if kind == "moments":
        labels[1] = -labels[1]
    solver = Gram(refinements=1, reach=0.001)  # every row is longer than the ball
    asked = record(solver, SQUARED, tables=tables, labels=labels, epsilon=900.0)
    (one, right), (two, _) = (
        next((value, mechanism) for name, mechanism, value in side if name == kind)
        for side in asked
    )
    assert isinstance(right, DiscreteGaussian)
    moved2 = sum((int(a) - int(b)) ** 2 for a, b in zip(one, two, strict=True))
    assert 0.9 * right.l2_sensitivity2 < moved2 <= right.l2_sensitivity2
    priced = DiscreteGaussian.within(AUDIT_UNITS, l2_sensitivity2=right.l2_sensitivity2)
    used = DiscreteGaussian(priced.sigma2 // 4, priced.l2_sensitivity2) if half else priced
    noise = ShakeNoise(f"gram {kind} {half}")
    shown = numeric_audit(used, (one, two), noise, draws=4000)
    assert (shown > 0.5) is half


@pytest.mark.parametrize("half", [False, True], ids=["right", "half the noise"])
@pytest.mark.parametrize("noisy_alpha", [False, True])
def test_the_audit_of_the_sequential_dual_at_its_worst_catches_half_the_noise(
    noisy_alpha: bool, half: bool
) -> None:
    # No table found here turns a whole batch round at once, so the worst pair is written down:
    # all rows point one way and move from -TOP to TOP, in v and each in its own alpha.
    solver = DualDescent(batch_size=20, sequential=True, noisy_alpha=noisy_alpha)
    (part,) = solver.parts(60, 1)
    right = part.make(AUDIT_UNITS)
    assert isinstance(right, DiscreteGaussian)
    used = DiscreteGaussian(right.sigma2 // 4, right.l2_sensitivity2) if half else right
    high = np.array([20 * TOP] + [TOP] * (20 * noisy_alpha), np.int64)
    noise = ShakeNoise(f"sequential {noisy_alpha} {half}")
    shown = numeric_audit(used, (-high, high), noise, draws=4000)
    assert (shown > 0.5) is half


def test_every_solver_is_audited() -> None:
    audited = {type(solver) for solver in (*SMALL_CLIP, *ONE_STEP)}
    assert audited == set(SOLVERS.values())
