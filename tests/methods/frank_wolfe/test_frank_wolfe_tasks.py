"""What a coordinator asks for and accepts, and what a job of each kind reveals at most."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from support.audit import numeric_audit
from support.entropy import ShakeNoise
from support.vertical import Data, parties, run

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.gate import Gate
from colonnade.methods.frank_wolfe.solver.steps import FrankWolfeSolver, Iterate
from colonnade.methods.frank_wolfe.spec import FrankWolfeSpec, PartySampling, encode_choice
from colonnade.methods.problem import Labels
from colonnade.privacy.accounting import rho_from_units, units_down
from colonnade.privacy.mechanisms import DiscreteGaussian, Mechanism, SignedSelection
from colonnade.privacy.simulation import SeededNoise, ZeroNoise

RHO = 0.5


def job(**changes: object) -> tuple[Data, FrankWolfeSpec]:
    columns = np.random.default_rng(3).integers(-GRID, GRID + 1, (6, 300), dtype=np.int16)
    data = Data(columns, columns[0], ((0, 1, 2), (3, 4, 5)))
    owner = 1 if changes.get("labels") is Labels.SKETCHED else None
    spec = FrankWolfeSpec(
        n_rows=300,
        blocks=data.blocks(radius=1.0, shares=1, owner=owner),
        rounds=5,
        sketch_dim=16,
        sketch_entries=1,
        select_units=units_down(RHO),
        share_units=units_down(RHO),
        label_units=units_down(RHO) if owner else 0,
        mean_units=units_down(RHO),
        labels=Labels.SKETCHED if owner else Labels.SHARED,
    )
    return data, replace(spec, **changes)  # type: ignore[arg-type]


def opened(data: Data, spec: FrankWolfeSpec) -> tuple[FrankWolfeSolver, Iterate]:
    solver, members = FrankWolfeSolver.of(spec, "job"), parties(data, spec, "job", SeededNoise(1))
    answers = {}
    for name in solver.tasks(solver.start()):
        answers[name] = {item.key.kind: item.body for item in members[name].open(b"open")}
        solver.check(solver.start(), name, answers[name])
    return solver, solver.absorb(solver.start(), answers)


def bodies_of(spec: FrankWolfeSpec, **bodies: int | None) -> Mapping[str, bytes]:
    """Return bodies by kind: a selection of that feature, anything else of its right size."""
    made = {}
    for kind, feature in bodies.items():
        if kind == "select" and feature is not None:
            made[kind] = encode_choice(feature, 1)
        else:
            made[kind] = bytes(spec.body_bytes("p0", kind))
    return made


def test_an_opening_has_the_kinds_that_the_job_needs() -> None:
    data, spec = job(labels=Labels.SKETCHED)
    solver, state = opened(data, spec)
    assert spec.opening(spec.blocks[0]) == ("means",)
    assert spec.opening(spec.blocks[1]) == ("means", "label")
    assert state.label is not None
    assert set(state.means) == {"p0", "p1"}
    with pytest.raises(BadInput, match=r"means.*'p0'"):
        solver.check(solver.start(), "p0", {})
    with pytest.raises(BadInput, match="label, means"):
        solver.check(solver.start(), "p0", bodies_of(spec, means=None, label=None))


def test_a_job_that_opens_with_nothing_asks_nothing_and_goes_on() -> None:
    _, spec = job(mean_units=0)
    solver = FrankWolfeSolver.of(spec, "job")
    assert solver.tasks(solver.start()) == {}
    state = solver.absorb(solver.start(), {})
    assert state.round == 1
    assert set(solver.tasks(state)) == {"p0", "p1"}


def test_a_share_comes_with_a_new_feature_and_with_no_other() -> None:
    data, spec = job()
    solver, state = opened(data, spec)
    new = bodies_of(spec, select=2, share=None)
    solver.check(state, "p0", new)
    with pytest.raises(BadInput, match="select, share"):
        solver.check(state, "p0", bodies_of(spec, select=2))
    state = solver.absorb(state, {"p0": new, "p1": new})
    solver.check(state, "p0", bodies_of(spec, select=2))
    with pytest.raises(BadInput, match="select"):
        solver.check(state, "p0", new)
    with pytest.raises(BadInput, match="asked"):  # its one share is used up
        solver.check(state, "p0", bodies_of(spec, select=1))


@pytest.mark.parametrize(
    ("party", "bodies", "reason"),
    [
        ("p9", {"select": encode_choice(0, 1)}, "job"),
        ("p0", {}, "select"),
        ("p0", {"select": b"\0\0\0"}, "feature"),
        ("p0", {"select": encode_choice(3, 1)}, "feature"),
        ("p0", {"select": encode_choice(1, 1), "share": b"\0"}, "instead of"),
        ("p0", {"select": encode_choice(1, 1), "means": b"\0"}, "select, share"),
    ],
)
def test_what_was_not_asked_for_is_refused(
    party: str, bodies: dict[str, bytes], reason: str
) -> None:
    data, spec = job()
    solver, state = opened(data, spec)
    with pytest.raises(BadInput, match=reason):
        solver.check(state, party, bodies)


def test_who_is_not_asked_in_a_round_owes_nothing_and_after_the_last_nobody_does() -> None:
    data, spec = job(sampling=PartySampling.SERIAL)
    solver, state = opened(data, spec)
    assert set(solver.tasks(state)) == {"p0"}
    with pytest.raises(BadInput, match="'p1'"):
        solver.check(state, "p1", bodies_of(spec, select=0, share=None))
    over = replace(state, round=spec.rounds + 1)
    assert solver.finished(over)
    assert solver.tasks(over) == {}
    with pytest.raises(BadInput, match="over"):
        solver.check(over, "p0", {})


def test_an_iterate_depends_on_releases_and_not_on_their_order() -> None:
    data, spec = job(blocks=job()[0].blocks(radius=1.0, shares=3))
    _, state = opened(data, spec)
    shares = {i: bytes([i]) * spec.body_bytes("p0", "share") for i in range(3)}
    coef = {name: np.array([5, 7, 11]) << 28 for name in state.coef}
    tasks = []
    for order in ((0, 1, 2), (2, 0, 1)):
        mine = {i: shares[i] for i in order}
        seen = replace(state, coef=coef, shares={"p0": mine, "p1": mine})
        tasks.append(FrankWolfeSolver.of(spec, "job").tasks(seen)["p1"].public)
    assert tasks[0] is not None
    assert tasks[1] is not None
    assert tasks[0].q.tolist() == tasks[1].q.tolist()
    assert tasks[0].q.any()


# -- audits: what each kind reveals of one row stays under its price -----------------------------


def released_value(kind: str, last_row: int) -> tuple[Mechanism, np.ndarray]:
    """Return mechanism and exact value of a release, as they reach the gate."""
    data, spec = job(labels=Labels.SKETCHED)
    columns, label = data.columns.copy(), data.label.copy()
    columns[:, -1] = last_row
    label[-1] = GRID if kind == "select" else last_row  # both turned over leave a product as it is
    member = parties(Data(columns, label, data.splits), spec, "job", ZeroNoise())["p1"]
    caught: dict[str, tuple[Mechanism, np.ndarray]] = {}
    release = Gate.release

    def spy(self, key, request, mechanism, compute, **rest):  # type: ignore[no-untyped-def]
        caught[key.kind] = (mechanism, compute())
        return release(self, key, request, mechanism, compute, **rest)

    solver, state = opened(data, spec)
    public = solver.tasks(state)["p1"].public
    assert public is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "release", spy)
        member.open(b"open")
        member.choose(1, public, (0,), b"task")
    return caught[kind]


@pytest.mark.parametrize("kind", ["means", "label", "share"])
def test_a_release_reveals_no_more_than_it_costs_and_half_its_noise_is_caught(kind: str) -> None:
    mechanism, low = released_value(kind, -GRID)
    _, high = released_value(kind, GRID)
    assert isinstance(mechanism, DiscreteGaussian)
    assert rho_from_units(mechanism.cost) == pytest.approx(RHO)
    shown = numeric_audit(mechanism, (low, high), ShakeNoise(kind))
    assert 0.5 * RHO < shown <= RHO  # the row moves as far as it can: the pair is the worst one
    halved = DiscreteGaussian(mechanism.sigma2 // 4, mechanism.l2_sensitivity2)
    assert numeric_audit(halved, (low, high), ShakeNoise(kind)) > RHO


def test_a_selection_is_priced_for_the_most_that_a_row_can_move_a_score() -> None:
    mechanism, low = released_value("select", -GRID)
    _, high = released_value("select", GRID)
    assert isinstance(mechanism, SignedSelection)
    assert mechanism.cost <= units_down(RHO)
    assert 0 < int(np.abs(high - low).max()) <= mechanism.sensitivity == 2 * GRID**2


# -- local rounds --------------------------------------------------------------------------------


def local_job(n_rows: int = 3000) -> tuple[Data, FrankWolfeSpec]:
    """Return a job whose second party has nothing to say."""
    columns = np.random.default_rng(8).integers(-GRID, GRID + 1, (6, n_rows), dtype=np.int16)
    data = Data(columns, columns[0] // 2 + columns[1] // 4, ((0, 1, 2), (3, 4, 5)))
    spec = FrankWolfeSpec(
        n_rows=n_rows,
        blocks=data.blocks(radius=1.5, shares=2),
        rounds=14,
        sketch_dim=16,
        sketch_entries=1,
        select_units=units_down(50.0),
        share_units=units_down(1.0),
        label_units=0,
        mean_units=units_down(5.0),
        local_rounds=8,
    )
    return data, spec


def test_local_rounds_share_nothing_and_pick_what_is_shared() -> None:
    data, spec = local_job()
    state, members = run(data, spec, SeededNoise(3))
    stored = members["p0"].ledger.state.stored
    rounds = [key.round for key in stored if key.kind == "share"]
    assert rounds
    assert min(rounds) > spec.local_rounds
    assert set(state.shares["p0"]) == {0, 1}  # the two that matter, and no third
    assert set(np.flatnonzero(state.coef["p0"])) <= {0, 1}


def test_a_party_with_nothing_to_share_sits_out_after_the_local_rounds() -> None:
    data, spec = local_job()
    state, members = run(data, spec, SeededNoise(3))
    solver = FrankWolfeSolver.of(spec, "job")
    assert state.shares["p1"] == {}
    assert not state.coef["p1"].any()
    late = replace(state, round=spec.rounds)
    assert set(solver.tasks(late)) == {"p0"}
    with pytest.raises(BadInput, match="'p1'"):
        solver.check(late, "p1", bodies_of(spec, select=0))
    asked = [key.round for key in members["p1"].ledger.state.stored if key.kind == "select"]
    assert max(asked) == spec.local_rounds


def test_a_local_selection_costs_a_quarter_and_the_sum_is_what_is_set_aside() -> None:
    _, spec = local_job()
    assert 4 * spec.select_price(1) == spec.select_price(9) == spec.select_units
    price = 8 * spec.select_price(1) + 6 * spec.select_units
    assert spec.units_by_kind("p0")["select"] == price
    sketched = job(labels=Labels.SKETCHED, local_rounds=2)[1]
    assert sketched.select_price(1) == sketched.select_units  # it sees the label through noise


def test_a_larger_radius_per_deviation_moves_further() -> None:
    # The same data under bounds twice as wide: the same model in the data's own units.
    data, spec = local_job()
    half = Data(data.columns // 2, data.label, data.splits)
    found = []
    for table in (data, half):
        solver, state = opened(table, spec)
        answers = {name: bodies_of(spec, select=0) for name in ("p0", "p1")}
        found.append(solver.coefficients(solver.absorb(state, answers))["p0"][0])
    # Released deviations carry noise of about sqrt(4) / (3000 sqrt(2 * 5)) = 2e-4.
    assert found[1] == pytest.approx(2 * found[0], rel=0.02)
