"""Private block-coordinate Frank-Wolfe: sensitivity, codes, and both sides against a reference."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.entropy import ScriptedNoise
from support.vertical import Data, parties, r2, run

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.optim.dense_sketch import HadamardSketch
from colonnade.optim.kernels import score
from colonnade.optim.sketch import Sketch, SparseSketch
from colonnade.optim.vertical.residual import (
    CLIP_UNIT,
    COEF_UNIT,
    MAX_COEF,
    MAX_Q,
    Q_UNIT,
    SCORE_SENSITIVITY,
    WEIGHT_UNIT,
    Public,
    residual,
)
from colonnade.optim.vertical.shares import ShareCode, share_mechanism
from colonnade.optim.vertical.spec import (
    FrankWolfeSpec,
    Labels,
    Sampling,
    decode_choice,
    encode_choice,
)
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.frank_wolfe import FrankWolfe

N_ROWS, DIM = 60, 16


def table(n_rows: int = 600, n_features: int = 12, parties: int = 3, seed: int = 0) -> Data:
    draw = np.random.default_rng(seed)
    columns = draw.integers(-GRID, GRID + 1, (n_features, n_rows), dtype=np.int16)
    signal = 0.5 * columns[0].astype(float) - 0.4 * columns[n_features // 2]
    label = np.clip(np.rint(signal + draw.normal(0, 1500, n_rows)), -GRID, GRID).astype(np.int16)
    cuts = [n_features * k // parties for k in range(parties + 1)]
    return Data(columns, label, tuple(tuple(range(a, b)) for a, b in itertools.pairwise(cuts)))


def spec_for(data: Data, **changes: object) -> FrankWolfeSpec:
    owner = 1 if changes.get("labels") is Labels.SKETCHED else None
    base = FrankWolfeSpec(
        n_rows=data.label.size,
        blocks=data.blocks(radius=1.0, shares=2, owner=owner),
        rounds=6,
        sketch_dim=64,
        sketch_entries=1,
        select_units=units_down(0.05),
        share_units=units_down(0.5),
        label_units=units_down(0.5) if owner else 0,
        labels=Labels.SKETCHED if owner else Labels.SHARED,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


# -- sensitivity ---------------------------------------------------------------------------------

sketches: list[Sketch] = [
    SparseSketch(b"v", N_ROWS, DIM, 1),
    SparseSketch(b"v", N_ROWS, DIM, 4),
    HadamardSketch(b"v", N_ROWS, 64),
]
extremes = st.one_of(st.integers(-MAX_COEF, MAX_COEF), st.sampled_from([0, MAX_COEF, -MAX_COEF]))
wild = st.one_of(st.integers(-MAX_Q, MAX_Q), st.sampled_from([0, MAX_Q, -MAX_Q]))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    row=st.integers(0, N_ROWS - 1),
    coef=st.lists(extremes, min_size=3, max_size=3),
    q=st.lists(wild, min_size=64, max_size=64),
    weight=st.integers(0, WEIGHT_UNIT),
    clip=st.one_of(st.integers(1, 2**40), st.just(1)),
    which=st.integers(0, 2),
    labelled=st.booleans(),
)
def test_no_input_of_a_coordinator_raises_the_sensitivity(
    seed: int,
    row: int,
    coef: list[int],
    q: list[int],
    weight: int,
    clip: int,
    which: int,
    labelled: bool,
) -> None:
    draw, sketch = np.random.default_rng(seed), sketches[which]
    one = draw.choice([-GRID, 0, GRID], (4, N_ROWS)).astype(np.int16)
    two = one.copy()
    two[:, row] = draw.choice([-GRID, GRID], 4)  # the label changes too
    public = Public(np.array(coef), np.array(q[: sketch.dim]), weight, clip)
    found = []
    for side in (one, two):
        rows = residual(side[:3], side[3] if labelled else None, public, sketch)
        assert int(np.abs(rows).max()) <= GRID
        found.append((rows, score(side[:3], rows)))
    changed = np.flatnonzero(found[0][0] != found[1][0])
    assert set(changed.tolist()) <= {row}  # nothing of other rows depends on this one
    assert int(np.abs(found[1][1] - found[0][1]).max()) <= SCORE_SENSITIVITY


def test_the_sensitivity_is_attained() -> None:
    one = np.full((2, N_ROWS), GRID, np.int16)
    two = one.copy()
    two[0, 5] = -GRID
    public = Public(np.array([0]), np.zeros(DIM, np.int64), 0, 1)
    scores = [
        score(side[:1], residual(side[:1], side[1], public, sketches[0])) for side in (one, two)
    ]
    assert abs(int(scores[1][0] - scores[0][0])) == SCORE_SENSITIVITY


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": -1},
        {"weight": WEIGHT_UNIT + 1},
        {"clip": 0},
        {"clip": -5},
        {"clip": 2**40 + 1},
        {"coef": np.array([MAX_COEF + 1])},
        {"q": np.array([-MAX_Q - 1])},
        {"q": np.array([-(2**63)])},
    ],
)
def test_a_task_outside_its_bounds_is_refused(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {
        "coef": np.zeros(1, np.int64),
        "q": np.zeros(1, np.int64),
        "weight": 0,
        "clip": 1,
    }
    Public(**right)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"weight|clip|large"):
        Public(**{**right, **wrong})  # type: ignore[arg-type]


# -- codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.001, 0.05, 3.0])
@pytest.mark.parametrize("n_rows", [100, 10**6])
def test_a_share_survives_its_code_up_to_half_a_step(rho: float, n_rows: int) -> None:
    sketch = SparseSketch(b"c", n_rows, 256)
    mechanism = share_mechanism(sketch, units_down(rho))
    code = ShareCode.of(sketch, n_rows, mechanism)
    spread = math.sqrt(mechanism.sigma2 + n_rows * GRID**2 / 256)
    values = np.rint(np.random.default_rng(1).normal(0, spread, 256)).astype(np.int64)
    body = code.encode(values)
    assert len(body) == code.n_bytes
    assert int(np.abs(code.decode(body) - values).max()) <= code.step // 2 + 1


def test_values_beyond_the_code_saturate_instead_of_wrapping() -> None:
    code = ShareCode(dim=4, step=10, width=6)
    decoded = code.decode(code.encode(np.array([10**9, -(10**9), 310, -320])))
    assert decoded.tolist() == [310, -320, 310, -320]


def test_the_usual_share_has_six_bits_a_value() -> None:
    # Noise far above the signal, as at usual budgets: +-6 deviations of a quarter deviation each.
    sketch = SparseSketch(b"c", 10**5, 2048)
    code = ShareCode.of(sketch, 10**5, share_mechanism(sketch, units_down(0.001)))
    assert code.width == 6
    assert code.n_bytes == 2048 * 6 // 8


@pytest.mark.parametrize("size", [0, 11, 13])
def test_a_share_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="instead of 12"):
        ShareCode(dim=16, step=1, width=6).decode(bytes(size))


@given(feature=st.integers(0, 2**20), sign=st.sampled_from([-1, 1]))
def test_a_choice_round_trips(feature: int, sign: int) -> None:
    assert decode_choice(encode_choice(feature, sign), feature + 1) == (feature, sign)
    with pytest.raises(ValueError, match="no feature"):
        decode_choice(encode_choice(feature, sign), feature)


# -- both sides against a reference --------------------------------------------------------------


def reference(
    data: Data, spec: FrankWolfeSpec, noise: NoiseSource, job: str
) -> dict[str, list[int]]:
    """Run the job centrally, from the documented arithmetic alone, on dense matrices."""
    sketch = spec.sketch(job)
    J = sketch.apply(np.eye(data.label.size, dtype=np.int16)).T
    solver, selection = FrankWolfe.of(spec, job), spec.selection()
    x = {b.party: np.zeros(len(b.features), np.int64) for b in spec.blocks}
    A = {
        b.party: data.columns[list(s)].astype(float)
        for b, s in zip(spec.blocks, data.splits, strict=True)
    }
    z: dict[str, dict[int, np.ndarray]] = {b.party: {} for b in spec.blocks}
    label_z = None
    if spec.labels is Labels.SKETCHED:
        mechanism, code = spec.label_share(sketch)
        label_z = code.decode(
            code.encode(mechanism.perturb(J @ data.label.astype(np.int64), noise))
        )
    for t in range(spec.rounds):
        before = {name: dict(shared) for name, shared in z.items()}
        start = {name: coef.copy() for name, coef in x.items()}
        for b in solver.sampled(t):
            q = np.zeros(sketch.dim)
            for o in spec.blocks:
                if o.party != b.party:
                    for i, shared in before[o.party].items():
                        if start[o.party][i]:
                            trust = solver._trust(shared, spec.share(sketch)[0])
                            q += start[o.party][i] / COEF_UNIT * trust * shared
            if label_z is not None and not b.holds_label:
                q -= solver._trust(label_z, spec.label_share(sketch)[0]) * label_z
            deviation = math.sqrt(float(q @ q) / (sketch.dim * sketch.column_norm2)) / GRID
            c = round((1.0 + 2.0 * deviation) * CLIP_UNIT) / CLIP_UNIT
            u = np.zeros(data.label.size)
            for i, coef in enumerate(start[b.party]):
                u += coef / COEF_UNIT * A[b.party][i]
            if b.holds_label:
                u += -1.0 * data.label.astype(float)
            back = J.T @ np.rint(q * Q_UNIT).astype(np.int64)
            u = np.rint((u + 1.0 / Q_UNIT / sketch.column_norm2 * back.astype(float)) / c)
            r = np.clip(u, -GRID, GRID).astype(np.int64)
            allowed = np.arange(len(b.features))
            if b.shares and len(before[b.party]) >= b.shares:
                allowed = np.array(sorted(before[b.party]))
            g = A[b.party].astype(np.int64) @ r
            place, sign = selection.perturb(g[allowed], noise)
            i = int(allowed[place])
            if i not in before[b.party] and len(before[b.party]) < b.shares:
                mechanism, code = spec.share(sketch)
                exact = J @ A[b.party][i].astype(np.int64)
                z[b.party][i] = code.decode(code.encode(mechanism.perturb(exact, noise)))
            gamma = 2.0 / (spec.least_probability() * t + 2.0)
            moved = (1.0 - gamma) * start[b.party].astype(float)
            moved[i] -= gamma * b.radius * sign * COEF_UNIT
            x[b.party] = np.rint(moved).astype(np.int64)
    return {name: coef.tolist() for name, coef in x.items()}


CASES: list[dict[str, object]] = [
    {},
    {"sampling": Sampling.SERIAL},
    {"sampling": Sampling.NICE, "parties_per_round": 2},
    {"sampling": Sampling.GIVEN},
    {"labels": Labels.SKETCHED},
    {"sketch_entries": 4},
    {"dense_sketch": True, "sketch_dim": 1024, "prior": 1e18},  # full dimension: nothing is lost
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("noise", ["zero", "seeded"])
def test_a_federation_equals_the_reference_to_the_last_bit(
    case: dict[str, object], noise: str
) -> None:
    data = table()
    spec = spec_for(data, **case)
    if spec.sampling is Sampling.GIVEN:
        odds = (0.9, 0.5, 0.7)
        blocks = [replace(b, probability=p) for b, p in zip(spec.blocks, odds, strict=True)]
        spec = replace(spec, blocks=tuple(blocks))

    def make() -> NoiseSource:
        return ZeroNoise() if noise == "zero" else SeededNoise(4)

    state, _ = run(data, spec, make())
    found = {name: coef.tolist() for name, coef in state.coef.items()}
    assert found == reference(data, spec, make(), "job")
    assert any(any(coef) for coef in found.values())


@pytest.mark.parametrize("count", range(1, 9))
def test_a_federation_of_any_size_equals_the_reference(count: int) -> None:
    data = table(n_features=16, parties=count)
    spec = spec_for(data, rounds=4)
    state, _ = run(data, spec, ZeroNoise())
    assert {k: v.tolist() for k, v in state.coef.items()} == reference(
        data, spec, ZeroNoise(), "job"
    )


def test_without_noise_the_model_explains_the_label() -> None:
    # A selection takes the middle of the total weight: with a tiny scale that is the best one.
    data = table(n_rows=4000)
    spec = spec_for(data, rounds=40, select_units=units_down(100.0), share_units=units_down(500.0))
    spec = replace(spec, dense_sketch=True, sketch_dim=4096, prior=1e18)
    state, _ = run(data, spec, ZeroNoise())
    assert r2(data, state) > 0.9


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_job_never_costs_more_than_it_sets_aside(case: dict[str, object]) -> None:
    data = table()
    spec = spec_for(data, **case)
    _, members = run(data, spec, SeededNoise(9))
    for name, member in members.items():
        spent = member.ledger.budget().spent
        assert 0 < spent <= spec.max_units(name)


def test_used_up_shares_leave_the_shared_features_to_choose_from() -> None:
    data = table()
    spec = spec_for(data, rounds=12)
    state, members = run(data, spec, SeededNoise(2))
    for block in spec.blocks:
        shared = members[block.party].shared(before=12)
        assert len(shared) <= block.shares
        assert shared == frozenset(state.shared[block.party])
        if len(shared) == block.shares:
            assert set(np.flatnonzero(state.coef[block.party])) <= shared


def test_a_retried_task_gives_the_same_releases_and_a_mutated_one_none() -> None:
    from colonnade.core.errors import RequestConflict

    data = table()
    spec = spec_for(data)
    solver = FrankWolfe.of(spec, "job")
    member = parties(data, spec, "job", SeededNoise(1))["p0"]
    task = solver.tasks(solver.start())["p0"]
    first = member.choose(0, task.public, (), b"task")
    spent = member.ledger.budget().spent
    assert member.choose(0, task.public, (), b"task") == first
    assert member.ledger.budget().spent == spent
    with pytest.raises(RequestConflict):
        member.choose(0, task.public, (), b"other")


def test_a_task_for_features_that_are_not_there_is_refused_before_any_charge() -> None:
    data = table()
    spec = spec_for(data)
    member = parties(data, spec, "job", ScriptedNoise(0))["p0"]
    task = FrankWolfe.of(spec, "job").tasks(FrankWolfe.of(spec, "job").start())["p0"]
    for candidates in ((99,), (-1,)):
        with pytest.raises(BadInput):
            member.choose(0, task.public, candidates, b"task")
    with pytest.raises(BadInput):
        member.share_label(b"label")
    assert member.ledger.budget().spent == 0


def test_sampled_candidates_are_the_only_ones_chosen() -> None:
    data = table(n_features=24)
    spec = spec_for(data, features_per_round=2, rounds=3)
    solver = FrankWolfe.of(spec, "job")
    task = solver.tasks(solver.start())["p1"]
    assert len(task.candidates) == 2
    member = parties(data, spec, "job", SeededNoise(3))["p1"]
    picked = member.choose(0, task.public, task.candidates, b"task")[0]
    assert decode_choice(picked.body, 8)[0] in task.candidates


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": ()},
        {"rounds": 0},
        {"n_rows": 0},
        {"select_units": 0},
        {"share_units": 0},
        {"labels": Labels.SKETCHED, "blocks": None},
    ],
)
def test_an_impossible_job_is_refused(wrong: dict[str, object]) -> None:
    data = table()
    right = spec_for(data)
    if wrong.get("blocks", 1) is None:
        wrong = {**wrong, "blocks": right.blocks}
    with pytest.raises(ValueError, match=r"job|must|needs|label"):
        replace(right, **wrong)  # type: ignore[arg-type]
