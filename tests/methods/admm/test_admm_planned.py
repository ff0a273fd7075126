"""The planned variant: prices, steps with a client's own intercept, the filter, sums of a host."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from support.clients import tasks_of
from support.entropy import ShakeNoise

from colonnade.client import AdmmOptions
from colonnade.client.admm_planning import admm_spec, check_admm
from colonnade.core.arguments import BadArgument
from colonnade.core.arrays import FloatArray, IntArray
from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import GRID
from colonnade.linear.losses import LOGISTIC, SQUARED, Loss
from colonnade.methods.admm.choices import Aggregate, Variant
from colonnade.methods.admm.packing import unpack_many
from colonnade.methods.admm.plan import planned_prices
from colonnade.methods.admm.prox import ClientRows, factorise
from colonnade.methods.admm.recipe import (
    GAMMA,
    Caution,
    Filter,
    InterceptAnswers,
    constants_of,
    next_intercept,
    planned_radii,
    relaxation,
)
from colonnade.methods.admm.releases import DISPLACEMENT, INTERCEPT
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.privacy.accounting import RHO_UNIT, rho_from_units, rho_of, units_down
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.methods.admm.state import (
    SEED_BYTES,
    AdmmState,
    decode_change,
    decode_state,
    encode_change,
    encode_state,
)
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.simulate.admm.baselines import federated, optimum
from colonnade.simulate.inprocess.admm import Pool, Trouble, make_host, run

FEATURES = 3


def planned(*, clients: int = 20, loss: Loss = SQUARED, **changes: Any) -> AdmmSpec:
    options = AdmmOptions(epsilon=8.0, loss=loss.name, rounds=4, expected_rows=12)
    return replace(admm_spec(options, clients=clients, features=FEATURES), **changes)


def alike(count: int, *, loss: Loss = SQUARED, rows: int = 12, seed: int = 0) -> list[ClientRows]:
    """Return clients whose rows follow one model, with an intercept of 0.2."""
    draw, made = np.random.default_rng(seed), []
    coef = np.array([0.5, -0.3, 0.2])
    for _ in range(count):
        X = draw.uniform(-1.0, 1.0, (FEATURES, rows))
        y = coef @ X + 0.2 + 0.1 * draw.normal(size=rows)
        if loss.classifies:
            y = np.where(draw.random(rows) < 1.0 / (1.0 + np.exp(-6.0 * y)), 1.0, -1.0)
        grid = [np.rint(np.clip(each, -1.0, 1.0) * GRID).astype(np.int16) for each in (X, y)]
        made.append(ClientRows(*grid))
    return made


def asked(round_: int, clients: Sequence[int], point: IntArray, *, step: int = 0) -> ClientTasks:
    return replace(tasks_of(*((client, round_, point) for client in clients)), step=step)


# -- prices --------------------------------------------------------------------------------------


def test_every_radius_has_one_price_one_size_and_noise_in_proportion() -> None:
    spec = planned()
    assert spec.radii[0] == 1024
    assert spec.radii[-1] < 1024
    first = spec.release(1)
    for round_ in range(1, spec.steps + 1):
        release = spec.release(round_)
        assert release.mechanism.l2_sensitivity2 == (2 * release.radius) ** 2  # exactly
        assert release.cost == first.cost <= spec.release_units
        # Half the noise, or a quarter of the variance, would cost four times this.
        exact = 4 * release.radius**2 * RHO_UNIT / (2 * release.mechanism.sigma2)
        assert exact == pytest.approx(spec.release_units, rel=1e-6)
        assert (release.code.n_bytes, release.code.dim) == (first.code.n_bytes, FEATURES + 1)
    last = spec.release(spec.rounds)
    assert (last.kind, last.code.dim) == (INTERCEPT, 1)
    assert last.mechanism.l2_sensitivity2 == (2 * spec.radius) ** 2


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 100.0])
def test_displacements_and_the_intercept_keep_within_epsilon(epsilon: float) -> None:
    options = AdmmOptions(epsilon=epsilon, delta=1e-6)
    spec = admm_spec(options, clients=500, features=10)
    budget = rho_of(epsilon, 1e-6)
    assert 0.999 * budget < rho_from_units(spec.max_units) <= budget
    assert spec.max_units == 2 * spec.release_units + spec.intercept_units
    assert spec.intercept_units / spec.max_units <= 0.3


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (AdmmOptions(dual_weight=1.0), "dual_weight"),
        (AdmmOptions(step=0.5), "step"),
        (AdmmOptions(variant="paper", clients="different"), "clients"),
        (AdmmOptions(variant="paper", aggregate="host"), "aggregate"),
        (AdmmOptions(variant="paper", expected_rows=5), "expected_rows"),
        (AdmmOptions(expected_rows=0), "expected_rows"),
        (AdmmOptions(variant="pope"), "variant"),
    ],
)
def test_options_of_another_variant_are_refused_by_name(options: AdmmOptions, name: str) -> None:
    with pytest.raises(BadArgument) as refused:
        check_admm(options)
    assert refused.value.parameter == name


# -- what a client computes ----------------------------------------------------------------------


def rows_of(client: ClientRows, loss: Loss) -> tuple[FloatArray, FloatArray]:
    y = client.label / GRID
    return client.columns.T / GRID, np.where(y > 0, 1.0, -1.0) if loss.classifies else y


@pytest.mark.parametrize("rows", [2, 12])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_a_step_leaves_the_clients_own_intercept_free(loss: Loss, rows: int) -> None:
    spec = planned(loss=loss, gamma=1.0, lipschitz=100.0)  # so that nothing is clipped
    client = alike(1, loss=loss, rows=rows)[0]
    X, y = rows_of(client, loss)
    w, b = np.array([0.3, 0.1, -0.2]), -0.4

    def losses(margins: FloatArray) -> float:
        if loss.classifies:
            return float(np.logaddexp(0.0, -y * margins).mean())
        return float(((margins - y) ** 2).mean()) / 2.0

    def prox(x: FloatArray) -> float:
        held = x[3] ** 2 / 8.0 if loss.classifies else 0.0
        return losses(X @ (w + x[:3]) + b + x[3]) + float(x[:3] @ x[:3]) / (2 * spec.gamma) + held

    def own(x: FloatArray) -> float:
        return losses(X @ w + b + x[0]) + (x[0] ** 2 / (8 * rows) if loss.classifies else 0.0)

    moved = optimize.minimize(prox, np.zeros(4), tol=1e-12).x[:3]
    best = float(optimize.minimize(own, np.zeros(1), tol=1e-12).x[0])
    point = np.rint(np.array([*w, 2 * b]) / spec.unit).astype(np.int64)
    problems = factorise([client], spec)
    found = problems.displacements(np.zeros(1, np.int64), point[None])[0] * spec.unit
    # Three Newton steps from nothing, of a logistic loss under a strong ridge. A short step of
    # the logistic loss is lengthened.
    assert relaxation(loss, spec.gamma) == (10.0 if loss.classifies else 1.0)
    moved *= relaxation(loss, spec.gamma)
    assert found[:3] == pytest.approx(moved, abs=2e-2 if loss.classifies else 1e-5)
    assert found[3] == pytest.approx(2 * best, abs=1e-4)
    # The same number alone, in parts of a radius that the task names.
    radius = round(10.0 / spec.unit)
    ask = np.append(point, radius)[None]
    alone = problems.displacements(np.zeros(1, np.int64), ask, round_=spec.rounds)[0, 0]
    assert alone * 10.0 / spec.radius == pytest.approx(best, abs=1e-4)


# -- the filter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.2, 0.7])
def test_gains_are_those_that_leave_the_least_expected_distance(radius: float) -> None:
    noise2, dim, answers = 0.01, 10, 50
    state = Filter.start(SQUARED, dim=dim, rows=40)
    slope = radius / constants_of(SQUARED).length  # of an answer whose expected length is C0

    def left(gain: float) -> float:
        a, r2 = state.alignment * slope, state.distance2
        return (1.0 - a * gain) ** 2 * r2 + gain**2 * dim * noise2

    def unknown(gain: float) -> float:
        spread2 = noise2 / 4.0 + slope**2 * state.own2 / answers
        return (1.0 - slope * gain) ** 2 * state.intercept2 + gain**2 * spread2

    gains = state.gain(dim, noise2, radius), state.intercept_gain(noise2, radius, answers)
    for gain, cost in zip(gains, (left, unknown), strict=True):
        assert all(cost(gain) <= cost(gain * factor) for factor in (0.5, 0.9, 1.1, 2.0))
    after = state.after(noise2, radius, dim=dim, answers=answers)
    assert after.distance2 == pytest.approx(left(gains[0]))
    assert after.intercept2 == pytest.approx(unknown(gains[1]))


def test_radii_fall_to_their_floor_and_faster_with_less_noise() -> None:
    numbers: dict[str, Any] = {"dim": 10, "rows": 50, "steps": 10, "sampled": 100, "rho": 0.4}
    many = planned_radii(SQUARED, first=0.7, noises=100, **numbers)
    one = planned_radii(SQUARED, first=0.7, noises=1, **numbers)
    assert many[0] == one[0] == 1024
    assert list(many) == sorted(many, reverse=True)
    assert all(a <= b for a, b in zip(one, many, strict=True))
    assert one[-1] == math.ceil(0.3 * 1024)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_steps_are_short_and_radii_tight_where_noise_dominates(loss: Loss) -> None:
    sizes: dict[str, Any] = {"dim": 30, "rows": 15, "sampled": 100, "noises": 100}
    calm, loud = (Caution.of(loss, rho=rho, **sizes) for rho in (100.0, 0.01))
    length = constants_of(loss).length
    assert calm.gamma == pytest.approx(GAMMA, rel=0.01)
    assert calm.radius == pytest.approx(length, rel=0.01)
    assert loud.radius == length / 2.0
    assert loud.gamma == pytest.approx(3.0 if loss.classifies else GAMMA)


@pytest.mark.parametrize(("dim", "share"), [(1, 0.1), (30, 0.15), (1000, 0.15)])
def test_an_intercept_never_takes_much_from_many_columns(dim: int, share: float) -> None:
    # By the share: 0.1 (1 + 2 dim / (clients rho)), with rho 0.067 and at most 0.15.
    prices = planned_prices(2.0, 1e-6, participations=2, clients=500, dim=dim)
    whole = 2 * prices.release_units + prices.intercept_units
    assert prices.intercept_units / whole == pytest.approx(share, rel=0.07)


@pytest.mark.parametrize("wanted", [0.0, 0.8])
def test_displacements_lead_to_the_intercept_before_it_is_asked(wanted: float) -> None:
    # No column explains the labels: all there is to learn is their logit.
    rate = 1.0 / (1.0 + math.exp(-wanted))
    draw, clients = np.random.default_rng(8), []
    for _ in range(400):
        X = np.rint(draw.uniform(-1.0, 1.0, (FEATURES, 40)) * GRID).astype(np.int16)
        y = np.where(draw.random(40) < rate, GRID, -GRID).astype(np.int16)
        clients.append(ClientRows(X, y))
    options = AdmmOptions(epsilon=4.0, loss="logistic", rounds=10, expected_rows=40)
    spec = admm_spec(options, clients=400, features=FEATURES)
    seen = list[float]()

    def look(after: AdmmState) -> None:
        if after.round == spec.steps + 1:
            seen.append(float(after.z[-1]) * spec.unit / 2.0)

    run(spec, clients, SeededNoise(3), seed=3, on_round=look)
    known = Filter.start(LOGISTIC, dim=spec.dim, rows=40)
    first = spec.gamma * spec.lipschitz
    for round_ in range(1, spec.steps + 1):
        radius = spec.radii[round_ - 1] / 1024 * first
        sigma2 = float(spec.release(round_).mechanism.sigma2) * spec.unit**2
        known = known.after(sigma2 / spec.sampled, radius, dim=spec.dim, answers=spec.sampled)
    # Within three of the deviations that the filter itself expects.
    assert abs(seen[0] - wanted) < 3.0 * known.intercept2**0.5 < 0.6


def test_the_intercept_is_found_although_answers_are_clipped() -> None:
    # Own intercepts lie around 0.2, beyond the first radius around 0.
    answers: list[InterceptAnswers] = []
    for _ in range(5):
        at, radius = next_intercept(SQUARED, 50, 0.0, 0.1, answers)
        answers.append(InterceptAnswers(at, radius, min(radius, 0.2 - at), 100, 1e-6))
    assert abs(answers[0].mean) == answers[0].radius
    found, _ = next_intercept(SQUARED, 50, 0.0, 0.1, answers)
    assert found == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
def test_without_noise_the_plan_meets_the_optimum_of_clients_that_are_alike(loss: Loss) -> None:
    clients = alike(60, loss=loss, rows=40)
    options = AdmmOptions(epsilon=100.0, loss=loss.name, rounds=10, regulariser="none")
    spec = replace(admm_spec(options, clients=60, features=FEATURES), coarse=False)
    pool = Pool.of(clients, spec)
    best = optimum(pool)
    found = federated(factorise(clients, spec), ZeroNoise())
    gap = pool.objective(found) - pool.objective(best)
    assert gap < 0.02 * (pool.objective(np.zeros(spec.dim)) - pool.objective(best))


def test_clients_sorted_by_label_are_learnt_by_gradients_and_not_by_the_plan() -> None:
    clients = alike(400, rows=10, seed=3)
    columns = np.concatenate([client.columns for client in clients], axis=1)
    label = np.concatenate([client.label for client in clients])
    order = np.argsort(label, kind="stable").reshape(100, -1)
    skewed = [ClientRows(np.ascontiguousarray(columns[:, part]), label[part]) for part in order]
    scores = {}
    for likeness in ("alike", "different"):
        options = AdmmOptions(epsilon=60.0, clients=likeness, rounds=20)
        spec = admm_spec(options, clients=100, features=FEATURES)
        coef = federated(factorise(skewed, spec), SeededNoise(1), seed=1)
        scores[likeness] = Pool.of(clients, spec).score(coef)
    assert spec.variant is Variant.GRADIENT
    # Each client sees one value of the label, so that own intercepts explain nearly all of it.
    assert scores["different"] > 0.6 > 0.3 > scores["alike"]


# -- resuming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [Variant.PLANNED, Variant.GRADIENT])
@pytest.mark.parametrize("aggregate", [Aggregate.NONE, Aggregate.HOST])
def test_states_that_are_read_back_lead_to_the_same_bits(
    variant: Variant, aggregate: Aggregate
) -> None:
    spec = replace(planned(), aggregate=aggregate)
    if variant is Variant.GRADIENT:
        options = AdmmOptions(clients="different", rounds=5, aggregate=aggregate.value)
        spec = admm_spec(options, clients=20, features=FEATURES)
    trouble = Trouble(drop_out=0.3, late=0.2 if aggregate is Aggregate.NONE else 0.0)
    done = run(spec, alike(20), SeededNoise(2), seed=4, trouble=trouble)
    coordinator = AdmmCoordinator(spec)
    state = decode_state(encode_state(coordinator.start((4).to_bytes(SEED_BYTES, "little"))))
    for said in done.log:
        after = coordinator.absorb(state, said)
        state = coordinator.replay(state, *decode_change(encode_change(said, after.z)))
        assert encode_state(state) == encode_state(after)
        assert encode_state(decode_state(encode_state(state))) == encode_state(state)
    assert encode_state(state) == encode_state(done.state)
    assert state.round == spec.rounds + 1
    assert state.taken.max() <= spec.max_participations
    if variant is Variant.PLANNED:
        assert state.intercepts.max() == 1
        assert len(state.questions) == spec.intercept_rounds + 1
        assert int(state.questions[:, 3].sum()) == int(state.intercepts.sum())


@pytest.mark.parametrize("aggregate", [Aggregate.NONE, Aggregate.HOST])
def test_heavy_drop_out_leaves_every_round_its_minimum(aggregate: Aggregate) -> None:
    # Rounds of the intercept need all of their eight, of whom three are there at a time: often
    # nobody is.
    options = AdmmOptions(rounds=3, sampled=20, minimum=15, aggregate=aggregate.value)
    spec = admm_spec(options, clients=40, features=FEATURES)
    done = run(spec, alike(40), SeededNoise(1), trouble=Trouble(drop_out=0.6), cap=spec.max_units)
    assert done.state.round == spec.rounds + 1
    assert done.state.drawing > spec.rounds + 1
    assert done.state.counts[:, 0].min() >= 8
    assert done.state.intercepts.tolist() == [1] * 40
    assert not done.state.declined.any()


# -- sums of a host ------------------------------------------------------------------------------


def summing(**changes: Any) -> AdmmSpec:
    return planned(aggregate=Aggregate.HOST, **changes)


def test_a_sum_has_one_noise_and_each_client_pays_for_itself() -> None:
    spec = summing(coarse=False, participations=2)
    clients = alike(20)
    host = make_host(spec, clients, ShakeNoise("sum"), job="job")
    host.admit()
    point = np.zeros(spec.dim, np.int64)
    exact = host.problems.displacements(np.arange(20), np.tile(point, (20, 1)))
    release, gaps = spec.release(1), []
    for drawing in (1, 2):
        reply = host.answer(asked(drawing, range(20), point, step=1))
        bodies = [each.body for each in reply]
        assert [bool(body) for body in bodies] == [True] + [False] * 19
        (noisy,) = unpack_many(release.code, bodies[:1])
        gaps.append(noisy - exact.sum(axis=0))
    spent = {host.ledger.budget(account).spent for account in host.accounts}
    assert spent == {2 * release.cost}
    # Eight draws of one deviation: their sum of squares over the variance is chi squared with 8
    # degrees of freedom, between 0.8 and 26 but once in a thousand times. Noise for each of the 20
    # clients would give 160 on average; the next test looks for half the noise.
    chi2 = float(np.sum(np.stack(gaps).astype(float) ** 2)) / release.mechanism.sigma2
    assert 0.8 < chi2 < 26.0


def test_half_the_noise_of_a_sum_would_be_seen() -> None:
    spec = summing(clients=2, coarse=False)
    host = make_host(
        replace(spec, participations=0, radii=(1024,) * 200, rounds=200 + spec.intercept_rounds),
        alike(2),
        ShakeNoise("half"),
        job="job",
    )
    point, gaps = np.zeros(spec.dim, np.int64), []
    exact = host.problems.displacements(np.arange(2), np.tile(point, (2, 1))).sum(axis=0)
    for drawing in range(1, 101):
        reply = host.answer(asked(drawing, (0, 1), point, step=1))
        (noisy,) = unpack_many(host.spec.release(1).code, [next(iter(reply)).body])
        gaps.append(noisy - exact)
    # 400 draws: the mean square over the variance is 1 with deviation sqrt(2 / 400) = 0.07. Half
    # the deviation would give 0.25, and noise for both clients 2.
    ratio = float(np.mean(np.stack(gaps).astype(float) ** 2)) / host.spec.mechanism.sigma2
    assert 0.7 < ratio < 1.3


def test_who_cannot_pay_is_not_in_the_sum_and_nobody_is_in_two_sums_of_a_drawing() -> None:
    spec = summing(coarse=False)
    host = make_host(spec, alike(20), ZeroNoise(), job="job")
    host.ledger.set_cap(1, reason="poor", account=host.accounts[3])
    host.admit()
    point = np.zeros(spec.dim, np.int64)
    exact = host.problems.displacements(np.arange(20), np.tile(point, (20, 1)))
    reply = host.answer(asked(1, range(6), point, step=1))
    assert reply.declined == [3]
    assert sorted(reply.released) == [0, 1, 2, 4, 5]
    (total,) = unpack_many(spec.release(1).code, [reply.released[0].body])
    assert np.array_equal(total, exact[[0, 1, 2, 4, 5]].sum(axis=0))
    spent = [host.ledger.budget(account).spent for account in host.accounts]
    # The same question again replays the same bytes, and costs nothing.
    again = host.answer(asked(1, range(6), point, step=1))
    assert [each.body for each in again] == [each.body for each in reply]
    # Another set of clients, or another round's radius, under the same number is refused: two sums
    # would subtract to one client.
    for other in (asked(1, range(5), point, step=1), asked(1, range(6), point, step=2)):
        refused = host.answer(other)
        assert not refused.released
    assert [host.ledger.budget(account).spent for account in host.accounts] == spent


def test_a_task_for_answers_in_a_job_of_sums_costs_nothing() -> None:
    point = np.zeros(FEATURES + 1, np.int64)
    for spec, tasks in (
        (summing(), asked(1, (0, 1), point)),
        (planned(), asked(1, (0, 1), point, step=1)),
        (summing(), asked(1, (0, 1), point, step=99)),
    ):
        host = make_host(spec, alike(20), ZeroNoise(), job="job")
        with pytest.raises(BadMessage):
            host.answer(tasks)
        assert host.ledger.state.total == 0


def test_sums_of_few_hosts_leave_less_noise_than_answers() -> None:
    clients = alike(100, rows=20, seed=5)
    gaps = {}
    for aggregate in ("none", "host"):
        options = AdmmOptions(epsilon=2.0, aggregate=aggregate)
        spec = admm_spec(options, clients=100, features=FEATURES, hosts=2)
        pool, problems = Pool.of(clients, spec), factorise(clients, spec)
        least = pool.objective(optimum(pool))
        found = [federated(problems, SeededNoise(s), seed=s, hosts=2) for s in range(5)]
        gaps[aggregate] = float(np.median([pool.objective(coef) - least for coef in found]))
    # 20 answers of a round have 20 noises in their mean, two sums have two: a tenth of the
    # variance, so that half is far from chance.
    assert gaps["host"] < 0.5 * gaps["none"]


def test_a_paper_job_has_no_sums() -> None:
    with pytest.raises(ValueError, match="duals"):
        AdmmSpec(4, 2, 1, 2, units_down(1.0), 1.0, 1.0, aggregate=Aggregate.HOST)


def test_kinds_are_named() -> None:
    spec = planned()
    assert spec.release_of(INTERCEPT).kind == INTERCEPT
    assert spec.release_of(DISPLACEMENT).kind == DISPLACEMENT
    with pytest.raises(ValueError, match="kind"):
        replace(
            spec,
            variant=Variant.GRADIENT,
            radii=(),
            intercept_rounds=0,
            intercept_units=0,
            client_rows=0,
        ).release_of(INTERCEPT)
