"""Local moments, shared directions, one solve: both sides of a job."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.entropy import ScriptedNoise

from colonnade.core.arrays import FloatArray
from colonnade.core.errors import BadInput, RequestConflict
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import (
    DIAGONAL,
    INNER_SENSITIVITY2,
    MAX_COEF,
    MAX_OFFSET,
    OFF_DIAGONAL,
    TRIANGLE_SENSITIVITY2,
    Projection,
    project,
)
from colonnade.linear.sums import sums
from colonnade.methods.base import Part, payload
from colonnade.methods.frank_wolfe.residual import MAX_CLIP, SCORE_SENSITIVITY, TaskParameters
from colonnade.methods.frank_wolfe.spec import decode_choice, encode_choice
from colonnade.methods.moments.rows import back_rows, sketch_sensitivity2
from colonnade.methods.moments.solver.contribution import intervals_of
from colonnade.methods.moments.solver.state import decode_state, encode_state
from colonnade.methods.moments.solver.steps import MomentsSolver, MomentsState
from colonnade.methods.moments.spec import (
    CROSS,
    GRAM,
    LABEL,
    MARGINALS,
    MEANS,
    SCREEN,
    SHARE,
    MomentsSpec,
    Stage,
)
from colonnade.methods.moments.tasks import Task
from colonnade.methods.problem import Labels, Loss
from colonnade.party.data.columns import HeldColumns
from colonnade.privacy.accounting import units_down
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.simulate.inprocess.moments import fit, model_of, parties, run
from colonnade.simulate.inprocess.vertical import Data, quality


def table(n_rows: int = 600, n_features: int = 12, parties: int = 3, seed: int = 0) -> Data:
    """Make columns with a common cause, and a label from the first and a middle one."""
    draw = np.random.default_rng(seed)
    common = draw.normal(0, 0.2, n_rows)
    values = np.clip(0.3 * draw.standard_normal((n_features, n_rows)) + common, -1, 1)
    columns = np.rint(values * GRID).astype(np.int16)
    signal = 0.5 * values[0] - 0.4 * values[n_features // 2]
    noisy = np.clip(signal + draw.normal(0, 0.1, n_rows), -1, 1)
    cuts = [n_features * k // parties for k in range(parties + 1)]
    splits = tuple(tuple(range(a, b)) for a, b in itertools.pairwise(cuts))
    return Data(columns, np.rint(noisy * GRID).astype(np.int16), splits)


def spec_for(data: Data, *, owner: int | None = None, **changes: object) -> MomentsSpec:
    count = len(data.splits)
    price = units_down(0.2) if count > 1 else 0
    parts = tuple(
        Part(
            party=f"p{k}",
            features=tuple(f"x{i}" for i in split),
            holds_label=owner in (None, k),
        )
        for k, split in enumerate(data.splits)
    )
    base = MomentsSpec(
        n_rows=data.label.size,
        parts=parts,
        mean_units=units_down(0.05),
        gram_units=units_down(0.1),
        share_units=price,
        cross_units=price,
        directions=2,
        probes=3,
        sketch_dim=64,
        labels=Labels.SHARED if owner is None else Labels.SKETCHED,
        label_units=0 if owner is None else units_down(0.2),
        marginal_units=0 if owner is None else units_down(0.2),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


SCREENED: dict[str, object] = {"keep": 3, "screen_units": units_down(0.02)}
CASES: list[dict[str, object]] = [
    {},
    {"owner": 1},
    {"owner": 2, "loss": Loss.LOGISTIC},
    SCREENED,
    {**SCREENED, "owner": 0},
    {"directions": 9, "probes": 9},  # more than any party has features
    {"directions": 1, "probes": 1},
]


def released(state: MomentsState) -> int:
    return sum(len(held) for held in state.bodies.values()) + sum(map(len, state.choices.values()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_job_costs_exactly_what_it_sets_aside_and_sends_what_was_known_beforehand(
    case: dict[str, object],
) -> None:
    data = table()
    spec = spec_for(data, **case)  # type: ignore[arg-type]
    state, members = run(data, spec, SeededNoise(9))
    assert released(state) == sum(sum(spec.max_releases(name).values()) for name in members)
    for name, member in members.items():
        assert member.ledger.budget().spent == spec.max_units(name) > 0
        sent: dict[str, int] = {}
        for key, kept in member.ledger.state.stored.items():
            sent[key.kind] = sent.get(key.kind, 0) + kept.body_bytes
        assert sent == payload(spec, name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_state_follows_from_the_releases_to_the_last_bit(case: dict[str, object]) -> None:
    data = table()
    spec = spec_for(data, **case)  # type: ignore[arg-type]
    solver = MomentsSolver(spec, "job")
    members = parties(data, spec, "job", SeededNoise(3))
    state, other = solver.start(), MomentsSolver(spec, "job").start()
    while not solver.finished(state):
        resumed = decode_state(solver.spec, encode_state(solver.spec, state))
        assert encode_state(solver.spec, resumed) == encode_state(solver.spec, state)
        tasks, again = solver.tasks(state), solver.tasks(resumed)
        assert list(tasks) == list(again)
        answers = {}
        for name, task in tasks.items():
            assert repr(task) == repr(again[name])
            kinds = {each.key.kind: each.body for each in members[name].answer(task, b"t")}
            answers[name] = kinds
        # A second coordinator hears the same answers in another order.
        turned = {name: dict(reversed(answers[name].items())) for name in reversed(answers)}
        state, other = solver.absorb(resumed, answers), solver.absorb(other, turned)
        assert encode_state(solver.spec, state) == encode_state(solver.spec, other)
    assert any(coef.any() for coef in state.coef.values())


@pytest.mark.parametrize("owner", [None, 1])
def test_without_noise_every_release_is_the_documented_sum(owner: int | None) -> None:
    data = table(n_rows=200)
    spec = spec_for(data, owner=owner, **SCREENED)
    solver, sketch = MomentsSolver(spec, "job"), spec.sketch("job")
    J = sketch.apply(np.eye(200, dtype=np.int16)).T
    members, state = parties(data, spec, "job", ZeroNoise()), solver.start()
    seen = set()
    while not solver.finished(state):
        answers = {}
        for name, task in solver.tasks(state).items():
            part, columns = spec.part(name), members[name].columns
            bodies = {each.key.kind: each.body for each in members[name].answer(task, b"t")}
            rows = None
            if task.projection is not None:
                rows = project(columns.features, columns.label, task.projection).astype(np.int64)
            expected: dict[str, list[int]] = {}
            if MEANS in bodies:
                held = [*columns.features]
                held += [columns.label] if spec.sums_label(part) else []
                pairs = [sums(column) for column in held]
                expected[MEANS] = [p[0] for p in pairs] + [p[1] for p in pairs]
            if GRAM in bodies and rows is not None:
                size = len(rows)
                expected[GRAM] = [
                    int(rows[i] @ rows[j]) * (DIAGONAL if i == j else OFF_DIAGONAL)
                    for i in range(size)
                    for j in range(i, size)
                ]
            for kind in (LABEL, SHARE):
                if kind in bodies and rows is not None:
                    expected[kind] = (rows @ J.T).reshape(-1).tolist()
            for kind in (MARGINALS, CROSS):
                if kind in bodies and rows is not None and task.sketches is not None:
                    back = back_rows(task.sketches, sketch, start=0, stop=200).astype(np.int64)
                    expected[kind] = (rows @ back.T).reshape(-1).tolist()
            for kind, exact in expected.items():
                code = spec.made(part, kind)[1]
                assert bodies[kind] == code.encode(np.array(exact, np.int64))
            seen |= set(bodies)
            answers[name] = bodies
        state = solver.absorb(state, answers)
    wanted = {MEANS, SCREEN, GRAM, SHARE, CROSS} | ({LABEL, MARGINALS} if owner else set())
    assert seen == wanted


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 5, 10])
def test_without_noise_the_model_is_near_least_squares_for_any_number_of_parties(
    count: int,
) -> None:
    data = table(n_rows=30_000, n_features=20, parties=count)
    high = units_down(200.0)
    spec = spec_for(data, directions=20, probes=20, sketch_dim=8192, gram_units=high)
    if count > 1:
        spec = replace(spec, share_units=high, cross_units=high)
    spec = replace(spec, mean_units=high, radius=20.0, share_clip=1.5)
    found = quality(data, fit(data, spec, ZeroNoise()), Loss.SQUARED)
    X, y = data.columns / GRID, data.label / GRID
    X = np.vstack([X, np.ones(y.size)]).T
    best = 1 - ((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2).mean() / y.var()
    # The sketch's collisions alone leave an error of about 1 / sqrt(8192) in each product.
    assert best - 0.03 < found <= best + 1e-9


def alone(spec: MomentsSpec) -> MomentsSpec:
    return replace(spec, share_units=0, cross_units=0)


def test_sharing_directions_explains_what_parties_have_in_common() -> None:
    data = table(n_rows=20_000)
    spec = spec_for(data, sketch_dim=1024)
    with_, without = (
        quality(data, fit(data, each, SeededNoise(1)), Loss.SQUARED) for each in (spec, alone(spec))
    )
    assert with_ > without + 0.05
    assert [stage for stage in alone(spec).stages() if stage in (Stage.SHARE, Stage.CROSS)] == []


def extreme(kind: str) -> Data:
    data = table(n_rows=3000)
    columns, label = data.columns.copy(), data.label.copy()
    if kind == "binary":
        columns = np.where(columns > 0, GRID, -GRID).astype(np.int16)
        label = np.where(label > 0, GRID, -GRID).astype(np.int16)
    if kind == "constant":
        columns[:4] = 0
    if kind == "collinear":
        columns[4:8] = columns[:4]
        columns[1] = columns[0]
    if kind == "heavy":
        draw = np.random.default_rng(5)
        heavy = draw.standard_t(1.5, columns.shape) * 0.02
        columns = np.rint(np.clip(heavy, -1, 1) * GRID).astype(np.int16)
        label = np.clip(columns[0].astype(int) + columns[6], -GRID, GRID).astype(np.int16)
    if kind == "useless":
        columns[:4] = np.random.default_rng(6).integers(-GRID, GRID, (4, 3000))
    if kind == "few rows":
        columns, label = columns[:, :20], label[:20]
    return replace(data, columns=columns, label=label)


@pytest.mark.parametrize(
    "kind", ["binary", "constant", "collinear", "heavy", "useless", "few rows"]
)
@pytest.mark.parametrize("radius", [2.5, 20.0])
def test_hard_tables_give_a_finite_model_that_does_little_harm(kind: str, radius: float) -> None:
    data = extreme(kind)
    spec = spec_for(data, radius=radius, sketch_dim=16 if kind == "few rows" else 64)
    model = fit(data, spec, SeededNoise(2))
    assert all(np.isfinite(coef).all() for coef in model.coefs)
    least = -20.0 if kind == "few rows" else 0.1  # noise is all there is in twenty rows
    assert quality(data, model, Loss.SQUARED) > least


def test_screening_keeps_what_the_label_depends_on() -> None:
    data = table(n_rows=20_000, n_features=60, parties=2)
    spec = spec_for(data, keep=6, screen_units=units_down(0.02), sketch_dim=1024)
    state, _ = run(data, spec, SeededNoise(4))
    solver = MomentsSolver(spec, "job")
    kept = [solver.kept(state, part) for part in spec.parts]
    assert 0 in kept[0]
    assert 0 in kept[1]  # column 30 is the second party's first
    assert all(len(set(each)) == 6 for each in kept)
    for part, each in zip(spec.parts, kept, strict=True):
        assert set(np.flatnonzero(state.coef[part.party])) <= set(each)
    assert quality(data, model_of(spec, state), Loss.SQUARED) > 0.6


def test_an_intercept_is_found_for_columns_off_the_middle() -> None:
    data = table(n_rows=20_000)
    moved = replace(
        data,
        columns=np.clip(data.columns.astype(int) + 5000, -GRID, GRID).astype(np.int16),
        label=np.clip(data.label.astype(int) // 2 - 6000, -GRID, GRID).astype(np.int16),
    )
    model = fit(moved, spec_for(moved, sketch_dim=1024), SeededNoise(1))
    error = (model.predict(moved) - moved.label / GRID).mean()
    # Means carry noise of sqrt(2 * 5 / (2 * 0.05)) / 20000 = 5e-4 each, times coefficients < 1.
    assert abs(error) < 0.005


# -- what a coordinator may not do -----------------------------------------------------------------


def wild(part: Part, n_outputs: int, seed: int) -> Projection:
    draw = np.random.default_rng(seed)
    shape = (n_outputs, len(part.features) + part.holds_label)
    return Projection(
        draw.choice([-MAX_COEF, 0, 1, MAX_COEF], shape),
        draw.choice([-MAX_OFFSET, 0, MAX_OFFSET], n_outputs),
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_hostile_task_of_the_right_shape_costs_no_more_than_an_honest_one(seed: int) -> None:
    data = table()
    spec = spec_for(data, **SCREENED)  # type: ignore[arg-type]
    stages, member = spec.stages(), parties(data, spec, "job", SeededNoise(1))["p1"]
    part = spec.part("p1")
    draw = np.random.default_rng(seed)
    for round_, stage in enumerate(stages):
        outputs = {
            Stage.GRAM: spec.n_gram(part),
            Stage.SHARE: spec.n_directions(part),
            Stage.CROSS: spec.n_probes(part),
        }.get(stage)
        task = Task(round_)
        if outputs is not None:
            q = draw.choice([-(2**56), 2**56], (spec.n_others(part), 64))
            task = Task(round_, wild(part, outputs, seed), q if stage is Stage.CROSS else None)
        if stage is Stage.SCREEN:
            far = np.full(4, 2**52)
            task = Task(round_, public=TaskParameters(far, np.full(64, -(2**56)), 2**30, MAX_CLIP))
        member.answer(task, b"t")
    assert member.ledger.budget().spent == spec.max_units("p1")


def test_a_task_that_does_not_fit_the_job_is_refused_before_any_charge() -> None:
    data = table()
    spec = spec_for(data, **SCREENED)  # type: ignore[arg-type]
    member = parties(data, spec, "job", ScriptedNoise(0))["p2"]
    part, gram = spec.part("p2"), 1 + 3
    share, cross = gram + 1, gram + 2
    right = wild(part, spec.n_gram(part), 0)
    q = np.zeros((spec.n_others(part), 64), np.int64)
    public = TaskParameters(np.zeros(4, np.int64), np.zeros(64, np.int64), 0, 1)
    for task in (
        Task(-1),
        Task(len(spec.stages())),
        Task(0, right),
        Task(1),
        Task(1, public=public, candidates=(4,)),
        Task(1, public=public, candidates=(-1,)),
        Task(1, public=replace(public, q=np.zeros(63, np.int64))),
        Task(1, public=replace(public, coef=np.zeros(5, np.int64))),
        Task(gram),
        Task(gram, wild(part, spec.n_gram(part) + 1, 0)),
        Task(gram, Projection(right.coef[:, 1:], right.offset)),
        Task(gram, right, q[:1]),
        Task(gram, right, public=public),
        Task(share, wild(part, 3, 0)),
        Task(cross, wild(part, spec.n_probes(part), 0)),
        Task(cross, wild(part, spec.n_probes(part), 0), q[1:]),
        Task(cross, wild(part, spec.n_probes(part), 0), q[:, 1:]),
    ):
        with pytest.raises(BadInput):
            member.answer(task, b"t")
    assert member.ledger.budget().spent == 0


def test_a_retried_task_gives_the_same_releases_and_a_mutated_one_none() -> None:
    data = table()
    spec = spec_for(data)
    member = parties(data, spec, "job", SeededNoise(1))["p0"]
    first = member.answer(Task(0), b"task")
    spent = member.ledger.budget().spent
    assert member.answer(Task(0), b"task") == first
    assert member.ledger.budget().spent == spent
    with pytest.raises(RequestConflict):
        member.answer(Task(0), b"other")


def test_a_table_without_the_label_is_refused_where_the_job_counts_on_it() -> None:
    data = table()
    spec = spec_for(data)
    member = parties(data, spec, "job", SeededNoise(1))["p0"]
    without = replace(member, columns=HeldColumns(member.columns.features, None))
    with pytest.raises(BadInput, match="label"):
        without.answer(Task(0), b"task")
    assert member.ledger.budget().spent == 0


def test_an_answer_of_other_kinds_or_sizes_is_refused() -> None:
    data = table()
    spec = spec_for(data, **SCREENED)  # type: ignore[arg-type]
    solver = MomentsSolver(spec, "job")
    state = solver.start()
    size = spec.body_bytes("p0", MEANS)
    solver.check(state, "p0", {MEANS: bytes(size)})
    for party, bodies in (
        ("nobody", {MEANS: bytes(size)}),
        ("p0", {}),
        ("p0", {GRAM: bytes(size)}),
        ("p0", {MEANS: bytes(size + 1)}),
        ("p0", {MEANS: bytes(size), GRAM: b""}),
    ):
        with pytest.raises(BadInput):
            solver.check(state, party, bodies)
    means = {part.party: {MEANS: bytes(spec.body_bytes(part.party, MEANS))} for part in spec.parts}
    state = solver.absorb(state, means)
    with pytest.raises(BadInput, match="no feature"):
        solver.check(state, "p0", {SCREEN: encode_choice(4, 1)})
    chosen = {part.party: {SCREEN: encode_choice(2, -1)} for part in spec.parts}
    state = solver.absorb(state, chosen)
    with pytest.raises(BadInput, match="not asked"):
        solver.check(state, "p0", {SCREEN: encode_choice(2, 1)})
    assert solver.tasks(state)["p0"].candidates == (0, 1, 3)
    assert decode_choice(chosen["p0"][SCREEN], 4) == state.choices["p0"][0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_rows": 0},
        {"n_rows": 2**28 + 1},
        {"parts": ()},
        {"mean_units": 0},
        {"gram_units": 0},
        {"directions": 0},
        {"directions": 4, "probes": 3},
        {"keep": 2},
        {"keep": -1},
        {"keep": 2, "screen_units": 1},
        {"labels": Labels.SKETCHED},
        {"radius": 0.0},
        {"reach": float("nan")},
        {"share_clip": 1000.0},
        {"label_weight": float("inf")},
        {"sketch_dim": 0},
        {"share_units": 0},
        {"cross_units": 0},
        {"share_units": -1},
        {"penalty": -1.0},
    ],
)
def test_an_impossible_job_is_refused(wrong: dict[str, object]) -> None:
    spec = spec_for(table())
    with pytest.raises(ValueError, match=r"."):
        replace(spec, **wrong)  # type: ignore[arg-type]


def predictions(data: Data, coefs: list[FloatArray]) -> FloatArray:
    total = np.zeros(data.label.size)
    for coef, split in zip(coefs, data.splits, strict=True):
        total += coef @ (data.columns[list(split)] / GRID)
    return total


def test_a_sketched_label_is_learned_by_those_who_do_not_hold_it() -> None:
    data = table(n_rows=50_000)
    spec = spec_for(data, owner=2, sketch_dim=2048)
    model = fit(data, spec, SeededNoise(3))
    assert quality(data, model, Loss.SQUARED) > 0.4
    others = predictions(data, [model.coefs[0], model.coefs[1], 0 * model.coefs[2]])
    assert np.corrcoef(others, data.label)[0, 1] > 0.3


@pytest.mark.parametrize("fill", ["zeros", "ones", "random", "copied"])
@pytest.mark.parametrize("case", [{}, {"owner": 1}, SCREENED], ids=str)
def test_no_answer_of_the_right_size_stops_the_coordinator(
    fill: str, case: dict[str, object]
) -> None:
    spec = spec_for(table(), **case)  # type: ignore[arg-type]
    solver, draw = MomentsSolver(spec, "job"), np.random.default_rng(8)
    state = solver.start()
    while not solver.finished(state):
        answers: dict[str, dict[str, bytes]] = {}
        for name in solver.tasks(state):
            answers[name] = {}
            for kind in spec.round_kinds(state.round, spec.part(name)):
                size = spec.body_bytes(name, kind)
                body = {"zeros": bytes(size), "ones": b"\xff" * size}.get(fill, draw.bytes(size))
                if fill == "copied":  # all parties send the same sketches
                    body = np.random.default_rng(9).bytes(size)
                if kind == SCREEN:
                    body = encode_choice(len(state.choices[name]), 1)
                answers[name][kind] = body
            solver.check(state, name, answers[name])
        state = solver.absorb(state, answers)
        body = encode_state(spec, state)
        assert encode_state(spec, decode_state(spec, body)) == body
    assert all(np.abs(coef).max() < 2**53 for coef in state.coef.values())
    found = intervals_of(solver, state)
    assert np.isfinite(found.error).all()


def test_every_release_is_priced_for_the_sensitivity_that_was_proved() -> None:
    spec = spec_for(table(), owner=1, **SCREENED)
    part, sketch = spec.part("p0"), spec.sketch("job")
    proved = {
        MEANS: (2 * GRID) ** 2 * len(part.features),
        GRAM: TRIANGLE_SENSITIVITY2,
        LABEL: sketch_sensitivity2(sketch),
        SHARE: sketch_sensitivity2(sketch),
        MARGINALS: INNER_SENSITIVITY2,
        CROSS: INNER_SENSITIVITY2,
    }
    for kind, sensitivity2 in proved.items():
        assert spec.made(part, kind)[0].l2_sensitivity2 == sensitivity2
    assert spec.selection().sensitivity == SCORE_SENSITIVITY
    with pytest.raises(ValueError, match="no numbers"):
        spec.made(part, SCREEN)


def test_a_screened_feature_is_given_the_sign_that_explains_the_label() -> None:
    data = table(n_rows=5000, n_features=20, parties=2)
    spec = spec_for(data, keep=3, screen_units=units_down(0.5))
    solver = MomentsSolver(spec, "job")
    members, state = parties(data, spec, "job", SeededNoise(1)), solver.start()
    for _ in range(2):  # means, then a first choice
        answers = {
            name: {each.key.kind: each.body for each in members[name].answer(task, b"t")}
            for name, task in solver.tasks(state).items()
        }
        state = solver.absorb(state, answers)
    for name, split in zip(members, data.splits, strict=True):
        public = solver.tasks(state)[name].public
        assert public is not None
        ((feature, _),) = state.choices[name]
        slope = float(np.corrcoef(data.columns[split[feature]], data.label)[0, 1])
        assert abs(slope) > 0.1
        assert np.sign(public.coef[feature]) == np.sign(slope)
        assert np.count_nonzero(public.coef) == 1
