"""Federated ADMM against independent solvers: without noise it finds their optimum."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn import linear_model
from support.clients import Answer, gathered

from colonnade.core.arrays import FloatArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import (
    Penalty,
    box,
    elastic_net,
    lasso,
    no_penalty,
    ridge,
)
from colonnade.methods.admm.choices import ClientSampling
from colonnade.methods.admm.prox import ClientRows, factorise
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.simulate.admm.baselines import (
    centralised,
    dp_sgd,
    federated,
    optimum,
    token_walk,
)
from colonnade.simulate.inprocess.admm import Pool, Trouble, partition, run

N_CLIENTS, N_ROWS, N_FEATURES = 8, 160, 4
PENALTIES = (no_penalty(), lasso(0.02), ridge(0.05), elastic_net(0.05, 0.5), box(0.2))


@functools.cache
def clients(loss: Loss, *, skewed: bool = False) -> tuple[ClientRows, ...]:
    draw = np.random.default_rng(5)
    columns = draw.integers(-GRID, GRID + 1, (N_FEATURES, N_ROWS)).astype(np.int16)
    truth = np.array([0.5, -0.3, 0.0, 0.2])
    signal = truth @ columns / GRID + draw.normal(0.0, 0.2, N_ROWS)
    label = np.clip(np.rint(signal * GRID), -GRID, GRID).astype(np.int16)
    if loss is LOGISTIC:
        label = np.where(label > 0, GRID, -GRID).astype(np.int16)
    return tuple(partition(columns, label, N_CLIENTS, seed=1, skewed=skewed))


def spec_for(loss: Loss, penalty: Penalty, **changes: object) -> AdmmSpec:
    """Return a job whose clip never acts and whose grid is fine: a step is under 1e-7."""
    numbers: dict[str, object] = {
        "n_clients": N_CLIENTS,
        "n_features": N_FEATURES,
        "rounds": 300,
        "sampled": N_CLIENTS,
        "release_units": units_down(1.0),
        "gamma": 4.0 if loss is SQUARED else 20.0,
        "lipschitz": 3.0,
        "loss": loss,
        "penalty": penalty,
        "radius_bits": 30,
        "coarse": False,
    }
    return AdmmSpec(**{**numbers, **changes})  # type: ignore[arg-type]


def solved(pool: Pool) -> FloatArray:
    """Return the optimum by scikit-learn, or by SciPy for the box that it does not know."""
    penalty, n = pool.spec.penalty, len(pool.y)
    alpha = penalty.l1 + penalty.l2
    if np.isfinite(penalty.bound):
        return np.asarray(_boxed(pool))
    model: linear_model.LogisticRegression | linear_model.LinearRegression
    if pool.spec.loss is LOGISTIC:
        model = linear_model.LogisticRegression(
            C=1.0 / (n * alpha) if alpha else np.inf,
            l1_ratio=penalty.l1 / alpha if alpha else 0.0,
            solver="saga" if penalty.l1 else "newton-cholesky",
            fit_intercept=False,
            tol=1e-12,
            max_iter=100_000,
            random_state=0,
        )
    elif penalty.l1:
        model = linear_model.ElasticNet(
            alpha, l1_ratio=penalty.l1 / alpha, fit_intercept=False, tol=1e-14, max_iter=100_000
        )
    else:
        model = linear_model.Ridge(n * penalty.l2, fit_intercept=False, solver="cholesky")
    return np.ravel(model.fit(pool.rows, pool.y).coef_)


def _boxed(pool: Pool) -> FloatArray:
    bound = pool.spec.penalty.bound
    if pool.spec.loss is SQUARED:
        found = optimize.lsq_linear(pool.rows, pool.y, (-bound, bound), method="bvls", tol=1e-14)
        return np.asarray(found.x)
    limits = [(-bound, bound)] * pool.spec.dim
    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000}
    start = np.zeros(pool.spec.dim)
    found = optimize.minimize(
        pool.objective, start, jac=pool.gradient, bounds=limits, method="L-BFGS-B", options=options
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.name)
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_without_noise_it_finds_the_optimum_of_an_independent_solver(
    loss: Loss, penalty: Penalty
) -> None:
    spec = spec_for(loss, penalty)
    pool = Pool.of(clients(loss), spec)
    wanted, found = solved(pool), run(spec, clients(loss), ZeroNoise()).coef
    assert np.abs(found - wanted).max() < 1e-6
    assert pool.objective(found) <= pool.objective(wanted) + 1e-7  # a grid step from a box's side
    assert np.abs(optimum(pool) - wanted).max() < 1e-6  # the reference of the benchmarks


def test_clients_with_unlike_data_change_nothing() -> None:
    spec = spec_for(LOGISTIC, ridge(0.05), rounds=500)
    data = clients(LOGISTIC, skewed=True)
    assert len({int(client.label[0]) for client in data if np.ptp(client.label) == 0}) == 2
    found = run(spec, data, ZeroNoise()).coef
    assert np.abs(found - solved(Pool.of(data, spec))).max() < 1e-6


def test_an_intercept_is_not_penalised() -> None:
    spec = spec_for(SQUARED, ridge(0.5), intercept=True)
    data = [
        ClientRows(client.columns, np.minimum(client.label // 2 + 6000, GRID).astype(np.int16))
        for client in clients(SQUARED)
    ]
    pool = Pool.of(data, spec)
    model = linear_model.Ridge(0.5 * len(pool.y)).fit(pool.rows[:, :-1], pool.y)
    found = run(spec, data, ZeroNoise()).coef
    assert found == pytest.approx([*model.coef_, model.intercept_], abs=1e-6)


@pytest.mark.parametrize("sampling", list(ClientSampling), ids=lambda sampling: sampling.value)
def test_sampled_clients_find_the_same_optimum(sampling: ClientSampling) -> None:
    spec = spec_for(SQUARED, lasso(0.02), sampled=3, rounds=900, sampling=sampling)
    trouble = Trouble(drop_out=0.1, late=0.1)
    found = run(spec, clients(SQUARED), ZeroNoise(), seed=3, trouble=trouble).coef
    assert np.abs(found - solved(Pool.of(clients(SQUARED), spec))).max() < 1e-6


def test_noise_and_sampling_leave_the_mean_at_the_optimum() -> None:
    # Squared loss, no penalty, no clip: a round is an affine map of the state plus noise of mean
    # zero, so the mean of z over runs follows the recursion without noise, whose distance to the
    # optimum after 60 rounds is below 1e-3 of the noise. The runs are independent: each
    # coordinate's mean over 40 runs is within 4.5 standard errors of the optimum but for a chance
    # below 4 * 6e-5 (Student, 39 degrees of freedom).
    spec = spec_for(
        SQUARED, no_penalty(), sampled=4, rounds=60, radius_bits=26, lipschitz=1.0, coarse=True
    )
    data = clients(SQUARED)
    wanted = solved(Pool.of(data, spec))
    found = np.stack([run(spec, data, SeededNoise(s), seed=s).coef for s in range(40)])
    deviation = found.std(axis=0, ddof=1)
    assert deviation.min() > 0.05  # there is noise
    assert (np.abs(found.mean(axis=0) - wanted) < 4.5 * deviation / math.sqrt(40)).all()
    exact = run(spec_for(SQUARED, no_penalty(), sampled=4, rounds=60), data, ZeroNoise()).coef
    assert np.abs(exact - wanted).max() < 1e-3 * deviation.min()


def test_a_trusted_place_sees_less_noise_and_the_baselines_meet_at_the_optimum() -> None:
    spec = spec_for(LOGISTIC, ridge(0.05), rounds=150, coarse=True, radius_bits=26)
    data = clients(LOGISTIC)
    wanted = solved(Pool.of(data, spec))
    assert np.abs(centralised(data, spec, ZeroNoise()) - wanted).max() < 1e-5
    descent = dp_sgd(
        spec_for(LOGISTIC, ridge(0.05), rounds=1500), data, ZeroNoise(), rate=8.0, seed=0
    )
    assert np.abs(descent - wanted).max() < 1e-3
    noisy = spec_for(LOGISTIC, ridge(0.05), rounds=30, coarse=True, radius_bits=26, lipschitz=1.0)
    central = [centralised(data, noisy, SeededNoise(seed)) for seed in range(10)]
    apart = [run(noisy, data, SeededNoise(seed)).coef for seed in range(10)]
    # One noise instead of eight in each sum: the variance is smaller by about eight; the ratio of
    # two sample variances over 40 numbers each is above 2.5 but for a chance below 1e-3.
    spread = [np.mean((np.stack(runs) - wanted) ** 2) for runs in (central, apart)]
    assert spread[1] > 2.5 * spread[0]


def test_with_strong_noise_a_small_weight_of_the_duals_stays_nearer_to_the_optimum() -> None:
    # A long step and much noise: the duals are nearly all noise. Measured over seeds 0 to 5 the
    # gaps have means 0.024 and 0.062 and deviations 0.011 and 0.026, so that the mean of two pairs
    # differs by 0.038 with a deviation of 0.020; the seeds below are fixed.
    draw, n = np.random.default_rng(5), 300
    columns = draw.integers(-GRID, GRID + 1, (4, 3 * n)).astype(np.int16)
    signal = np.array([2.0, -1.0, 0.0, 1.0]) @ columns / GRID + draw.logistic(0.0, 0.5, 3 * n)
    label = np.where(signal > 0.0, GRID, -GRID).astype(np.int16)
    data = partition(columns, label, n, seed=1)
    spec = AdmmSpec(
        n_clients=n,
        n_features=4,
        rounds=8,
        sampled=n,
        release_units=units_down(0.5),
        gamma=10.0,
        lipschitz=0.3,
        loss=LOGISTIC,
        penalty=ridge(0.02),
    )
    pool, values = Pool.of(data, spec), []
    least = pool.objective(optimum(pool))
    for weight in (0.0, 1.0):
        job = replace(spec, dual_weight=weight)
        runs = [run(job, data, SeededNoise(seed), seed=seed).coef for seed in range(10, 12)]
        values.append(np.mean([pool.objective(coef) for coef in runs]) - least)
    assert values[1] > 1.3 * values[0] > 0.0


def test_runs_without_ledgers_are_the_job_itself() -> None:
    spec = spec_for(LOGISTIC, ridge(0.05), rounds=12, sampled=5)
    data = clients(LOGISTIC)
    quick = federated(factorise(data, spec), ZeroNoise(), seed=3)
    assert np.array_equal(quick, run(spec, data, ZeroNoise(), seed=3).coef)
    assert np.abs(quick).max() > 0.1


def test_a_walking_token_is_the_job_with_one_client_a_round() -> None:
    spec = spec_for(LOGISTIC, ridge(0.05), rounds=60, sampled=1)
    data = clients(LOGISTIC)
    coordinator = AdmmCoordinator(spec)
    state, walk = coordinator.start((3).to_bytes(32, "little")), []
    while not coordinator.finished(state):
        tasks = coordinator.tasks(state)
        walk.append(int(tasks.clients[0]))
        # Where the walk goes depends on the seed alone; any answer will do here.
        body = spec.code.encode(np.zeros(spec.dim, np.int64))
        state = coordinator.absorb(state, gathered([Answer(walk[-1], state.round, body)]))
    assert len(set(walk)) == len(data)
    walked = token_walk(factorise(data, spec), ZeroNoise(), walk)
    assert np.array_equal(walked, federated(factorise(data, spec), ZeroNoise(), seed=3))
    long = replace(spec, rounds=6000)
    draw = np.random.default_rng(0).integers(len(data), size=6000)
    wanted = solved(Pool.of(data, spec))
    found = token_walk(factorise(data, long), ZeroNoise(), draw.tolist())
    assert np.abs(found - wanted).max() < 1e-3
