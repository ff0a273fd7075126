"""A sealed job in one process: products, prices, sizes, ledgers, plans."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.ledgers import new_ledger
from support.sealed import (
    JOB,
    ErrorsOnly,
    before,
    problem_of,
    request_of,
    small_data,
    small_spec,
)

from colonnade.core.arrays import IntArray
from colonnade.core.errors import BadInput, BadMessage, VerificationFailed
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.export import export_lines, verify_export
from colonnade.linear.ball import project
from colonnade.methods.base import Part, payload
from colonnade.methods.moments.solver.scales import Scales
from colonnade.methods.problem import Loss, Problem
from colonnade.methods.sealed.charges import MAX_KEY_BITS, millibits, replied_millibits
from colonnade.methods.sealed.kinds import (
    OPEN,
    REPLIES,
    REPLY,
    SEAL,
    SEALED,
    SealedStage,
    numbered,
    parsed,
)
from colonnade.methods.sealed.packing import HIGH_FIELD, LOW_FIELD
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.products import Prices, key_bits, peer_bits
from colonnade.methods.sealed.rounds import turns
from colonnade.methods.sealed.scheme import KeyContext, SecretKey
from colonnade.methods.sealed.solver.screening import greedy
from colonnade.methods.sealed.solver.steps import SealedSolver
from colonnade.methods.sealed.spec import SealedSpec
from colonnade.party.methods.sealed_keys import FileKeys, MemoryKeys
from colonnade.privacy.accounting import rho_of, units_down
from colonnade.privacy.sampling import NoiseSource, OsNoise
from colonnade.privacy.simulation import SeededNoise
from colonnade.simulate.inprocess.vertical import Data, quality

pytest.importorskip("seal")
from colonnade.simulate.inprocess.sealed import fit, model_of, parties, run

DATA = small_data()
SPEC = small_spec(DATA)
WIDE_DATA = small_data((9, 9, 3), n_rows=4000)
WIDE_SPEC = small_spec(WIDE_DATA, keep=4)


@dataclass(frozen=True)
class Opened:
    found: IntArray
    exact: IntArray
    step: int
    sigma2: int  # of both parties' noises together
    norm: float  # the largest of a multiplied column


def openings(data: Data, spec: SealedSpec, noise: NoiseSource) -> Iterator[Opened]:
    """Run a job; yield each opening, decoded, beside the exact products of both parties' steps."""
    members, solver = parties(data, spec, JOB, noise), SealedSolver(spec)
    state, tasks = before(members, spec, spec.round_of(SealedStage.OPEN))
    scales, steps = Scales.of(spec, state.bodies), {}
    for part in spec.parts:
        shape, columns = spec.rows(SEAL, part), members[part.party].columns
        kept = solver.kept(state, part)
        rows = project(
            columns.features, columns.label, solver._rows(scales, part, kept, shape.ball)
        )
        steps[part.party] = shape.scale.steps(rows, spec.seed(JOB))
    for name, task in tasks.items():
        for release in members[name].answer(task, request_of(task)):
            kind, part = release.key.kind, spec.part(name)
            other = spec.parts[parsed(kind)[1]]
            exact = steps[other.party] @ steps[name].T
            code = spec.opening_code(kind, part)
            found = code.decode(release.body).reshape(exact.shape)
            reply = numbered(REPLY, spec.place(name))
            sigma2 = spec.sigma2(kind, part) + spec.sigma2(reply, other)
            norm = float(np.sqrt((steps[other.party] ** 2).sum(axis=1).max()))
            yield Opened(found, exact, code.step, sigma2, norm)


