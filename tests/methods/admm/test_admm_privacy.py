"""What a client of federated ADMM reveals: the bound holds for any task, and audits watch it."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit import rho_lower_bound
from support.clients import tasks_of
from support.entropy import ShakeNoise

from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.methods.admm.choices import Variant
from colonnade.methods.admm.grid import exceeds, to_grid
from colonnade.methods.admm.kernels import newton
from colonnade.methods.admm.prox import TOLERANCE, ClientRows, factorise
from colonnade.methods.admm.releases import WHOLE
from colonnade.methods.admm.spec import MAX_V, AdmmSpec
from colonnade.privacy.accounting import rho_from_units, units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.simulate.inprocess.admm import make_host

RHO = 0.5


def norm2(vector: IntArray) -> int:
    """Return the squared norm in integers without end."""
    return sum(int(entry) ** 2 for entry in vector)


def gridded(values: list[float] | FloatArray, radius: int) -> IntArray:
    out = np.full(len(values), -7, np.int64)
    to_grid(np.array(values, np.float64), radius, out)
    return out


# -- the clip ------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=40),
    st.integers(8, 30),
)
def test_any_floats_become_integers_within_the_radius(values: list[float], bits: int) -> None:
    radius = 2**bits
    out = gridded(values, radius)
    assert norm2(out) <= radius**2
    if not np.isfinite(values).all():
        assert not out.any()
    for entry, value in zip(out, values, strict=True):
        assert entry == 0 or (abs(int(entry)) <= abs(value) and (entry > 0) == (value > 0))


@pytest.mark.parametrize("bits", [8, 26, 30])
def test_the_norm_is_checked_in_integers_after_the_clip(bits: int) -> None:
    # (R, 1) is longer than R by less than a double can tell when R is 2**27 or more.
    radius = 2**bits
    for values in ([radius, 1.0], [1.0, -radius, 1.0], [radius / 2] * 4 + [1.0]):
        out = gridded(values, radius)
        assert norm2(out) <= radius**2
        assert norm2(out) > 0.98 * radius**2
    assert gridded([0.99, -0.99, 5.99, -5.99], radius).tolist() == [0, 0, 5, -5]  # towards zero
    assert gridded([radius, 0.0], radius).tolist() == [radius, 0]  # attained


@settings(max_examples=300)
@given(st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=30), st.integers(8, 30))
def test_norms_are_compared_exactly(vector: list[int], bits: int) -> None:
    array = np.array(vector, np.int64)
    assert bool(exceeds(array, 2**bits)) == (norm2(array) > 4**bits)
    assert exceeds(array, 2**bits) == exceeds.py_func(array, 2**bits)  # type: ignore[attr-defined]


def test_many_large_entries_do_not_overflow_the_comparison() -> None:
    assert exceeds(np.full(2**16, 2**30, np.int64), 2**30)
    assert exceeds(np.full(64, 2**28, np.int64), 2**30)  # their plain sum of squares is 2**62
    assert not exceeds(np.full(16, 2**28, np.int64), 2**30)
    assert exceeds(np.array([2**28] * 16 + [1]), 2**30)


def logistic_problem(rows: int, dim: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(rows, dim)), np.sign(draw.normal(size=rows))


def test_the_compiled_solver_agrees_with_its_python() -> None:
    B, y = logistic_problem(9, 4)
    q, compiled, plain = np.array([0.3, -1.0, 2.0, 0.1]), np.empty(4), np.empty(4)
    norm = newton(B, y, q, 3.0, compiled)
    assert norm == pytest.approx(newton.py_func(B, y, q, 3.0, plain), abs=1e-12)  # type: ignore[attr-defined]
    assert compiled == pytest.approx(plain, rel=1e-12)
    assert norm < 1e-12
    assert np.abs(compiled).max() > 0.1


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9, 1e15])
def test_the_solver_ends_for_absurd_points(size: float) -> None:
    B, y = logistic_problem(20, 6, seed=1)
    c = np.empty(6)
    newton(B, y, size * np.random.default_rng(2).normal(size=6), 100.0, c)
    assert np.isfinite(c).all()


@pytest.mark.parametrize("gamma", [0.1, 3.0, 30.0, 100.0])
def test_the_solvers_steps_suffice(gamma: float) -> None:
    # Random and separable labels, long and short rows, near and far points.
    draw = np.random.default_rng(4)
    for rows, dim, scale, far in ((1, 5, 1.0, 1.0), (60, 5, 1.0, 30.0), (200, 20, 0.1, 1e4)):
        A = draw.uniform(-scale, scale, (rows, dim))
        for y in (np.sign(draw.normal(size=rows)), np.sign(A @ draw.normal(size=dim))):
            c = np.empty(dim)
            assert newton(A, y, far * draw.normal(size=dim), gamma, c) < TOLERANCE * 0.01


# -- any task on neighbouring clients ------------------------------------------------------------

grid_values = st.one_of(st.sampled_from([-GRID, 0, GRID]), st.integers(-GRID, GRID))
hostile_values = st.one_of(
    st.sampled_from([-MAX_V, MAX_V, 0, 1]), st.integers(-MAX_V, MAX_V), st.integers(-(2**27), 2**27)
)


@st.composite
def any_client(draw: st.DrawFn) -> ClientRows:
    count = draw(st.integers(1, 6))
    cells = draw(st.lists(grid_values, min_size=3 * count, max_size=3 * count))
    label = draw(st.lists(grid_values, min_size=count, max_size=count))
    return ClientRows(np.array(cells, np.int16).reshape(3, count), np.array(label, np.int16))


@settings(max_examples=250, deadline=None)
@given(
    a=any_client(),
    b=any_client(),
    v=st.lists(hostile_values, min_size=4, max_size=4),
    loss=st.sampled_from([SQUARED, LOGISTIC]),
    gamma=st.sampled_from([2.0**-40, 1e-3, 1.0, 1e4, 2.0**40]),
    lipschitz=st.sampled_from([2.0**-40, 0.01, 1.0, 2.0**40]),
    bits=st.sampled_from([8, 26, 30]),
)
def test_no_task_moves_neighbouring_clients_further_apart_than_the_price_assumes(
    a: ClientRows,
    b: ClientRows,
    v: list[int],
    loss: Loss,
    gamma: float,
    lipschitz: float,
    bits: int,
) -> None:
    spec = AdmmSpec(
        n_clients=2,
        n_features=3,
        rounds=1,
        sampled=1,
        release_units=units_down(RHO),
        gamma=gamma,
        lipschitz=lipschitz,
        loss=loss,
        intercept=True,
        radius_bits=bits,
    )
    tasks = tasks_of(*((client, 1, np.array(v, np.int64)) for client in (0, 1)))
    with np.errstate(all="raise", under="ignore"):
        moved = factorise([a, b], spec).displacements(np.arange(2), tasks.points)
    assert max(norm2(moved[0]), norm2(moved[1])) <= spec.radius**2
    assert norm2(moved[0] - moved[1]) <= spec.mechanism.l2_sensitivity2


@settings(max_examples=250, deadline=None)
@given(
    a=any_client(),
    b=any_client(),
    v=st.lists(hostile_values, min_size=4, max_size=4),
    radius=st.sampled_from([1, 2**20, MAX_V]),
    loss=st.sampled_from([SQUARED, LOGISTIC]),
    variant=st.sampled_from([Variant.PLANNED, Variant.GRADIENT]),
    gamma=st.sampled_from([2.0**-40, 1.0, 2.0**40]),
    part=st.sampled_from([1, 300, WHOLE]),
)
def test_no_round_of_a_plan_moves_neighbouring_clients_further_apart_than_it_costs(
    a: ClientRows,
    b: ClientRows,
    v: list[int],
    radius: int,
    loss: Loss,
    variant: Variant,
    gamma: float,
    part: int,
) -> None:
    plan: dict[str, Any] = {}
    if variant is Variant.PLANNED:
        plan = {"radii": (part,), "intercept_rounds": 1, "intercept_units": units_down(RHO)}
        plan["client_rows"] = 5
    spec = AdmmSpec(
        n_clients=2,
        n_features=3,
        rounds=2,
        sampled=1,
        release_units=units_down(RHO),
        gamma=gamma,
        lipschitz=0.01,
        loss=loss,
        intercept=True,
        variant=variant,
        **plan,
    )
    problems = factorise([a, b], spec)
    for round_ in (1, 2):
        release = spec.release(round_)
        point = np.array([*v, radius][: spec.point_size(round_)], np.int64)
        with np.errstate(all="raise", under="ignore"):
            moved = problems.displacements(np.arange(2), np.stack([point] * 2), round_=round_)
        assert max(norm2(moved[0]), norm2(moved[1])) <= release.radius**2
        assert norm2(moved[0] - moved[1]) <= release.mechanism.l2_sensitivity2
        assert release.radius == spec.radius * (part if plan and round_ == 1 else WHOLE) // WHOLE


@pytest.mark.parametrize(
    "v",
    [
        np.full(3, MAX_V + 1),
        np.full(3, -MAX_V - 1),
        np.full(3, np.iinfo(np.int64).min),
        np.zeros(3),
        np.zeros((1, 3), np.int64),
    ],
    ids=lambda v: f"{v.dtype}{v.shape}{v.flat[0]}",
)
def test_a_task_out_of_bounds_never_becomes_one(v: IntArray) -> None:
    with pytest.raises(ValueError, match="task"):
        tasks_of((0, 1, v))


# -- audits --------------------------------------------------------------------------------------


class Scaled:
    """Noise of another size than was asked for."""

    def __init__(self, noise: NoiseSource, divisor: int) -> None:
        self._noise, self._divisor = noise, divisor

    def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
        return self._noise.discrete_gaussian(sigma2 // self._divisor, size)

    def discrete_laplace(self, scale: int, size: int) -> IntArray:
        return self._noise.discrete_laplace(scale, size)

    def below(self, bound: int) -> int:
        return self._noise.below(bound)


def shown(noise: NoiseSource, *, runs: int = 4000) -> float:
    """Bound from below the rho of one client's releases, on the pair that the clip sets apart.

    The client has one row with feature ``GRID`` and label ``+-GRID``. Its displacement from 0 is
    longer than ``gamma L``, so that the clip leaves ``+-R``. Every run is a release of its own.
    """
    spec = AdmmSpec(
        n_clients=2,
        n_features=2,
        rounds=runs,
        sampled=1,
        release_units=units_down(RHO),
        gamma=1.0,
        lipschitz=0.1,
    )
    columns = np.array([[GRID], [0]], np.int16)
    pair = [ClientRows(columns, np.array([sign * GRID], np.int16)) for sign in (-1, 1)]
    host = make_host(spec, pair, noise, job="audit")
    at = np.zeros(2, np.int64)
    exact = host.problems.displacements(np.arange(2), np.stack([at, at]))
    assert exact.tolist() == [[-spec.radius, 0], [spec.radius, 0]]
    scores: list[FloatArray] = []
    for client, name in enumerate(host.accounts):
        replies = [host.answer(tasks_of((client, run, at))) for run in range(1, runs + 1)]
        bodies = [each.body for reply in replies for each in reply]
        scores.append(np.array([spec.code.decode(body)[0] for body in bodies], float))
        paid = host.ledger.budget(name).spent
        assert rho_from_units(paid) == pytest.approx(runs * RHO)
    return rho_lower_bound(scores[0], scores[1])


@pytest.mark.slow
def test_a_release_reveals_no_more_than_it_costs() -> None:
    # With 2000 held-out runs a side the bound loses about a third of a true 0.5.
    assert 0.2 * RHO < shown(ShakeNoise("admm")) <= RHO


@pytest.mark.slow
def test_the_audit_catches_half_the_noise() -> None:
    assert shown(Scaled(ShakeNoise("admm half"), 4)) > RHO


def test_a_fine_code_reveals_no_more_than_a_coarse_one_costs() -> None:
    # Coarsening comes after the noise: the price does not depend on it.
    numbers = {"n_clients": 1, "n_features": 2, "rounds": 1, "sampled": 1}
    units = units_down(RHO)
    coarse = AdmmSpec(**numbers, release_units=units, gamma=1.0, lipschitz=1.0)  # type: ignore[arg-type]
    fine = AdmmSpec(**numbers, release_units=units, gamma=1.0, lipschitz=1.0, coarse=False)  # type: ignore[arg-type]
    assert coarse.mechanism == fine.mechanism
    assert coarse.body_bytes < fine.body_bytes
    noisy = np.array([12345, -54321], np.int64)
    assert np.array_equal(fine.code.decode(fine.code.encode(noisy)), noisy)
    error = np.abs(coarse.code.decode(coarse.code.encode(noisy)) - noisy).max()
    assert error <= math.isqrt(coarse.mechanism.sigma2) // 8 + 1
