"""Private block-coordinate Frank-Wolfe: both sides against a reference."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from support.entropy import ScriptedNoise
from support.vertical import Data, parties, r2, run

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.methods.base import payload
from colonnade.methods.column_moments import clipped_normal
from colonnade.methods.frank_wolfe.residual import CLIP_UNIT, COEF_UNIT, Q_UNIT, TaskParameters
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec, PartySampling, decode_choice
from colonnade.methods.problem import Labels, Loss
from colonnade.privacy.accounting import units_down
from colonnade.privacy.sampling import NoiseSource
from colonnade.privacy.simulation import SeededNoise, ZeroNoise

MEAN = units_down(0.1)


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


# -- both sides against a reference --------------------------------------------------------------


def reference(
    data: Data, spec: FrankWolfeSpec, noise: NoiseSource, job: str
) -> tuple[dict[str, list[int]], float]:
    """Run the job centrally, from the documented arithmetic alone, on dense matrices."""
    sketch, n = spec.sketch(job), data.label.size
    J = sketch.apply(np.eye(n, dtype=np.int16)).T
    solver = FrankWolfeSolver.of(spec, job)
    x = {b.party: np.zeros(len(b.features), np.int64) for b in spec.blocks}
    A = {
        b.party: data.columns[list(s)].astype(np.int64)
        for b, s in zip(spec.blocks, data.splits, strict=True)
    }
    y = data.label.astype(np.int64)
    means = {b.party: np.zeros(len(b.features)) for b in spec.blocks}
    sds = {b.party: np.ones(len(b.features)) for b in spec.blocks}
    y_mean, y_sd, label_z = 0.0, 1.0, None
    halved, local = 2.0 if spec.loss is Loss.LOGISTIC else 1.0, spec.local_rounds

    def clipped(column: np.ndarray, mean: float, sd: float) -> np.ndarray:
        moved = np.rint((column - mean * GRID) * (1 / (spec.share_clip * sd)))
        return np.clip(moved, -GRID, GRID).astype(np.int64)

    def trusted(z: np.ndarray, sigma2: int, sd: float) -> np.ndarray:
        blur, slope = sigma2 * (1 + 1 / 192), 1.0
        energy = max(float(z @ z) - z.size * blur, 0.02 * z.size * blur)
        if spec.mean_units:
            variance, covariance = clipped_normal(spec.share_clip)
            energy = sketch.column_norm2 * n * GRID**2 * variance
            slope = sd * covariance / variance
        return z * (slope * spec.prior / (spec.prior + 1 / z.size + blur / energy))

    for b in spec.blocks:
        owner = b.holds_label and spec.labels is Labels.SKETCHED
        if spec.mean_units:
            rows = A[b.party]
            if owner or (b is spec.blocks[0] and spec.labels is Labels.SHARED):
                rows = np.vstack([rows, y])
            mechanism, code = spec.means(b)
            exact = np.concatenate([rows.sum(axis=1), (rows**2 // GRID).sum(axis=1)])
            noisy = code.decode(code.encode(mechanism.perturb(exact, noise))) / (n * GRID)
            blur = mechanism.sigma2 / (n * GRID) ** 2
            mean = np.clip(noisy[: len(rows)], -1, 1) / (1 + blur / 0.1)
            sure = 1 / (1 + blur / 0.05**2)
            var = np.clip(noisy[len(rows) :] - mean**2, 0, 1) * sure + 0.15 * (1 - sure)
            means[b.party] = mean[: len(b.features)]
            sds[b.party] = np.maximum(np.sqrt(var), 0.05)
            if len(rows) > len(b.features):
                y_mean, y_sd = float(mean[-1]), float(sds[b.party][-1])
        if owner:
            mechanism, code = spec.label_share(sketch)
            column = clipped(y, y_mean, y_sd) if spec.mean_units else y
            label_z = code.decode(code.encode(mechanism.perturb(J @ column, noise)))
            label_z = trusted(label_z.astype(float), mechanism.sigma2, y_sd)
    z: dict[str, dict[int, np.ndarray]] = {b.party: {} for b in spec.blocks}
    picked: dict[str, set[int]] = {b.party: set() for b in spec.blocks}
    for t in range(spec.rounds):
        before = {name: dict(shared) for name, shared in z.items()}
        start = {name: coef.copy() for name, coef in x.items()}
        for b in solver.sampled(t + 1):
            q = np.zeros(sketch.dim)
            for o in spec.blocks:
                if o.party != b.party:
                    part = np.zeros(sketch.dim)
                    for i in sorted(before[o.party]):
                        part += start[o.party][i] / COEF_UNIT * before[o.party][i]
                    q += part
            if label_z is not None and not b.holds_label:
                q -= label_z
            cross = math.sqrt(float(q @ q) / (sketch.dim * sketch.column_norm2)) / GRID
            c = round(spec.clip * math.hypot(y_sd, cross) * CLIP_UNIT) / CLIP_UNIT
            offset = -float(start[b.party] @ means[b.party])
            offset += y_mean * COEF_UNIT if b.holds_label else 0.0
            u = np.full(n, round(offset) * GRID / COEF_UNIT)
            for i, coef in enumerate(start[b.party]):
                u += coef / COEF_UNIT * A[b.party][i]
            if b.holds_label:
                u += -1.0 * y
            back = J.T @ np.rint(q * Q_UNIT).astype(np.int64)
            u = np.rint((u + 1.0 / Q_UNIT / sketch.column_norm2 * back.astype(float)) / c)
            r = np.clip(u, -GRID, GRID).astype(np.int64)
            allowed = np.arange(len(b.features))
            if b.shares and (len(before[b.party]) >= b.shares or 0 < local <= t):
                allowed = np.array(sorted({*before[b.party], *picked[b.party]}))
            if not allowed.size:
                continue
            place, sign = spec.selection(t + 1).perturb((A[b.party] @ r)[allowed], noise)
            i = int(allowed[place])
            if t >= local and i not in before[b.party] and len(before[b.party]) < b.shares:
                mechanism, code = spec.share(sketch)
                sd, column = float(sds[b.party][i]), A[b.party][i]
                if spec.mean_units:
                    column = clipped(column, float(means[b.party][i]), sd)
                share = code.decode(code.encode(mechanism.perturb(J @ column, noise)))
                z[b.party][i] = trusted(share.astype(float), mechanism.sigma2, sd)
            gamma = 2.0 / (spec.least_probability() * (t - local if t >= local else t) + 2.0)
            moved = (1.0 - gamma) * start[b.party].astype(float)
            spread = math.sqrt(float(np.mean(sds[b.party][: len(b.features)] ** 2)))
            radius = b.radius / halved * y_sd / spread
            if 0 < local <= t:
                radius = radius * (len(picked[b.party]) + 1) / (b.shares + 1)
            moved[i] -= gamma * radius * sign * COEF_UNIT
            x[b.party] = np.rint(moved).astype(np.int64)
        if t + 1 == local:
            size = {}
            for b in spec.blocks:
                size[b.party] = np.abs(x[b.party]) * sds[b.party][: len(b.features)]
            least = 0.3 * max(part.max() for part in size.values())
            for b in spec.blocks:
                order = np.argsort(-size[b.party], kind="stable")[: b.shares]
                large = [int(i) for i in order if size[b.party][i] >= least]
                picked[b.party] = {i for i in large if x[b.party][i]}
                x[b.party] = np.zeros_like(x[b.party])
    own = sum(float(x[b.party] @ means[b.party]) for b in spec.blocks) / COEF_UNIT
    return {name: coef.tolist() for name, coef in x.items()}, y_mean - own


def first_public(solver: FrankWolfeSolver, party: str) -> TaskParameters:
    public = solver.tasks(solver.absorb(solver.start(), {}))[party].public
    assert public is not None
    return public


CASES: list[dict[str, object]] = [
    {},
    {"sampling": PartySampling.SERIAL},
    {"sampling": PartySampling.NICE, "parties_per_round": 2},
    {"sampling": PartySampling.GIVEN},
    {"labels": Labels.SKETCHED},
    {"sketch_entries": 4},
    {"dense_sketch": True, "sketch_dim": 1024, "prior": 1e18},  # full dimension: nothing is lost
    {"mean_units": MEAN},
    {"mean_units": MEAN, "labels": Labels.SKETCHED, "clip": 0.4},
    {"mean_units": MEAN, "sampling": PartySampling.SERIAL, "loss": Loss.LOGISTIC},
    {"mean_units": MEAN, "local_rounds": 3, "share_clip": 0.7},
    {"local_rounds": 3, "sampling": PartySampling.SERIAL},
    {"mean_units": MEAN, "local_rounds": 2, "labels": Labels.SKETCHED},
    {
        "mean_units": MEAN,
        "sampling": PartySampling.NICE,
        "parties_per_round": 2,
        "dense_sketch": True,
    },
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("noise", ["zero", "seeded"])
def test_a_federation_equals_the_reference_to_the_last_bit(
    case: dict[str, object], noise: str
) -> None:
    data = table()
    spec = spec_for(data, **case)
    if spec.sampling is PartySampling.GIVEN:
        odds = (0.9, 0.5, 0.7)
        blocks = [replace(b, probability=p) for b, p in zip(spec.blocks, odds, strict=True)]
        spec = replace(spec, blocks=tuple(blocks))

    def make() -> NoiseSource:
        return ZeroNoise() if noise == "zero" else SeededNoise(4)

    state, _ = run(data, spec, make())
    found = {name: coef.tolist() for name, coef in state.coef.items()}
    coef, intercept = reference(data, spec, make(), "job")
    assert found == coef
    assert FrankWolfeSolver.of(spec, "job").cross.intercept(state.coef, state.means) == intercept
    assert any(any(coef) for coef in found.values())


@pytest.mark.parametrize("count", range(1, 9))
def test_a_federation_of_any_size_equals_the_reference(count: int) -> None:
    data = table(n_features=16, parties=count)
    spec = spec_for(data, rounds=4, mean_units=MEAN)
    state, _ = run(data, spec, ZeroNoise())
    coef, intercept = reference(data, spec, ZeroNoise(), "job")
    assert {name: part.tolist() for name, part in state.coef.items()} == coef
    assert FrankWolfeSolver.of(spec, "job").cross.intercept(state.coef, state.means) == intercept


def test_without_noise_the_model_explains_the_label() -> None:
    # A selection takes the middle of the total weight: with a tiny scale that is the best one.
    data = table(n_rows=4000)
    spec = spec_for(data, rounds=40, select_units=units_down(100.0), share_units=units_down(500.0))
    spec = replace(spec, dense_sketch=True, sketch_dim=4096, prior=1e18)
    state, _ = run(data, spec, ZeroNoise())
    assert r2(data, spec, state) > 0.9


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_job_never_costs_more_than_it_sets_aside(case: dict[str, object]) -> None:
    data = table()
    spec = spec_for(data, **case)
    _, members = run(data, spec, SeededNoise(9))
    for name, member in members.items():
        spent = member.ledger.budget().spent
        assert 0 < spent <= spec.max_units(name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bytes_of_a_job_are_known_beforehand(case: dict[str, object]) -> None:
    data = table()
    spec = spec_for(data, **case)
    _, members = run(data, spec, SeededNoise(5))
    for name, member in members.items():
        sent: dict[str, int] = {}
        for key, kept in member.ledger.state.stored.items():
            sent[key.kind] = sent.get(key.kind, 0) + kept.body_bytes
            assert kept.body_bytes == spec.body_bytes(name, key.kind)
        most = payload(spec, name)
        assert all(count <= most[kind] for kind, count in sent.items())
        if spec.sampling in (PartySampling.ALL, PartySampling.SERIAL) and not spec.local_rounds:
            assert sent["select"] == most["select"]


def test_used_up_shares_leave_the_shared_features_to_choose_from() -> None:
    data = table()
    spec = spec_for(data, rounds=12)
    state, members = run(data, spec, SeededNoise(2))
    for block in spec.blocks:
        shared = members[block.party].shared(before=13)
        assert len(shared) == block.shares  # twelve rounds use them up
        assert shared == frozenset(state.shares[block.party])
        assert set(np.flatnonzero(state.coef[block.party])) <= shared


def test_a_retried_task_gives_the_same_releases_and_a_mutated_one_none() -> None:
    from colonnade.core.errors import RequestConflict

    data = table()
    spec = spec_for(data)
    solver = FrankWolfeSolver.of(spec, "job")
    member = parties(data, spec, "job", SeededNoise(1))["p0"]
    public = first_public(solver, "p0")
    first = member.choose(1, public, (), b"task")
    spent = member.ledger.budget().spent
    assert member.choose(1, public, (), b"task") == first
    assert member.ledger.budget().spent == spent
    with pytest.raises(RequestConflict):
        member.choose(1, public, (), b"other")


def test_a_task_that_does_not_fit_the_job_is_refused_before_any_charge() -> None:
    data = table()
    spec = spec_for(data)
    member = parties(data, spec, "job", ScriptedNoise(0))["p0"]
    public = first_public(FrankWolfeSolver.of(spec, "job"), "p0")
    for round_, told, candidates in (
        (1, public, (99,)),
        (1, public, (-1,)),
        (0, public, ()),
        (spec.rounds + 1, public, ()),
        (1, replace(public, coef=public.coef[1:]), ()),
        (1, replace(public, q=public.q[1:]), ()),
    ):
        with pytest.raises(BadInput):
            member.choose(round_, told, candidates, b"task")
    with pytest.raises(BadInput):
        member.open(b"open")  # this job has no opening
    assert member.ledger.budget().spent == 0


def test_sampled_candidates_are_the_only_ones_chosen() -> None:
    data = table(n_features=24)
    spec = spec_for(data, features_per_round=2, rounds=3)
    solver = FrankWolfeSolver.of(spec, "job")
    task = solver.tasks(solver.absorb(solver.start(), {}))["p1"]
    assert len(task.candidates) == 2
    assert task.public is not None
    member = parties(data, spec, "job", SeededNoise(3))["p1"]
    picked = member.choose(1, task.public, task.candidates, b"task")[0]
    assert decode_choice(picked.body, 8)[0] in task.candidates


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": ()},
        {"rounds": 0},
        {"n_rows": 0},
        {"select_units": 0},
        {"share_units": 0},
        {"mean_units": -1},
        {"clip": 0.0},
        {"share_clip": 0.0},
        {"local_rounds": 6},
        {"prior": math.nan},
        {"parties_per_round": 4},
        {"sketch_entries": 3},
        {"select_units": 1},
        {"labels": Labels.SKETCHED, "blocks": None},
    ],
)
def test_an_impossible_job_is_refused(wrong: dict[str, object]) -> None:
    data = table()
    right = spec_for(data)
    if wrong.get("blocks", 1) is None:
        wrong = {**wrong, "blocks": right.blocks}
    with pytest.raises(ValueError, match=r"job|must|needs|label|cannot|sparse"):
        replace(right, **wrong)  # type: ignore[arg-type]