@pytest.mark.parametrize(
    ("data", "spec"), [(DATA, SPEC), (WIDE_DATA, WIDE_SPEC), (DATA, replace(SPEC, groups=2))]
)
def test_every_opened_number_is_the_product_of_the_rows_in_steps(
    data: Data, spec: SealedSpec
) -> None:
    seen = list(openings(data, spec, ErrorsOnly("job")))
    assert len(seen) == 3
    for each in seen:
        # Errors deviate by 6.4 raw units, times a column of rows; masks times errors by 116 steps;
        # a step has 32 units, and the code rounds to a quarter deviation. A column without
        # neighbour wraps at the modulus, which is 172,031 units less than the fields' product.
        allowed = 5 * math.hypot(6.4 / 32 * each.norm, 116) + each.step // 2 + 1 + 172_031 / 32
        assert np.abs(each.found - each.exact).max() <= allowed
        assert np.abs(each.exact).max() > 5 * each.step  # there is something to see


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, groups=2)], ids=["one key", "two keys"])
def test_every_opened_number_carries_the_noise_of_both_parties(spec: SealedSpec) -> None:
    off = [
        (each.found - each.exact).ravel() / each.sigma2**0.5
        for seed in range(6)
        for each in openings(DATA, spec, ShakeNoise(f"both {seed}"))
    ]
    errors = np.concatenate(off)
    # Six runs of 33 numbers. A deviation of 198 errs by 1 / sqrt(396), 5.0 %; four of these are
    # 20 %. Without one party's noise it would be 0.71, with half of each 0.5. The code adds 0.4 %.
    assert errors.size == 198
    assert float(errors.std()) == pytest.approx(1.0, abs=0.2)
    assert abs(float(errors.mean())) < 4 / errors.size**0.5


def test_a_job_runs_on_the_operating_systems_entropy() -> None:
    first, members = run(DATA, SPEC, OsNoise(), job=JOB)
    second, _ = run(DATA, SPEC, OsNoise(), job=JOB)
    spent = {name: member.ledger.budget().spent for name, member in members.items()}
    assert spent == {name: SPEC.max_units(name) for name in members}
    assert first.bodies["p0"]["gram"] != second.bodies["p0"]["gram"]


@pytest.mark.parametrize(("data", "spec"), [(DATA, SPEC), (WIDE_DATA, WIDE_SPEC)])
def test_sizes_and_prices_are_those_that_were_predicted(data: Data, spec: SealedSpec) -> None:
    state, members = run(data, spec, SeededNoise(1), job=JOB)
    for name, member in members.items():
        stored = member.ledger.state.stored
        assert {key.kind: kept.body_bytes for key, kept in stored.items()} == payload(spec, name)
        spent = {key.kind: charge.units for key, charge in member.ledger.state.charges.items()}
        assert spent == {kind: spec.cost(name, kind) for kind in payload(spec, name)}
        assert member.ledger.budget().spent == spec.max_units(name)
        assert {kind for kind, units in spent.items() if units == 0} == {
            kind for kind in spent if parsed(kind)[0] in SEALED
        }
    # Ciphertexts and replies are relayed, not kept.
    held = {parsed(kind)[0] for bodies in state.bodies.values() for kind in bodies}
    assert not held & {*SEALED, *REPLIES}


def test_a_sealed_job_is_nearly_as_good_as_all_columns_in_one_place() -> None:
    data = small_data((4, 4, 4), n_rows=20_000, seed=3)
    spec = recommend(problem_of(data)).spec
    exact = fit(data, spec, ErrorsOnly("exact"), job=JOB)
    private = fit(data, spec, SeededNoise(4), job=JOB)
    # Least squares on all columns has 0.884; the surrogate of rows in steps loses little.
    columns = data.columns.T / 2**14
    design = np.column_stack([np.ones(len(columns)), columns])
    label = data.label / 2**14
    coef = np.linalg.lstsq(design, label, rcond=None)[0]
    best = 1 - float(((label - design @ coef) ** 2).sum() / ((label - label.mean()) ** 2).sum())
    assert quality(data, exact, spec.loss) > best - 0.01
    assert quality(data, private, spec.loss) > best - 0.05
    assert quality(data, private, spec.loss) != quality(data, exact, spec.loss)


def test_screening_keeps_what_the_label_is_made_of() -> None:
    state, _ = run(WIDE_DATA, WIDE_SPEC, ErrorsOnly("screen"), job=JOB)
    assert 0 in state.kept["p0"]
    assert 0 in state.kept["p1"]
    assert "p2" not in state.kept  # it is not wide
    assert all(len(kept) == 4 for kept in state.kept.values())
    model = model_of(WIDE_SPEC, state)
    assert np.count_nonzero(model.coefs[1]) <= 4
    gram = np.eye(3)
    gram[0, 1] = gram[1, 0] = 0.95
    assert greedy(gram, np.array([0.8, 0.79, 0.1]), 2) == (0, 2)  # not the twin of what is taken


