"""A job over clients as bytes: its specification, its tasks and its answers."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clients import admm_job, admm_method
from support.specs import OpenSpec

from colonnade.core.errors import BadInput
from colonnade.core.fixedpoint import Bounds
from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Released
from colonnade.ledger.receipts import Receipt
from colonnade.linear.losses import LOGISTIC
from colonnade.linear.penalties import Penalty
from colonnade.methods.admm.choices import Aggregate, ClientSampling, Variant
from colonnade.methods.admm.codec import asked_in, tasks_from_bytes, tasks_to_bytes, without_points
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.releases import DISPLACEMENT
from colonnade.methods.admm.spec import MAX_V
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.base import payload
from colonnade.methods.job import Job
from colonnade.privacy.accounting import units_down
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.cohort import (
    ClientAnswers,
    Replies,
    client_answers_from_proto,
    client_answers_to_bytes,
    concat,
    newest_release,
)
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes

PARTIES = {"gateway": 6, "lab": 1}


# No field has the value that an absent one would have.
def strange() -> Job:
    return admm_job(
        PARTIES,
        timeout=7,
        rounds=9,
        sampled=4,
        minimum=2,
        participations=3,
        gamma=0.7,
        lipschitz=0.3,
        step=0.4,
        dual_weight=0.2,
        loss=LOGISTIC,
        penalty=Penalty(0.1, 0.2, 3.0),
        sampling=ClientSampling.POISSON,
        radius_bits=20,
        coarse=True,
    )


SPEC = job_to_bytes(strange())
PLANNED = ("radii", "intercept_rounds", "intercept_units", "client_rows")
SECURE = ("maskers", "colluding", "keys")


def planned(**changes: Any) -> Job:
    """Return a planned job: two rounds of displacements, then one of the intercept."""
    numbers: dict[str, Any] = {
        "rounds": 3,
        "radii": (1024, 700),
        "intercept_rounds": 1,
        "client_rows": 9,
    }
    numbers |= {"intercept_units": units_down(0.1), "variant": Variant.PLANNED}
    return admm_job(PARTIES, **numbers | changes)


def test_every_field_makes_the_round_trip() -> None:
    opened = OpenSpec.of(SPEC)
    for holder in (opened.method, opened.job.members[0]):
        for field in holder.DESCRIPTOR.fields:
            if field.name in ("encodings", "alignment"):
                continue  # see test_jobspec
            if field.name in (*PLANNED, *SECURE):
                continue  # of the planned variant, or of secure sums, alone
            present = getattr(holder, field.name)
            assert present != field.default_value, f"{field.name} would not be noticed"
    assert job_from_bytes(SPEC) == strange()
    other = planned()
    assert all(getattr(OpenSpec.of(job_to_bytes(other)).method, name) for name in PLANNED)
    assert job_from_bytes(job_to_bytes(other)) == other
    hosts = dict.fromkeys(("a", "b", "c", "d", "e"), 1)
    numbers: dict[str, Any] = {"aggregate": Aggregate.COHORT, "maskers": 5, "colluding": 1}
    keys = tuple(bytes([each]) * 32 for each in range(5))
    masked = admm_job(hosts, variant=Variant.GRADIENT, keys=keys, **numbers)
    assert all(getattr(OpenSpec.of(job_to_bytes(masked)).method, name) for name in SECURE)
    assert job_from_bytes(job_to_bytes(masked)) == masked
    plain = admm_job(PARTIES, intercept=False, coarse=False)
    assert job_from_bytes(job_to_bytes(plain)) == plain


IMPOSSIBLE: dict[str, list[Any]] = {
    "rounds": [0, 10**6 + 1, 2**32 - 1],
    "sampled": [0, 1, 8, 2**32 - 1],  # below the minimum, above the clients
    "minimum": [0, 5, 2**32 - 1],
    "participations": [10, 2**32 - 1],
    "release_units": [0, 1, 2**63, 2**64 - 1],
    "round_timeout_s": [0, 2**32 - 1],
    "gamma": [0.0, -1.0, math.nan, math.inf],
    "lipschitz": [0.0, -1.0, math.nan, math.inf],
    "step": [0.0, 1.5, math.nan],
    "dual_weight": [-0.1, 1.1, math.nan],
    "l1": [-1.0, math.nan, math.inf],
    "l2": [-1.0, math.nan, math.inf],
    "box": [-1.0, math.nan],
    "radius_bits": [0, 7, 31],
    "sampling": [0, 9],
    "loss": [0, 9],
    "variant": [0, 2, 9],  # without a plan it cannot be planned
    "intercept_rounds": [1],
    "intercept_units": [1],
    "client_rows": [1],
}


@pytest.mark.parametrize("name", sorted(IMPOSSIBLE))
def test_impossible_numbers_are_refused_in_one_line(name: str) -> None:
    for value in IMPOSSIBLE[name]:
        opened = OpenSpec.of(SPEC)
        setattr(opened.method, name, value)
        with pytest.raises(BadInput) as refused:
            job_from_bytes(opened.to_bytes())
        assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"radii": (1024,)},
        {"radii": (1024, 0)},
        {"radii": (1025, 1)},
        {"intercept_rounds": 3, "radii": ()},
        {"intercept_units": 0},
        {"client_rows": 0},
        {"intercept": False},
        {"radius_bits": 16},
    ],
)
def test_a_plan_whose_numbers_do_not_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"round|intercept|radi|rows"):
        planned(**changes)


def test_an_unknown_field_is_refused() -> None:
    opened = OpenSpec.of(SPEC)
    opened.method.MergeFromString(b"\xa0\x3f\x01")  # field 1012, varint 1
    with pytest.raises(BadInput, match="fields"):
        job_from_bytes(opened.to_bytes())


def test_a_party_that_is_named_twice_is_refused() -> None:
    method = admm_method({"gateway": 3})
    spec = replace(method.spec, n_clients=6)
    with pytest.raises(ValueError, match="different names"):
        replace(method, parts=method.parts * 2, spec=spec)


def test_members_that_do_not_fit_the_clients_are_refused() -> None:
    job = strange()
    first, second = job.members
    for members, says in (
        ((replace(first, clients=5), second), "clients"),
        ((first, replace(second, bounds=(Bounds(0, 1),) * 3)), "same bounds"),
        ((replace(first, features=("a", "b", "x")), second), "differ"),
    ):
        with pytest.raises(ValueError, match=says):
            replace(job, members=members)
    message = job_pb2.JobSpec.FromString(SPEC)
    message.population = 8
    with pytest.raises(BadInput, match="clients"):
        job_from_bytes(message.SerializeToString())


def test_sizes_that_no_message_carries_are_refused() -> None:
    with pytest.raises(ValueError, match="bytes"):
        admm_method({"gateway": 10**6}, sampled=10**6, coarse=False)
    with pytest.raises(ValueError, match="large"):
        admm_job({"gateway": 250_000}, sampled=250_000)
    assert admm_job({"gateway": 200_000}, sampled=200_000).population == 200_000


def test_prices_and_sizes_are_each_clients_own() -> None:
    method = admm_method(PARTIES, sampled=3, rounds=5, participations=2)
    assert isinstance(method, AdmmJobSpec)
    assert method.max_units("lab") == method.max_units("gateway") == method.spec.max_units
    assert method.max_releases("lab") == {DISPLACEMENT: 2}
    assert method.max_releases("gateway") == {DISPLACEMENT: 12}
    assert payload(method, "gateway") == {DISPLACEMENT: 12 * method.spec.body_bytes}
    assert [method.first(party) for party in PARTIES] == [0, 6]
    # A round that is short draws others: its size is no limit to what all rounds can bring.
    few = admm_method(PARTIES, sampled=1, rounds=5, participations=2)
    assert few.max_releases("gateway") == {DISPLACEMENT: 12}


# -- tasks ---------------------------------------------------------------------------------------


def questions() -> ClientTasks:
    points = np.array([[1, -2, MAX_V, 0], [5, 6, 7, -MAX_V]], np.int64)
    return ClientTasks(np.array([3, 0]), np.array([2, 1]), points)


def test_questions_make_the_round_trip() -> None:
    read = tasks_from_bytes(tasks_to_bytes(questions()), n_clients=4, point_size=lambda _: 4)
    for name in ("clients", "rounds", "points"):
        assert np.array_equal(getattr(read, name), getattr(questions(), name))


def test_what_is_kept_of_questions_says_whom_they_ask() -> None:
    task = tasks_to_bytes(questions())
    kept = without_points(task)
    for body in (task, kept):
        assert [each.tolist() for each in asked_in(body)] == [[3, 0], [2, 1]]
    assert len(kept) == len(task) - len(questions().points.tobytes()) - 2  # its tag and length


@pytest.mark.parametrize(
    ("n_clients", "dim", "says"),
    [(3, 4, "beyond"), (4, 3, "size"), (4, 5, "size")],
)
def test_questions_that_do_not_fit_are_refused(n_clients: int, dim: int, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        tasks_from_bytes(tasks_to_bytes(questions()), n_clients=n_clients, point_size=lambda _: dim)


def test_broken_questions_are_refused() -> None:
    body = job_pb2.TaskBody.FromString(tasks_to_bytes(questions()))
    broken: list[tuple[str, Any]] = [
        ("clients", [3, 3]),
        ("clients", [3]),
        ("rounds", [1]),
        ("points", np.full(8, MAX_V + 1).tobytes()),
        ("points", np.full(8, -(2**63)).tobytes()),
    ]
    for name, value in broken:
        changed = job_pb2.TaskBody.FromString(body.SerializeToString())
        changed.admm_step.ClearField(name)
        if isinstance(value, list):
            getattr(changed.admm_step, name).extend(value)
        else:
            setattr(changed.admm_step, name, value)
        with pytest.raises(BadInput):
            tasks_from_bytes(changed.SerializeToString(), n_clients=4, point_size=lambda _: 4)
    opening = job_pb2.TaskBody()
    opening.frank_wolfe_opening.SetInParent()
    with pytest.raises(BadInput, match="knows"):
        tasks_from_bytes(opening.SerializeToString(), n_clients=4, point_size=lambda _: 4)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(noise: bytes) -> None:
    with suppress(BadInput):
        assert tasks_from_bytes(noise, n_clients=4, point_size=lambda _: 2).points.shape[1] == 2


# -- answers -------------------------------------------------------------------------------------


def released(client: int, round_: int, *, newest: int) -> Released:
    key = ReleaseKey("job", round_, DISPLACEMENT, f"account {client}")
    last = ReleaseKey("job", 2, DISPLACEMENT, f"account {newest}")
    receipt = Receipt(bytes(16), 9, bytes(32), last.account, 5, last.digest(), bytes(32), bytes(64))
    return Released(key, b"body %d" % client, receipt)


def test_answers_make_the_round_trip_with_the_newest_receipt() -> None:
    replies = Replies(DISPLACEMENT, {4: released(4, 1, newest=7), 7: released(7, 2, newest=7)}, [5])
    submission = pb.Submission(job_id="job", round=2)
    replies.put_into(submission)
    said = client_answers_from_proto(submission.clients)
    assert said.by_client() == {4: (1, b"body 4"), 7: (2, b"body 7")}
    assert said.declined.tolist() == [5]
    kept = pb.Submission.FromString(client_answers_to_bytes(submission, said))
    assert (kept.job_id, kept.round, kept.clients.HasField("receipt")) == ("job", 2, False)
    again = client_answers_from_proto(kept.clients)
    assert again.by_client() == said.by_client()
    assert again.declined.tolist() == [5]
    release = newest_release(submission)
    assert release is not None
    assert (release.key.account, release.key.round, release.body) == ("account 7", 2, b"body 7")
    assert release.key.kind == kept.clients.kind == DISPLACEMENT
    assert newest_release(pb.Submission(clients=pb.ClientAnswers(declined=[1]))) is None


def _changed(message: pb.ClientAnswers, **changes: Any) -> pb.ClientAnswers:
    made = pb.ClientAnswers()
    made.CopyFrom(message)
    for name, value in changes.items():
        made.ClearField(name)
        getattr(made, name).extend(value)
    return made


def test_answers_that_contradict_themselves_are_refused() -> None:
    submission = pb.Submission()
    Replies(DISPLACEMENT, {4: released(4, 2, newest=4)}, [5]).put_into(submission)
    contradictions: list[dict[str, list[int]]] = [
        {"clients": [4, 6]},
        {"rounds": []},
        {"bodies": []},
        {"declined": [4]},
    ]
    for changes in contradictions:
        with pytest.raises(BadInput):
            client_answers_from_proto(_changed(submission.clients, **changes))


def said(answers: dict[int, tuple[int, bytes]], *declined: int) -> ClientAnswers:
    rounds = np.array([round_ for round_, _ in answers.values()], np.int64)
    bodies = [body for _, body in answers.values()]
    return ClientAnswers(
        np.array([*answers], np.int64), rounds, bodies, np.array(declined, np.int64)
    )


def test_what_was_said_twice_adds_up() -> None:
    whole = concat(said({1: (1, b"a")}, 3), said({2: (2, b"b")}, 3, 4))
    assert whole.by_client() == {1: (1, b"a"), 2: (2, b"b")}
    assert whole.declined.tolist() == [3, 4]
    assert concat().by_client() == {}


def test_a_part_of_what_was_said_and_other_numbers_for_its_clients() -> None:
    whole = said({1: (1, b"a"), 2: (2, b"b"), 5: (1, b"c")}, 3)
    part = whole.only(np.array([True, False, True])).shifted(10)
    assert part.by_client() == {11: (1, b"a"), 15: (1, b"c")}
    assert part.declined.tolist() == [13]
    assert whole.only(np.ones(3, np.bool_)).by_client() == whole.by_client()
