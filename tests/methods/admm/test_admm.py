"""Federated ADMM's parts: the specification, the proximal step, the coordinator, the client."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize
from support.clients import Answer, gathered, tasks_of
from support.entropy import ShakeNoise
from support.ledgers import new_ledger

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.entries import ChargedTogether, StoredTogether
from colonnade.ledger.gate import Gate
from colonnade.ledger.lines import entry_from_line
from colonnade.linear.losses import HINGE, LOGISTIC, SQUARED, Loss
from colonnade.linear.penalties import box, lasso
from colonnade.methods.admm import accounting, packing
from colonnade.methods.admm.choices import ClientSampling
from colonnade.methods.admm.packing import pack, unpack_many
from colonnade.methods.admm.prox import TOLERANCE, ClientRows, design, factorise
from colonnade.methods.admm.releases import DISPLACEMENT
from colonnade.methods.admm.spec import MAX_STATE, MAX_V, STEP_UNIT, AdmmSpec
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.party.methods.admm import AdmmHost
from colonnade.privacy.accounting import RHO_UNIT, epsilon_of, units_down
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.methods.admm.rules import DualRule
from colonnade.server.methods.admm.state import (
    AdmmState,
    decode_change,
    decode_state,
    encode_change,
    encode_state,
)
from colonnade.server.methods.admm.steps import AdmmCoordinator
from colonnade.simulate.inprocess.admm import Trouble, ask, make_host, run, run_with
from colonnade.sketching.packing import ShareCode
from colonnade.wire.cohort import ClientAnswers

ZEROS = np.zeros(3, np.int64)
SEED = bytes(range(32))


def spec_of(**changes: object) -> AdmmSpec:
    numbers: dict[str, object] = {
        "n_clients": 12,
        "n_features": 3,
        "rounds": 6,
        "sampled": 5,
        "release_units": units_down(0.5),
        "gamma": 2.0,
        "lipschitz": 1.0,
    }
    return AdmmSpec(**{**numbers, **changes})  # type: ignore[arg-type]


def clients_of(
    spec: AdmmSpec, *, rows: Sequence[int] = (3, 7, 1), seed: int = 0
) -> list[ClientRows]:
    draw = np.random.default_rng(seed)
    made = []
    for number in range(spec.n_clients):
        count = rows[number % len(rows)]
        columns = draw.integers(-GRID, GRID + 1, (spec.n_features, count)).astype(np.int16)
        made.append(ClientRows(columns, draw.integers(-GRID, GRID + 1, count).astype(np.int16)))
    return made


def body_of(spec: AdmmSpec, seed: int) -> bytes:
    noisy = SeededNoise(seed).discrete_gaussian(spec.mechanism.sigma2, spec.dim)
    return spec.code.encode(noisy)


def same(a: AdmmState, b: AdmmState) -> bool:
    return encode_state(a) == encode_state(b)


# -- the specification ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gamma", "lipschitz", "bits"), [(2.0, 1.0, 26), (0.3, 7.5, 20), (1e-3, 40.0, 30)]
)
def test_a_participation_costs_eight_gamma2_l2_over_sigma2(
    gamma: float, lipschitz: float, bits: int
) -> None:
    spec = spec_of(gamma=gamma, lipschitz=lipschitz, radius_bits=bits)
    assert spec.mechanism.l2_sensitivity2 == (2 * spec.radius) ** 2  # exactly, as an integer
    sigma = 2.0 * math.sqrt(spec.mechanism.sigma2) * spec.unit  # the paper's
    rho = 8.0 * gamma**2 * lipschitz**2 / sigma**2
    assert accounting.local_rho(spec, 1) == pytest.approx(rho, rel=1e-9)
    assert accounting.local_rho(spec, 3) == pytest.approx(3 * 0.5, rel=1e-9)
    assert spec.mechanism.cost <= spec.release_units


def test_a_client_sets_aside_what_its_participations_can_cost() -> None:
    assert spec_of().max_units == 6 * units_down(0.5)
    assert spec_of(participations=2).max_units == 2 * units_down(0.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"minimum": 6},
        {"sampled": 13},
        {"minimum": 0},
        {"participations": 7},
        {"gamma": math.inf},
        {"lipschitz": 0.0},
        {"step": 1.5},
        {"step": 2.0**-20},
        {"loss": HINGE},
        {"dual_weight": 1.1},
        {"dual_weight": math.nan},
        {"radius_bits": 31},
        {"release_units": 0},
        {"release_units": 1},  # noise beyond the state's range
        {"release_units": RHO_UNIT * 8000},
        {"n_features": 2**16 + 1},
    ],
    ids=str,
)
def test_an_impossible_job_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        spec_of(**changes)


@pytest.mark.parametrize("coarse", [True, False])
def test_a_body_has_the_size_that_the_specification_predicts(coarse: bool) -> None:
    spec = spec_of(coarse=coarse, rounds=3)
    outcome = run(spec, clients_of(spec), SeededNoise(1))
    assert outcome.releases == spec.rounds * spec.sampled == 3 * 5
    bodies = [body for log in outcome.log for body in log.bodies]
    assert sum(map(len, bodies)) == outcome.payload_bytes == spec.payload_bytes(15)
    decoded = unpack_many(spec.code, bodies)
    assert np.array_equal(decoded, [spec.code.decode(body) for body in bodies])


@pytest.mark.parametrize("code", [ShareCode(5, 1, 40), ShareCode(7, 12, 6), ShareCode(3, 1, 2)])
def test_quick_packing_gives_the_same_bytes(code: ShareCode) -> None:
    draw = np.random.default_rng(0)
    for size in (1, 20, 1000, 2**41, 2**60):
        noisy = draw.integers(-size, size + 1, code.dim)
        assert pack(code, noisy) == code.encode(noisy)


def test_sampled_rounds_give_the_known_central_figures() -> None:
    # Known: n = 1000, K = 500, delta = 1e-5, sigma = 10 gamma L, that is rho 0.08 each time.
    known = {50: (0.495, 0.207), 100: (0.720, 0.302), 200: (1.049, 0.440)}
    for sampled, (epsilon, with_coins) in known.items():
        spec = spec_of(
            n_clients=1000,
            rounds=500,
            sampled=sampled,
            minimum=sampled,
            release_units=units_down(0.08),
        )
        least, found = accounting.central_epsilons(spec, [1, 500], 1e-5)
        assert found == pytest.approx(epsilon, abs=1e-3)
        assert least < found < accounting.local_epsilon(spec, 500 * sampled // 1000, 1e-5)
        poisson = replace(spec, sampling=ClientSampling.POISSON)
        assert accounting.central_epsilons(poisson, [500], 1e-5)[0] == pytest.approx(
            with_coins, abs=3e-3
        )
        fewer = replace(spec, minimum=sampled // 2)  # less noise may be in the sum
        assert accounting.central_epsilons(fewer, [500], 1e-5)[0] > epsilon


def test_without_sampling_the_central_figure_is_the_sum_of_everyones_noise() -> None:
    spec = spec_of(sampled=12, minimum=12)
    expected = epsilon_of(6 * accounting.local_rho(spec, 1) / 12, 1e-5)
    assert accounting.central_epsilons(spec, [6], 1e-5)[0] == pytest.approx(expected, rel=1e-6)


# -- the proximal step ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_displacement_leads_to_the_proximal_point(loss: Loss, intercept: bool) -> None:
    spec = spec_of(loss=loss, intercept=intercept, lipschitz=4.0, radius_bits=30)
    clients = clients_of(spec, rows=(2, 9, 40))
    problems = factorise(clients, spec)
    v = np.random.default_rng(3).integers(-(2**30), 2**30, (12, spec.dim))
    moved = problems.displacements(np.arange(12), v)
    for client, start, found in zip(clients, v * spec.unit, moved * spec.unit, strict=True):
        A, y = design(client, spec)

        def value(w: np.ndarray, A: np.ndarray = A, y: np.ndarray = y, start=start) -> float:  # type: ignore[no-untyped-def]
            return loss.mean(A @ w, y) + float((w - start) @ (w - start)) / (2 * spec.gamma)

        best = optimize.minimize(value, start, method="BFGS", options={"gtol": 1e-9})
        # The objective is 1/gamma-strongly convex: no point as good is farther than that.
        assert value(start + found) <= best.fun + 1e-12
        A_gradient = A.T @ _slopes(loss, A @ (start + found), y) / len(y)
        off = A_gradient + found / spec.gamma
        slack = (TOLERANCE + math.sqrt(spec.dim) / spec.radius) * spec.lipschitz * spec.gamma
        lipschitz = 1.0 / spec.gamma + float(np.linalg.norm(A, 2)) ** 2 / len(y)
        assert np.linalg.norm(off) <= slack * lipschitz + 1e-12


def _slopes(loss: Loss, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
    slopes: np.ndarray = -y / (1.0 + np.exp(y * margins)) if loss is LOGISTIC else margins - y
    return slopes


def test_clients_computed_together_get_what_they_get_alone() -> None:
    spec = spec_of(loss=LOGISTIC)
    clients = clients_of(spec)
    v = np.random.default_rng(3).integers(-(2**28), 2**28, (12, spec.dim))
    concat = factorise(clients, spec).displacements(np.arange(12), v)
    for number, client in enumerate(clients):
        alone = factorise([client], spec).displacements(np.zeros(1, np.int64), v[[number]])
        assert np.array_equal(alone[0], concat[number])


# -- the coordinator -----------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 0.25, 0.0])
def test_a_round_moves_the_duals_by_the_documented_integers(weight: float) -> None:
    spec = spec_of(step=0.3, penalty=lasso(1e-3), dual_weight=weight)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    u = np.zeros((12, 3), dtype=object)
    for _ in range(4):
        z, tasks = state.z.astype(object), coordinator.tasks(state)
        answers = []
        for client, round_, v in zip(tasks.clients, tasks.rounds, tasks.points, strict=True):
            dual = (int(weight * STEP_UNIT) * (u[client] - z) + STEP_UNIT // 2) // STEP_UNIT
            assert list(v) == list(z - dual)
            assert weight < 1.0 or list(v) == list(2 * z - u[client])
            answers.append(Answer(int(client), int(round_), body_of(spec, int(client))))
            moved = spec.code.decode(answers[-1].body).astype(object)
            u[client] += (spec.gain * (z - u[client] + moved) + STEP_UNIT // 2) // STEP_UNIT
        state = coordinator.absorb(state, gathered(answers))
        assert np.array_equal(state.u, u.astype(np.int64))
        assert np.array_equal(state.total, u.sum(axis=0).astype(np.int64))
        mean = np.asarray(state.u).mean(axis=0) * spec.unit
        shrunk = np.sign(mean) * np.maximum(np.abs(mean) - 1e-3 * spec.gamma, 0.0)
        assert coordinator.coefficients(state) == pytest.approx(shrunk, abs=spec.unit)
    assert spec.gain == round(0.6 * STEP_UNIT)


def test_fixed_sampling_takes_so_many_and_everyone_equally_often() -> None:
    spec = spec_of(rounds=2000)
    coordinator = AdmmCoordinator(spec)
    state, counts = coordinator.start(SEED), np.zeros(12)
    for round_ in range(1, 2001):
        picked = coordinator.sampled(replace(state, drawing=round_))
        assert picked.size == 5 == np.unique(picked).size
        counts[picked] += 1
    # Binomial(2000, 5/12) each: within 4.5 deviations (22 each) but for a chance below 12 * 7e-6.
    assert np.abs(counts - 2000 * 5 / 12).max() < 4.5 * math.sqrt(2000 * 5 / 12 * 7 / 12)


def test_poisson_sampling_flips_independent_coins() -> None:
    spec = spec_of(rounds=2000, sampling=ClientSampling.POISSON)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    sizes = np.array([coordinator.sampled(replace(state, drawing=r)).size for r in range(1, 2001)])
    # Mean 5 and variance 12 * 5/12 * 7/12 = 2.917; the mean of 2000 is within 4.5 * 0.0382, and
    # their variance, whose own deviation is about 2.917 * sqrt(2 / 2000) = 0.092, within 4.5 of it.
    assert abs(sizes.mean() - 5.0) < 4.5 * 0.0382
    assert abs(sizes.var() - 2.917) < 4.5 * 0.092


def test_who_is_sampled_depends_on_the_secret_seed() -> None:
    coordinator = AdmmCoordinator(spec_of(rounds=1))
    first = [coordinator.sampled(coordinator.start(bytes([k] * 32))).tolist() for k in range(6)]
    assert len({tuple(each) for each in first}) > 1


def said_by(spec: AdmmSpec, clients: Sequence[int], round_: int = 1) -> ClientAnswers:
    return gathered([Answer(client, round_, body_of(spec, client)) for client in clients])


def test_a_round_draws_others_for_those_missing_until_it_has_its_minimum() -> None:
    spec = spec_of(minimum=4)
    coordinator = AdmmCoordinator(spec)
    start = coordinator.start(SEED)
    first = coordinator.sampled(start).tolist()
    short = coordinator.absorb(start, said_by(spec, first[:2]))
    assert (short.round, short.drawing) == (1, 2)
    assert not short.z.any()
    assert np.asarray(short.u)[first[:2]].any(axis=1).all()  # what was answered is kept
    second = coordinator.tasks(short)
    assert second.clients.size == 3
    assert not set(second.clients.tolist()) & set(first)
    assert second.rounds.tolist() == [1, 1, 1]
    again = coordinator.absorb(short, said_by(spec, []))
    third = coordinator.sampled(again).tolist()
    assert len(third) == 3
    assert not set(third) & {*first, *second.clients.tolist()}  # four were not asked: three of them
    assert coordinator.spares(again)
    fourth = coordinator.absorb(again, said_by(spec, third[:1]))
    assert not coordinator.spares(fourth)  # the last one is asked with somebody a second time
    rest = coordinator.sampled(fourth).tolist()
    assert len(rest) == 2
    assert not set(rest) & {*first[:2], third[0]}
    done = coordinator.absorb(fourth, said_by(spec, rest[:1]))
    assert (done.round, done.drawing) == (2, 5)
    assert not done.answered.any()
    assert np.array_equal(done.z, DualRule(spec).consensus(done.total))
    assert done.z.any()
    # The same as if these four had been there at once.
    at_once = replace(spec, sampled=12)
    whole = AdmmCoordinator(at_once).absorb(
        start, said_by(spec, sorted([*first[:2], third[0], rest[0]]))
    )
    assert np.array_equal(whole.z, done.z)
    assert np.array_equal(whole.u, done.u)
    assert np.array_equal(whole.taken, done.taken)


def test_poisson_draws_what_is_missing_too() -> None:
    spec = spec_of(minimum=4, sampling=ClientSampling.POISSON)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    for count in (1, 1, 1):
        asked = coordinator.sampled(state)
        assert asked.size >= 4 - state.answered.sum()
        assert not state.answered[asked].any()
        state = coordinator.absorb(state, said_by(spec, asked[:count].tolist()))
    assert (state.round, int(state.answered.sum())) == (1, 3)
    asked = coordinator.sampled(state).tolist()
    assert coordinator.absorb(state, said_by(spec, asked[:1])).round == 2


def test_a_round_that_too_few_can_still_answer_is_the_end() -> None:
    spec = spec_of(minimum=4, participations=1)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    three = coordinator.sampled(state)[:3].tolist()
    state = coordinator.absorb(state, said_by(spec, three))
    others = [client for client in range(12) if client not in three]
    state = coordinator.decline(state, *others[:-1])
    assert not coordinator.finished(state)  # three have answered and one may
    assert coordinator.sampled(state).tolist() == others[-1:]
    assert coordinator.finished(coordinator.decline(state, others[-1]))


def test_one_who_declines_is_replaced_at_once_and_never_asked_again() -> None:
    spec = spec_of(minimum=3)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    before = coordinator.sampled(state).tolist()
    state = coordinator.decline(state, before[2])
    after = coordinator.sampled(state).tolist()
    assert len(after) == 5
    assert set(before) - set(after) == {before[2]}
    for client in range(9):
        state = coordinator.decline(state, client)
    assert coordinator.finished(state) == (sum(~state.declined) < 3)
    for client in range(12):
        state = coordinator.decline(state, client)
    assert coordinator.finished(state)
    assert coordinator.tasks(state).clients.size == 0


def test_a_drawing_without_answers_is_no_round() -> None:
    coordinator = AdmmCoordinator(spec_of())
    before = coordinator.start(SEED)
    after = coordinator.absorb(before, gathered([]))
    assert (after.round, after.drawing) == (1, 2)
    assert not np.asarray(after.u).any()
    assert (after.owed == 1).sum() == 5


def test_a_client_is_never_asked_more_often_than_the_job_allows() -> None:
    spec = spec_of(participations=2, rounds=6, minimum=1)
    outcome = run(spec, clients_of(spec), SeededNoise(0))
    assert outcome.state.taken.max() == 2
    assert outcome.state.round < 7  # 24 answers in all: the sixth round has nobody left
    spent = [outcome.ledger.budget(f"c{number}").spent for number in range(12)]
    assert max(spent) <= spec.max_units


BODY = bytes(spec_of().body_bytes)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(12, 1, BODY),
        Answer(-1, 1, BODY),
        Answer(-2, 0, BODY),
        Answer(0, 2, BODY),
        Answer(0, 0, BODY),
        Answer(0, 1, BODY[1:]),
    ],
    ids=repr,
)
def test_an_answer_that_was_not_asked_for_is_refused(answer: Answer) -> None:
    spec = spec_of(sampled=12)
    coordinator = AdmmCoordinator(spec)
    expected = coordinator.expected(coordinator.start(SEED))
    fine = Answer(1, 1, BODY)
    coordinator.check(expected, gathered([fine]))
    with pytest.raises(BadInput):
        coordinator.check(expected, gathered([fine, answer]))


def test_nothing_is_applied_twice_or_unasked() -> None:
    coordinator = AdmmCoordinator(spec_of(sampled=12))
    state = coordinator.start(SEED)
    for answers in ([Answer(1, 1, BODY)] * 2, [Answer(1, 2, BODY)]):
        with pytest.raises(ValueError, match="asked"):
            coordinator.absorb(state, gathered(answers))


def test_a_late_answer_counts_as_if_in_time_and_is_asked_for_again_unchanged() -> None:
    spec = spec_of(sampled=12)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    answers = [Answer(client, 1, body_of(spec, client)) for client in range(12)]
    state = coordinator.absorb(state, gathered(answers))  # so that z is not zero
    first = coordinator.tasks(state)
    answers = [Answer(client, 2, body_of(spec, 50 + client)) for client in range(12)]
    state = coordinator.absorb(state, gathered(answers[1:]))
    again = coordinator.tasks(state)
    assert again.rounds.tolist() == [2] + [3] * 11
    assert np.array_equal(again.points[0], first.points[0])
    assert not np.array_equal(state.z, state.past[2])
    after = coordinator.absorb(state, gathered(answers[:1]))
    moved = spec.code.decode(answers[0].body)
    gap = first.points[0] + moved - state.past[2]  # v + d - z, with the z of the task
    assert np.array_equal(
        np.asarray(after.u)[0], np.asarray(state.u)[0] + gap
    )  # the step 2 lambda is 1
    assert sorted(after.past) == [3]
    rest = gathered([Answer(c, 3, answers[0].body) for c in range(1, 12)])
    assert 3 not in coordinator.absorb(after, rest).past


def reversed_(said: ClientAnswers) -> ClientAnswers:
    return replace(
        said, clients=said.clients[::-1], rounds=said.rounds[::-1], bodies=said.bodies[::-1]
    )


def test_replayed_answers_give_the_same_state_bit_for_bit() -> None:
    spec = spec_of(rounds=12, loss=LOGISTIC, penalty=box(0.5))
    trouble = Trouble(drop_out=0.15, late=0.3)
    outcome = run(spec, clients_of(spec), SeededNoise(4), seed=9, trouble=trouble)
    coordinator = AdmmCoordinator(spec)
    rounds = [round_ for log in outcome.log for round_ in log.rounds.tolist()]
    assert any(np.unique(log.rounds).size > 1 for log in outcome.log)
    assert len(rounds) == int(outcome.state.taken.sum())
    whole = changes = coordinator.start((9).to_bytes(32, "little"))
    for log in outcome.log:
        whole = decode_state(encode_state(coordinator.absorb(whole, log)))
        said = reversed_(log)  # within a round the order is no matter
        body = encode_change(said, coordinator.absorb(changes, said).z)
        changes = coordinator.replay(changes, *decode_change(body))
    assert same(whole, outcome.state)
    assert same(changes, outcome.state)
    assert np.array_equal(np.asarray(whole.u).sum(axis=0), whole.total)


def test_a_step_in_place_is_the_same_step_and_any_other_leaves_its_state_alone() -> None:
    spec = spec_of(rounds=3)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    for _ in range(3):
        tasks, before = coordinator.tasks(state), encode_state(state)
        asked = zip(tasks.clients.tolist(), tasks.rounds.tolist(), strict=True)
        said = gathered([Answer(client, r, body_of(spec, client)) for client, r in asked])
        apart = coordinator.absorb(state, said)
        assert encode_state(state) == before
        state = coordinator.absorb(state, said, in_place=True)
        assert same(state, apart)


@pytest.mark.parametrize("width", range(2, 44))
def test_bodies_are_unpacked_as_their_code_says(width: int) -> None:
    code = ShareCode(11, 5, width)
    most = 5 << (width - 1)
    noisy = np.random.default_rng(width).integers(-most - 9, most + 9, (7, 11))
    noisy[0, :2] = -most, most
    bodies = [code.encode(row) for row in noisy]
    assert [pack(code, row) for row in noisy] == bodies
    values = unpack_many(code, bodies)
    assert np.array_equal(values, [code.decode(body) for body in bodies])
    plain = np.empty_like(values)
    packed = np.frombuffer(b"".join(bodies), np.uint8).reshape(7, -1)
    packing._unpack.py_func(packed, code.step, code.width, plain)  # type: ignore[attr-defined]
    assert np.array_equal(plain, values)
    assert unpack_many(code, []).shape == (0, 11)
    with pytest.raises(ValueError, match="another size"):
        unpack_many(code, [bodies[0] + b"x", bodies[1][:-1]])


def test_bytes_that_are_no_state_are_refused() -> None:
    state = AdmmCoordinator(spec_of()).start(SEED)
    body = encode_state(state)
    change = encode_change(gathered([Answer(1, 1, b"four")]), state.z)
    for wrong in (b"", body[:-1], body + b"\0", b"x" + body[1:], change):
        with pytest.raises(ValueError, match="state"):
            decode_state(wrong)
    for wrong in (b"", change[:-1], change + b"\0", b"x" + change[1:], body):
        with pytest.raises(ValueError, match="state"):
            decode_change(wrong)


def test_the_worst_answers_keep_the_state_within_its_bounds() -> None:
    spec = spec_of(rounds=60, sampled=12, step=1.0, release_units=2**25)
    coordinator = AdmmCoordinator(spec)
    state = coordinator.start(SEED)
    top = spec.code.encode(np.full(spec.dim, 2**61))
    assert spec.code.decode(top).max() > MAX_STATE // 4
    for _ in range(60):
        tasks = coordinator.tasks(state)
        assert np.abs(tasks.points).max() <= MAX_V
        tasks_of((0, 1, tasks.points[0]))  # fits
        bodies = zip(tasks.clients.tolist(), tasks.rounds.tolist(), strict=True)
        state = coordinator.absorb(state, gathered([Answer(c, r, top) for c, r in bodies]))
    assert np.array_equal(
        state.total, np.asarray(state.u).astype(object).sum(axis=0).astype(np.int64)
    )
    assert np.asarray(state.u).max() == MAX_STATE


# -- the client ----------------------------------------------------------------------------------


def test_ten_percent_drop_out_does_not_stop_a_job() -> None:
    spec = spec_of(n_clients=40, sampled=20, minimum=12, rounds=25)
    trouble = Trouble(drop_out=0.1)
    outcome = run(spec, clients_of(spec), SeededNoise(2), seed=5, trouble=trouble)
    assert outcome.state.round == 26
    answered = [len(log.bodies) for log in outcome.log]
    assert min(answered) >= 12
    # Binomial(500, 0.9): mean 450, deviation 6.7.
    assert abs(sum(answered) - 450) < 4.5 * 6.7
    assert outcome.releases == sum(answered)  # nothing paid for was thrown away


def test_everything_paid_for_is_applied_or_on_its_way() -> None:
    spec = spec_of(rounds=20)
    trouble = Trouble(drop_out=0.2, late=0.4)
    outcome = run(spec, clients_of(spec), SeededNoise(2), seed=1, trouble=trouble)
    applied = int(outcome.state.taken.sum())
    assert applied <= outcome.releases <= applied + spec.sampled


def test_clients_over_their_caps_leave_and_the_others_go_on() -> None:
    spec = spec_of(rounds=4, minimum=2)
    host = make_host(spec, clients_of(spec), SeededNoise(0), job="job", cap=spec.max_units)
    for number in range(6):  # half of them have spent elsewhere
        host.ledger.admit("elsewhere", units=1, account=f"c{number}")
    outcome = run_with(host, seed=0, trouble=Trouble())
    assert outcome.state.round == 5
    assert outcome.state.declined.sum() == 6
    assert not outcome.state.taken[:6].any()


def test_a_task_is_charged_before_rows_are_read_and_each_client_pays_for_itself() -> None:
    spec = spec_of()
    host = make_host(spec, clients_of(spec), SeededNoise(0), job="job")
    read: list[int] = []

    class Watched:
        def displacements(self, clients: IntArray, v: IntArray, *, round_: int) -> IntArray:
            (charged,) = (entry for entry in entries() if isinstance(entry, ChargedTogether))
            assert charged.accounts == [f"c{client}" for client in clients]
            read.extend(clients.tolist())
            return host.problems.displacements(clients, v, round_=round_)

    def entries() -> list[object]:
        return [entry_from_line(line)[2] for line in host.ledger.lines()]

    watched = replace(host, problems=Watched())  # type: ignore[arg-type]
    tasks = tasks_of(*((number, 1, np.arange(3)) for number in (3, 1, 7)))
    replies = watched.answer(tasks)
    assert read == [3, 1, 7]
    assert [reply.key.account for reply in replies] == ["c3", "c1", "c7"]
    for number in range(12):
        cost = spec.mechanism.cost if number in (1, 3, 7) else 0
        assert host.ledger.budget(f"c{number}").spent == cost
    assert watched.answer(tasks) == replies  # the same bytes, and nothing is read or paid
    assert read == [3, 1, 7]
    (stored,) = (entry for entry in entries() if isinstance(entry, StoredTogether))
    assert stored.accounts == ["c3", "c1", "c7"]


def test_another_question_under_an_answered_key_is_declined() -> None:
    spec = spec_of()
    host = make_host(spec, clients_of(spec), ZeroNoise(), job="job")
    ones = np.ones(3, np.int64)
    host.answer(tasks_of((1, 1, 0 * ones)))
    tasks = tasks_of((1, 1, ones), (2, 1, ones))
    replies = host.answer(tasks)
    assert ([*replies.released], replies.declined) == ([2], [1])
    other = replace(host, version=b"other data").answer(tasks.only(slice(1, 2)))
    assert ([*other.released], other.declined) == ([], [2])


@pytest.mark.parametrize(
    "tasks",
    [
        tasks_of((5, 1, ZEROS), (99, 1, ZEROS)),
        tasks_of((5, 1, ZEROS), (-1, 1, ZEROS)),
        tasks_of((5, 1, ZEROS), (1, 7, ZEROS)),
        tasks_of((5, 1, np.zeros(4, np.int64))),
    ],
)
def test_a_task_that_does_not_fit_is_refused_before_anything_is_charged(
    tasks: ClientTasks,
) -> None:
    spec = spec_of()
    host = make_host(spec, clients_of(spec), ZeroNoise(), job="job")
    with pytest.raises(BadInput):
        host.answer(tasks)
    assert not host.ledger.state.charges


@pytest.mark.parametrize("round_", [0, -1, 2**32])
def test_a_task_of_no_round_never_becomes_one(round_: int) -> None:
    with pytest.raises(ValueError, match="round"):
        tasks_of((1, round_, ZEROS))


def test_nobody_is_asked_twice_at_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        tasks_of((1, 1, ZEROS), (1, 2, ZEROS))


def test_a_client_killed_after_paying_answers_again_without_a_second_charge(
    tmp_path: Path,
) -> None:
    spec = spec_of()
    ledger = new_ledger("sqlite", tmp_path, simulation=True, caps={"": spec.max_units})
    problems = factorise(clients_of(spec), spec)
    accounts = [f"c{number}" for number in range(12)]

    class Killed(SeededNoise):
        def discrete_gaussian(self, sigma2: int, size: int) -> IntArray:
            raise KeyboardInterrupt

    host = AdmmHost(spec, "job", problems, accounts, b"", Gate(ledger, Killed(0)), ledger)
    assert host.admit() == []
    tasks = tasks_of(*((number, 1, np.arange(3)) for number in range(4)))
    with pytest.raises(KeyboardInterrupt):
        host.answer(tasks)
    spent = ledger.head.spent
    assert spent == 4 * spec.mechanism.cost
    again = replace(host, gate=Gate(ledger, ShakeNoise("again")))
    assert len(again.answer(tasks).released) == 4
    assert ledger.head.spent == spent
    assert [key.kind for key in ledger.state.stored] == [DISPLACEMENT] * 4
    ledger.close()


def test_asking_some_of_the_clients_leaves_the_others_alone() -> None:
    spec = spec_of()
    host = make_host(spec, clients_of(spec), ZeroNoise(), job="job")
    coordinator = AdmmCoordinator(spec)
    tasks = coordinator.tasks(coordinator.start(SEED))
    there = np.array([True, False, True, False, True])
    said = ask(host, tasks, there)
    assert said.clients.tolist() == tasks.clients[there].tolist()
    assert not said.declined.size