def test_a_state_and_tasks_follow_from_the_same_releases() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("same"))
    state, tasks = before(members, SPEC, SPEC.round_of(SealedStage.REPLY))
    again, same = before(members, SPEC, SPEC.round_of(SealedStage.REPLY))  # all replayed
    assert state.bodies == again.bodies
    for name, task in tasks.items():
        assert task.relayed == same[name].relayed
        assert np.array_equal(task.projection.coef, same[name].projection.coef)  # type: ignore[union-attr]
    assert {each.party for each in tasks["p2"].relayed} == {"p0", "p1"}


def test_answers_of_other_kinds_or_sizes_are_refused_by_the_coordinator() -> None:
    solver, members = SealedSolver(SPEC), parties(DATA, SPEC, JOB, ShakeNoise("check"))
    state, tasks = before(members, SPEC, SPEC.round_of(SealedStage.SEAL))
    bodies = {r.key.kind: r.body for r in members["p0"].answer(tasks["p0"], b"x")}
    solver.check(state, "p0", bodies)
    with pytest.raises(BadInput, match="expects"):
        solver.check(state, "p0", {"gram": bodies["gram"]})
    with pytest.raises(BadInput, match="bytes"):
        solver.check(state, "p0", {**bodies, "seal.0": bodies["seal.0"][:-1]})
    with pytest.raises(BadInput, match="job"):
        solver.check(state, "p9", bodies)


# -- ledgers ---------------------------------------------------------------------------------------


def test_an_export_says_what_was_sealed_for_whom_and_is_recomputed() -> None:
    _, members = run(DATA, SPEC, ShakeNoise("export"), job=JOB)
    member = members["p1"]
    lines = list(export_lines(member.ledger))
    summary = verify_export(lines)
    names = {name: (count, units) for name, count, units in summary.by_mechanism}
    assert names["sealed_ciphertext"] == (1, 0)
    assert names["sealed_reply"][0] == names["sealed_opening"][0] == 1
    assert min(names["sealed_reply"][1], names["sealed_opening"][1]) > 0
    (entry,) = [json.loads(line) for line in lines if "sealed_ciphertext" in line]
    assert entry["mechanism"]["peers"] == "p0\np2"
    assert len(entry["mechanism"]["key"]) == 64
    assert entry["units"] == 0


@pytest.mark.parametrize(
    ("kind", "field"), [("sealed_reply", "move2"), ("sealed_opening", "sigma2")]
)
def test_an_entry_cannot_understate_a_sealed_price(kind: str, field: str) -> None:
    _, members = run(DATA, SPEC, ShakeNoise("lie"), job=JOB)
    lines = list(export_lines(members["p1"].ledger))
    (place,) = [i for i, line in enumerate(lines) if f'"mechanism":"{kind}"' in line]
    entry = json.loads(lines[place])
    entry["mechanism"][field] = entry["mechanism"][field] * 2
    lines[place] = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    with pytest.raises(VerificationFailed):
        verify_export(lines)


def test_a_free_entry_needs_an_admitted_job(tmp_path: Path) -> None:
    from colonnade.methods.sealed.charges import ciphertext

    ledger = new_ledger("disk", tmp_path)
    mechanism = ciphertext(1, key="k", peers=["p"])
    with pytest.raises(ValueError, match="unit"):
        ledger.charge(ReleaseKey("job", 0, "seal.0"), mechanism, request_sha256="0" * 64)
    ledger.admit("job", units=5)
    ledger.charge(ReleaseKey("job", 0, "seal.0"), mechanism, request_sha256="0" * 64)
    assert ledger.budget().spent == 0
    ledger.close()


# -- keys ------------------------------------------------------------------------------------------

CONTEXT = KeyContext("job", "hospital", "seal.0")


def test_keys_survive_a_restart_and_are_erased_with_their_job(tmp_path: Path) -> None:
    key = SecretKey.draw(ShakeNoise("key"))
    FileKeys(tmp_path / "keys").save(CONTEXT, key)
    again = FileKeys(tmp_path / "keys")
    found = again.load(CONTEXT)
    assert found is not None
    assert found.seed == key.seed
    assert np.array_equal(found.secret, key.secret)
    with pytest.raises(FileExistsError):
        again.save(CONTEXT, key)
    assert again.load(KeyContext("job", "hospital", "seal.1")) is None
    again.erase("another job")
    assert again.load(CONTEXT) is not None
    again.erase("job")
    again.erase("job")
    assert again.load(CONTEXT) is None
    assert list((tmp_path / "keys").iterdir()) == []


