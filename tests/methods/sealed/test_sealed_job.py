"""A sealed job as programs see it: options, bytes, people whom a party lacks, probabilities."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.entropy import ShakeNoise
from support.sealed import JOB, before, problem_of, request_of, small_data, small_spec

from colonnade.client import JobOptions
from colonnade.client.planning import plan_of
from colonnade.console.party.policy_words import sentences
from colonnade.core.arguments import BadArgument
from colonnade.core.errors import BadInput, BadMessage, PolicyRefused
from colonnade.core.fixedpoint import GRID
from colonnade.methods.problem import Loss
from colonnade.methods.sealed.charges import MAX_KEY_BITS, MAX_REPLY_BITS
from colonnade.methods.sealed.claims import PROMISE
from colonnade.methods.sealed.codec import task_from_bytes, task_to_bytes
from colonnade.methods.sealed.kinds import SealedStage
from colonnade.methods.sealed.plan import recommend
from colonnade.methods.sealed.solver.steps import SealedSolver
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.sealed import SealedAnswers
from colonnade.party.methods.sealed_keys import MemoryKeys
from colonnade.party.policy_file import load_policy
from colonnade.party.sealed.pins import pin
from colonnade.party.sealed.policy import (
    TEMPLATE,
    SealedGrant,
    fingerprint,
    key_from_text,
    key_to_text,
)
from colonnade.server.methods.sealed.state import decode_state, encode_state
from colonnade.simulate.inprocess.sealed import model_of, parties, run
from colonnade.simulate.inprocess.vertical import grid
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire import fragments

DATA = small_data()
SPEC = small_spec(DATA)
REPLY = SPEC.round_of(SealedStage.REPLY)


# -- people whom a party does not have -------------------------------------------------------------


def test_products_are_over_the_people_whom_both_parties_have() -> None:
    make = np.random.default_rng(3)
    data = small_data(n_rows=20_000, seed=3)
    present = tuple(
        np.where(make.random(20_000) < rate, GRID, 0).astype(np.int16) for rate in (0.9, 0.6, 0.7)
    )
    data = replace(data, presence=present)
    problem = replace(problem_of(data, epsilon=40.0), presence=True)
    spec = recommend(problem).spec
    state, _ = run(data, spec, ShakeNoise("absent"), job=JOB)
    gram = SealedSolver(spec).estimate(state).gram
    found = gram[5:9, 2:5] / np.sqrt(np.outer(np.diag(gram)[5:9], np.diag(gram)[2:5]))
    both = (present[1] > 0) & (present[2] > 0)
    columns = data.columns / GRID
    mine, theirs = (columns[list(data.splits[at])][:, both] for at in (1, 2))
    expected = np.atleast_2d(np.corrcoef(np.vstack([theirs, mine])))[:4, 4:]
    # 8,400 people in common: a correlation errs by 0.011, absence by chance by 0.01 of itself, and
    # the ball takes up to a tenth. Divided by all rows it would be 0.42 of itself.
    assert np.abs(found / expected - 1.0).mean() < 0.15


# -- classes ---------------------------------------------------------------------------------------


def test_probabilities_of_a_finished_job_have_the_base_rate_on_average() -> None:
    data = small_data(n_rows=20_000, seed=4)
    label = grid(np.where(data.label > 0.08 * GRID, 1.0, -1.0))
    data = replace(data, label=label)
    spec = recommend(replace(problem_of(data, epsilon=4.0), loss=Loss.LOGISTIC)).spec
    state, _ = run(data, spec, ShakeNoise("classes"), job=JOB)
    model = model_of(spec, state)
    probability = 1.0 / (1.0 + np.exp(-model.predict(data)))
    rate = float((label > 0).mean())
    assert 0.2 < rate < 0.45
    assert abs(float(probability.mean()) - rate) < 0.03
    truth = label > 0
    loss = -float(np.mean(np.log(np.where(truth, probability, 1.0 - probability))))
    base = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert loss < 0.75 * base  # a Taylor slope of 2 leaves more than 0.8


# -- options ---------------------------------------------------------------------------------------

FEATURES = {f"p{k}": [f"x{i}" for i in split] for k, split in enumerate(DATA.splits)}


def kind_of(options: JobOptions, *, owner: str | None = "p0", sealed: bool = False) -> str:
    units = problem_of(DATA).rho_units
    plan = plan_of(options, FEATURES, n_rows=3000, units=units, owner=owner, sealed=sealed)
    return str(plan.spec.kind)


@pytest.mark.parametrize("sealed", [False, True])
def test_what_is_asked_for_decides_and_else_whether_all_grant_it(sealed: bool) -> None:
    assert kind_of(JobOptions(exchange="sealed"), sealed=sealed) == "sealed"
    assert kind_of(JobOptions(method="sealed"), sealed=sealed) == "sealed"
    assert kind_of(JobOptions(exchange="sketched"), sealed=sealed) != "sealed"
    assert kind_of(JobOptions(method="moments"), sealed=sealed) == "moments"
    assert (kind_of(JobOptions(), sealed=sealed) == "sealed") == sealed
    assert kind_of(JobOptions(), owner=None, sealed=sealed) != "sealed"


@pytest.mark.parametrize(
    ("options", "name", "owner"),
    [
        (JobOptions(exchange="sealed", method="moments"), "exchange", "p0"),
        (JobOptions(exchange="sketched", method="sealed"), "exchange", "p0"),
        (JobOptions(exchange="sealed"), "exchange", None),
        (JobOptions(buckets=1024), "buckets", "p0"),
        (JobOptions(exchange="sealed", directions=2), "directions", "p0"),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_name(
    options: JobOptions, name: str, owner: str | None
) -> None:
    with pytest.raises(BadArgument) as refused:
        kind_of(options, owner=owner)
    assert refused.value.parameter == name


# -- bytes -----------------------------------------------------------------------------------------


def test_tasks_come_back_and_spoiled_ones_are_refused_uncharged() -> None:
    members = parties(DATA, SPEC, JOB, ShakeNoise("fuzz"))
    _, tasks = before(members, SPEC, REPLY)
    member, body = members["p2"], task_to_bytes(tasks["p2"])
    columns = len(member.part.features)
    assert task_to_bytes(task_from_bytes(body, round_=REPLY, n_columns=columns)) == body
    draw, head = np.random.default_rng(5), member.ledger.head

    def answer(spoiled: bytes) -> None:
        task = task_from_bytes(spoiled, round_=REPLY, n_columns=columns)
        # A bit of the projection alone is another question and no forgery: it would be answered.
        if task.relayed == tasks["p2"].relayed:
            raise BadMessage("the relayed bodies are whole")
        member.answer(task, b"r")

    for how in range(150):
        spoiled, at = bytearray(body), int(draw.integers(len(body)))
        if how % 3 == 0:
            spoiled[at] ^= 1 << int(draw.integers(8))
        elif how % 3 == 1:
            del spoiled[at:]
        else:
            spoiled[at : at + 40] = draw.bytes(40)
        with pytest.raises((BadMessage, BadInput)):
            answer(bytes(spoiled))
    assert member.ledger.head == head


def test_a_state_comes_back_from_changes_and_what_has_arrived_is_forgotten() -> None:
    members, solver = parties(DATA, SPEC, JOB, ShakeNoise("state")), SealedSolver(SPEC)
    states = [solver.start()]
    while not solver.finished(states[-1]):
        answers = {
            name: {
                each.key.kind: each.body for each in members[name].answer(task, request_of(task))
            }
            for name, task in solver.tasks(states[-1]).items()
        }
        states.append(solver.absorb(states[-1], answers))
    found, sizes = None, []
    for last, state in zip([None, *states], states, strict=False):
        body = encode_state(SPEC, state, since=last)
        found = decode_state(SPEC, body, since=found)
        sizes.append(len(body))
        assert found.bodies == state.bodies
        assert encode_state(SPEC, found) == encode_state(SPEC, state)
    assert max(sizes) > 100_000  # ciphertexts were on their way,
    assert sizes[-1] < 2_000  # and nothing of them stays


def test_pieces_out_of_order_oversized_or_nested_are_refused() -> None:
    whole = pb.AttachResponse(task=pb.Task(job_id="a", body=bytes(3 * fragments.FRAGMENT_BYTES)))
    pieces = list(fragments.fragments(whole))
    assert len(pieces) == 4
    assembly = fragments.Assembly(pb.AttachResponse)
    assert [assembly.take(piece) for piece in pieces] == [None, None, None, whole]
    nested = pb.AttachResponse(fragment=pieces[0].fragment).SerializeToString()
    half = len(nested) // 2
    halves = [
        pb.AttachResponse(fragment=pb.Fragment(index=at, count=2, body=part))
        for at, part in enumerate((nested[:half], nested[half:]))
    ]
    many = pb.AttachResponse(fragment=pb.Fragment(index=0, count=1000, body=b"x"))
    for sent in ([pieces[1]], [pieces[0], pieces[2]], [pieces[0], whole], [many], halves):
        fresh = fragments.Assembly(pb.AttachResponse)
        with pytest.raises(BadInput):
            list(map(fresh.take, sent))


# -- pins ------------------------------------------------------------------------------------------

POLICY = """\
[[allow]]  # a comment that stays
coordinator = "spiffe://study/coordinator/hub"
kinds = ["moments", "sealed"]
features = ["*"]
max_rho = 1.0
max_rounds = 10
sealed = "peers-follow-the-protocol"
sealed_columns = 12
"""


def test_pinning_writes_the_key_and_leaves_the_rest_of_the_policy_alone(tmp_path: Path) -> None:
    path, key = tmp_path / "policy.toml", key_to_text(bytes(range(32)))
    path.write_text(POLICY)
    pin(path, "laboratory", key)
    pin(path, "registry", key_to_text(bytes(32)))
    pin(path, "laboratory", key)  # again changes nothing
    (allowed,) = load_policy(path).allowances
    assert allowed.sealed is not None
    assert allowed.sealed.pins == {"laboratory": bytes(range(32)), "registry": bytes(32)}
    kept = [line for line in path.read_text().splitlines() if not line.startswith("sealed_peers")]
    assert kept == POLICY.splitlines()
    for text, wrong in ((POLICY, "ed25519:00"), (POLICY.replace("sealed = ", "# "), key)):
        path.write_text(text.replace("sealed_columns = 12\n", "") if "# " in text[40:] else text)
        before_ = path.read_text()
        with pytest.raises(BadInput):
            pin(path, "laboratory", wrong)
        assert path.read_text() == before_


def test_two_peers_cannot_be_pinned_by_one_key(tmp_path: Path) -> None:
    path, key = tmp_path / "policy.toml", key_to_text(bytes(range(32)))
    path.write_text(POLICY)
    pin(path, "laboratory", key)
    before_ = path.read_text()
    with pytest.raises(BadInput, match="'laboratory' and 'registry'"):
        pin(path, "registry", key)
    assert path.read_text() == before_


def test_whoever_decides_on_sealed_jobs_is_told_that_they_are_experimental(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    (said,) = (each for each in sentences(load_policy(path)) if "under encryption" in each)
    assert "experimental" in said
    assert "follow the protocol" in said
    assert "rows of its choice" in said
    assert "experimental" in TEMPLATE
    assert PROMISE.startswith("Experimental.")
    assert str(MAX_KEY_BITS) in PROMISE
    assert str(MAX_REPLY_BITS) in PROMISE
    assert recommend(problem_of(DATA)).summary()["promise"] == PROMISE


def test_a_shield_is_told_with_its_epsilon_and_that_it_is_of_products(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY + "hostile_epsilon = 28\n")
    said = " ".join(sentences(load_policy(path)))
    assert "shield of epsilon 28 (rho " in said
    assert "means and\n# Gram matrix come on top" in TEMPLATE


def test_a_job_with_a_peer_that_is_not_pinned_is_refused_by_the_policy_and_by_the_method() -> None:
    member = parties(DATA, SPEC, JOB, ShakeNoise("pins"))["p0"]
    peers, head = SPEC.peers(SPEC.part("p0")), member.ledger.head
    context = JobContext(
        JOB, "p0", "ab", member.columns, member.gate, member.ledger, keys=MemoryKeys()
    )
    everybody = dict.fromkeys(peers, bytes(32))
    assert len(peers) > 1
    for name in peers:
        pins = {each: key for each, key in everybody.items() if each != name}
        assert name in (SealedGrant(pins, 99).objection(SPEC, "p0") or "")
        with pytest.raises(PolicyRefused):
            SealedAnswers.of(SPEC, replace(context, pins=pins))
    assert member.ledger.head == head
    assert SealedGrant(everybody, 99).objection(SPEC, "p0") is None
    assert SealedAnswers.of(SPEC, replace(context, pins=everybody)).party.job == JOB


def test_fingerprints_differ_with_one_bit_and_keys_come_back() -> None:
    one, two = bytes(32), bytes([1, *bytes(31)])
    assert fingerprint(one) != fingerprint(two)
    assert len(fingerprint(one).replace(" ", "")) == 40
    assert key_from_text(key_to_text(two)) == two


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("peers-follow-the-protocol", "everybody"),
        ('"moments", "sealed"', '"moments"'),
        ("sealed_columns = 12", ""),
        ('sealed = "peers-follow-the-protocol"', ""),
        ("sealed_columns = 12", "sealed_columns = 12\nhostile_epsilon = 0.01"),
        ("sealed_columns = 12", 'sealed_columns = 12\nsealed_peers = { a = "rsa:00" }'),
        (  # either could sign for the other
            "sealed_columns = 12",
            'sealed_columns = 12\nsealed_peers = { a = "ed25519:KEY", b = "ed25519:KEY" }'.replace(
                "KEY", "7" * 64
            ),
        ),
    ],
)
def test_a_grant_that_is_half_written_refuses_the_file(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace(old, new))
    with pytest.raises(BadInput):
        load_policy(path)