def test_a_key_is_for_its_owner_alone_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    keys.save(CONTEXT, SecretKey.draw(ShakeNoise("key")))
    (path,) = (tmp_path / "keys").rglob("*.key")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadInput, match="damaged"):
        keys.load(CONTEXT)


def test_memory_keys_keep_the_same_rules() -> None:
    keys, key = MemoryKeys(), SecretKey.draw(ShakeNoise("key"))
    keys.save(CONTEXT, key)
    with pytest.raises(ValueError, match="already"):
        keys.save(CONTEXT, key)
    assert keys.load(CONTEXT) is key
    keys.erase("job")
    assert keys.load(CONTEXT) is None


# -- plans -----------------------------------------------------------------------------------------


def planned(n_rows: int, widths: tuple[int, ...], epsilon: float = 1.0) -> Problem:
    names = iter(range(sum(widths)))
    return Problem(
        n_rows=n_rows,
        features={f"p{k}": [f"x{next(names)}" for _ in range(w)] for k, w in enumerate(widths)},
        rho_units=units_down(rho_of(epsilon, 1e-6)),
        label_owner="p0",
    )


@pytest.mark.parametrize("n_rows", [2000, 100_000, 1_000_000])
@pytest.mark.parametrize("widths", [(10,) * 4, (20, 20), (5,) * 8, (100,) * 4, (3, 60)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_plans_stay_within_budget_and_messages(
    n_rows: int, widths: tuple[int, ...], epsilon: float
) -> None:
    problem = planned(n_rows, widths, epsilon)
    if n_rows == 2000 and epsilon < 1.0 and widths[0] == 100:
        with pytest.raises(ValueError, match="little"):  # noise wider than the field
            recommend(problem)
        return
    plan = recommend(problem)
    assert plan.units() <= problem.rho_units
    assert plan.units() > 0.95 * problem.rho_units
    assert max(max(by_kind.values()) for by_kind in plan.max_bytes().values()) <= 3 << 20
    assert plan.summary()["experimental"] is True
    assert sum(plan.split().values()) == pytest.approx(plan.units() / problem.rho_units)


def test_the_default_size_has_the_predicted_uplink() -> None:
    plan = recommend(planned(100_000, (10,) * 4))
    most = max(sum(by_kind.values()) for by_kind in plan.max_bytes().values())
    assert most < 5_000_000
    assert plan.spec.buckets == 49_152
    split = plan.split()
    cross = split["reply"] + split["open"]
    assert split["gram"] / (split["gram"] + cross) == pytest.approx(0.15, abs=1e-6)
    wide = recommend(planned(100_000, (100,) * 4)).split()
    left = 1 - wide["means"]
    # Of the owner's quarter for openings and the others' for products.
    assert (wide["screen"] + wide["products"]) / left == pytest.approx(0.25, abs=0.001)
    assert wide["wide"] / left == pytest.approx(0.20, abs=0.001)
    assert wide["gram"] / left == pytest.approx(0.10, abs=0.001)
    assert (wide["reply"] + wide["open"]) / left == pytest.approx(0.45, abs=0.001)


def test_wide_parties_are_screened_sooner_where_rows_are_few() -> None:
    few, many = (recommend(planned(n, (21, 20, 20, 20))) for n in (26_000, 100_000))
    assert few.spec.keep == 8
    assert many.spec.keep == 0
    classes = replace(planned(26_000, (21, 20, 20, 20)), loss=Loss.LOGISTIC)
    assert recommend(classes).spec.keep == 0
    assert recommend(planned(26_000, (12,) * 4)).spec.keep == 0
    most = max(sum(by_kind.values()) for by_kind in few.max_bytes().values())
    assert most < 2_000_000  # 5.7 MB with all columns


def test_whoever_has_most_columns_seals_none_and_every_two_parties_meet_once() -> None:
    data = small_data((3, 7, 2), n_rows=4000)
    spec = small_spec(data, epsilon=40.0)
    assert [part.party for part in turns(spec)] == ["p2", "p0", "p1"]
    kinds = {part.party: spec.kinds(part) for part in spec.parts}
    assert kinds["p1"] == ("means", "gram", "reply.2", "reply.0")
    assert kinds["p0"] == ("means", "gram", "seal.0", "reply.2", "open.1")
    assert kinds["p2"] == ("means", "gram", "seal.0", "open.0", "open.1")
    solver = SealedSolver(spec)
    state, _ = run(data, spec, ErrorsOnly("turns"), job=JOB)
    exact = np.corrcoef(data.columns.astype(float))
    # Without noise: an entry errs by the 2048 buckets, 0.022, and by rows' balls, up to a tenth.
    found = solver.estimate(state).gram
    assert float(np.abs(found - exact).max()) < 0.1


def test_columns_go_under_several_keys_before_one_opens_too_much() -> None:
    assert recommend(planned(20_000, (10,) * 4)).spec.groups == 1
    spec = recommend(planned(1_000_000, (10,) * 4)).spec
    assert spec.groups == 2
    with pytest.raises(ValueError, match="bits"):
        replace(spec, groups=1)


def test_bits_that_peers_can_read_are_those_of_all_keys_and_replies() -> None:
    spec = recommend(planned(1_000_000, (10,) * 4)).spec
    first, last = spec.parts[1], spec.parts[0]  # the label's owner has most columns: it seals none
    assert (turns(spec)[0], turns(spec)[-1]) == (first, last)
    most, together = key_bits(spec, first)
    # It opens the products of 31 columns with its 10 in two keys, and replies to nobody.
    assert most <= MAX_KEY_BITS < 2 * most - 1 <= together == peer_bits(spec, first)
    # What is opened of 310 numbers, half of them in each field.
    sigma2 = spec.sigma2(numbered(OPEN, 0), first)
    both = millibits(LOW_FIELD, sigma2) + millibits(HIGH_FIELD, sigma2)
    assert together == pytest.approx(310 / 2 * both / 1000, rel=0.12)  # 5 are 3 and 2 pairs a key
    assert key_bits(spec, last) == (0, 0)
    replies = [spec.product(numbered(REPLY, place), last) for place in (1, 2, 3)]
    carried = [replied_millibits(each, spec.sigma2("reply.1", last)) for each in replies]
    assert peer_bits(spec, last) == pytest.approx(sum(carried) / 1000, abs=1.0)
    assert recommend(planned(1_000_000, (10,) * 4)).summary()["peer_bits"] == {
        part.party: peer_bits(spec, part) for part in spec.parts
    }


def test_a_label_shared_by_all_or_a_budget_too_small_is_refused() -> None:
    problem = planned(1000, (2, 2))
    with pytest.raises(ValueError, match="label"):
        recommend(replace(problem, label_owner=None))
    with pytest.raises(ValueError, match="budget"):
        recommend(replace(problem, rho_units=5))


def test_a_budget_that_leaves_the_encryption_no_noise_is_refused_and_planned_around() -> None:
    problem = planned(1_000_000, (10,) * 4, epsilon=50.0)
    plan = recommend(problem)
    assert 0.1 * problem.rho_units < plan.units() < 0.9 * problem.rho_units
    dear = tuple(replace(each, cross=32 * each.cross) for each in plan.spec.prices)
    with pytest.raises(ValueError, match=r"much|bits|small"):
        replace(plan.spec, prices=dear)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"parts": SPEC.parts[:1], "prices": SPEC.prices[:1]}, "two"),
        ({"parts": tuple(replace(p, holds_label=True) for p in SPEC.parts)}, "holds"),
        ({"prices": SPEC.prices[:2]}, "prices"),
        ({"prices": (Prices(0, 5),) * 3}, "price"),
        ({"mean_units": 0}, "price"),
        ({"n_rows": 0}, "rows"),
        ({"groups": 0}, "groups"),
        ({"reach": float("nan")}, "reach"),
        ({"label_weight": 0.0}, "weight"),
        ({"keep": 1}, "price"),
        ({"parts": (SPEC.parts[0], Part("p0", ("a",), False), SPEC.parts[2])}, "different names"),
    ],
)
def test_an_impossible_job_is_refused(changes: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        replace(SPEC, **changes)  # type: ignore[arg-type]


def test_kinds_are_read_back() -> None:
    assert parsed(numbered(OPEN, 12)) == (OPEN, 12)
    assert parsed("means") == ("means", 0)


def test_what_a_party_lacks_is_said_before_anything_is_charged() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("label"))
    from colonnade.party.data.columns import HeldColumns

    bare = replace(members["p0"], columns=HeldColumns(members["p0"].columns.features, None))
    _, tasks = before(members, SPEC, 1)
    head = bare.ledger.head
    with pytest.raises(BadMessage, match="label"):
        bare.answer(tasks["p0"], b"x")
    assert bare.ledger.head == head
