"""The coordinator's logic: sessions, jobs and rounds, with every message made by hand."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from support.desk import BOUNDS, CAP, FEATURES, Crash, Desk, Side, job_of

from colonnade.core.errors import (
    BadInput,
    ColonnadeError,
    NotEnrolled,
    RequestConflict,
    StaleEpoch,
    UnknownJob,
)
from colonnade.methods.frank_wolfe.spec import PartySampling
from colonnade.methods.job import Job, job_id
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.outbox import Send
from colonnade.server.engine.progress import run_of, status_of
from colonnade.server.results import report_of
from colonnade.server.store.base import State
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.jobspec import feature_to_proto, job_to_bytes


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk("hospital", "lab")
    yield made
    made.store.close()


def kinds(sent: list[Send], party: str) -> list[str]:
    return [each.message.WhichOneof("message") or "" for each in sent if each.party == party]


# -- sessions ------------------------------------------------------------------------------------


def test_enrolling_again_with_the_same_key_is_nothing_new(desk: Desk) -> None:
    before = desk.stored()
    desk.do(desk.engine.enrol, "lab", desk.sides["lab"].enrolment())
    assert desk.stored() == before


def test_enrolling_with_another_key_or_without_its_signature_is_refused(desk: Desk) -> None:
    other = Side.of("lab", 9).enrolment()
    desk.refused(NotEnrolled, "another ledger key", desk.engine.enrol, "lab", other)
    request = desk.sides["lab"].enrolment()
    for name, federation in (("hospital", "study"), ("lab", "other")):
        wrong = Coordinator(desk.store, federation)
        desk.refused(BadInput, "not signed", wrong.enrol, name, request)
    for change in ({"ledger_key": b""}, {"signature": bytes(64)}, {"ledger_id": bytes(15)}):
        broken = pb.EnrolRequest()
        broken.CopyFrom(request)
        for key, value in change.items():
            setattr(broken, key, value)
        desk.refused(BadInput, "not signed", desk.engine.enrol, "lab", broken)


def test_only_an_enrolled_ledger_attaches_with_the_protocol_and_a_sane_offer(desk: Desk) -> None:
    attach, lab = desk.engine.attach, desk.sides["lab"]
    desk.refused(NotEnrolled, "not enrolled this ledger", attach, "bank", lab.hello())
    other = lab.hello(ledger_id=bytes(16))
    desk.refused(NotEnrolled, "not enrolled this ledger", attach, "lab", other)
    desk.refused(BadInput, "speaks protocol 9", attach, "lab", lab.hello(protocol=9))
    nan = feature_to_proto("a", BOUNDS, 0.0)
    nan.low = float("nan")
    for change in (
        {"population": 0},
        {"population": 2**63},
        {"unit": job_pb2.UNIT_UNSPECIFIED},
        {"unit": job_pb2.UNIT_CLIENT, "population": 2**20 + 1},
        {"cap_units": 2**64 - 1},
        {"spent_units": CAP + 1},
        {"spent_units": 2**64 - 1, "reserved_units": 2**64 - 1},
        {"dataset": ""},
        {"dataset": "a\nb"},
        {"features": [nan]},
        {"features": [feature_to_proto("a", BOUNDS, 0.0)] * 2},
        {"features": [feature_to_proto("a", BOUNDS)]},  # no fill
        {"features": [feature_to_proto("a", BOUNDS, float("nan"))]},
        {"features": [feature_to_proto("a", BOUNDS, 3.1)]},
        {"features": [job_pb2.Feature(name="", low=0, high=1)]},
        {"tight": [0]},
        {"tight": [0, 1]},  # for one of three columns
        {"tight": [0, 1, 0, 1, 1, 1]},
        {"tight": [0, 1, 0, 1, 0, 2**30 + 1]},
    ):
        offer = lab.hello().offer
        for key in change:
            offer.ClearField(key)
        offer.MergeFrom(pb.Offer(**change))
        desk.refused(BadInput, "party lab", attach, "lab", lab.hello(offer=offer))


def test_a_new_session_fences_the_older(desk: Desk) -> None:
    _, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    answer.epoch = desk.epochs["lab"]
    desk.attach("lab")
    desk.refused(
        StaleEpoch, "session 1 of party lab was replaced", desk.engine.receive, "lab", answer
    )
    # An ending of the older one changes nothing for the newer.
    desk.do(desk.engine.detach, "lab", 1)
    assert "lab" in desk.engine.attached
    assert kinds(desk.send("lab", answer), "lab") == []  # kept; the next task will tell
    desk.do(desk.engine.detach, "lab", 2)
    assert "lab" not in desk.engine.attached
    desk.refused(StaleEpoch, "session 2", desk.engine.receive, "lab", answer)


def test_epochs_grow_through_a_restart(desk: Desk) -> None:
    for expected in (1, 2):
        desk.attach("lab")
        assert desk.epochs["lab"] == expected
    desk.start()
    assert not desk.engine.attached
    desk.attach("lab")
    assert desk.epochs["lab"] == 3


def test_a_welcome_shows_the_newest_release_that_is_held(desk: Desk) -> None:
    assert not desk.attach("lab")[0].message.welcome.HasField("latest")
    desk.run(job_of("hospital", "lab"))
    desk.start()
    latest = desk.attach("lab")[0].message.welcome.latest
    newest = max(kept.seq for kept in desk.sides["lab"].ledger.state.stored.values())
    assert latest.receipt.seq == newest


# -- jobs ----------------------------------------------------------------------------------------


def test_a_job_runs_to_its_end_and_its_hash_chain_holds(desk: Desk) -> None:
    name = desk.run(job_of("hospital", "lab"))
    assert desk.state(name) is State.FINISHED
    chain = b""
    rows = desk.store.iterates(name)
    assert [row.round for row in rows] == [0, 1, 2, 3, 4]
    for row in rows:
        chain = hashlib.sha256(chain + row.body).digest()
        assert row.chain == chain
    for side in desk.sides.values():
        assert side.ledger.state.left == {}  # what was set aside is free again
        cap = side.ledger.state.admitted[name, ""]
        assert 0 < side.ledger.budget().spent <= cap


def test_the_same_bytes_twice_are_one_job(desk: Desk) -> None:
    job = job_of("hospital", "lab")
    for name in desk.sides:
        desk.attach(name)
    assert kinds(desk.submit(job), "lab") == ["proposal"]
    assert desk.submit(job) == []
    name = desk.run(job)
    assert desk.submit(job) == []  # and after its end
    assert [row.job_id for row in desk.store.jobs()] == [name]


def test_a_job_that_cannot_be_is_refused(desk: Desk) -> None:
    submit = desk.engine.submit
    desk.refused(BadInput, "no JobSpec", submit, b"\xff", "x")
    desk.refused(NotEnrolled, "party bank", submit, job_to_bytes(job_of("lab", "bank")), "x")
    unknown = job_to_bytes(job_of("lab")) + b"\xa0\x3f\x01"
    desk.refused(BadInput, "does not know", submit, unknown, "x")


def test_a_refused_proposal_ends_the_job_and_tells_the_others(desk: Desk) -> None:
    for name in desk.sides:
        desk.attach(name)
    desk.submit(job := job_of("hospital", "lab"))
    name = job_id(job_to_bytes(job))
    text = "feature 'x'\nmay not take part" + "!" * 400
    decision = pb.Decision(job_id=name, code="policy_refused" * 40, message=text)
    sent = desk.send("lab", pb.AttachRequest(decision=decision))
    assert kinds(sent, "hospital") == ["ending"]
    assert desk.state(name) is State.FAILED
    reason = desk.reason(name)
    assert reason.startswith("party lab refused the job (policy_refused")
    assert "feature 'x'?may not take part" in reason
    assert len(reason) < 400
    assert reason.isprintable()


def test_a_refused_round_ends_the_job_and_the_model_so_far_is_kept(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab"))
    sent = [
        *desk.send("lab", desk.answer("lab", tasks["lab"])),
        *desk.send("hospital", desk.answer("hospital", tasks["hospital"])),
    ]
    (task,) = (
        each.message.task for each in sent if each.party == "lab" and each.message.HasField("task")
    )
    assert task.round == 1
    desk.send("lab", desk.answer("lab", task))
    refusal = pb.Refusal(job_id=name, round=1, code="budget_exceeded", message="nothing is left")
    desk.send("hospital", pb.AttachRequest(refusal=refusal))
    assert desk.reason(name) == (
        "party hospital refused round 1 (budget_exceeded): nothing is left"
    )
    run = run_of(desk.engine, desk.store, desk.store.jobs()[0])
    report = report_of(desk.engine, desk.store, run)
    assert report["state"] == "failed"
    assert report["model"]["features"]
    assert report["rounds"] == {"planned": 3, "done": 0}
    # The lab's choice was paid for and is counted, though the round never closed.
    assert {row["kind"] for row in report["uplink"]["rows"] if row["party"] == "lab"} > {"select"}


def test_a_refusal_of_a_round_that_was_answered_ends_nothing(desk: Desk) -> None:
    # A task may come a second time, after its answer was taken and purged at the party.
    name, tasks = desk.opened(job_of("hospital", "lab"))
    desk.send("lab", desk.answer("lab", tasks["lab"]))
    stale = pb.Refusal(job_id=name, round=tasks["lab"].round, code="release_purged")
    desk.send("lab", pb.AttachRequest(refusal=stale))
    assert desk.state(name) is State.RUNNING
    desk.send("hospital", desk.answer("hospital", tasks["hospital"]))
    assert desk.engine.runs[name].round == tasks["lab"].round + 1
    desk.send("lab", pb.AttachRequest(refusal=stale))
    assert desk.state(name) is State.RUNNING


def test_a_cancelled_job_stays_cancelled(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab"))
    sent = desk.do(desk.engine.cancel, name, "an operator")
    assert kinds(sent, "lab") == kinds(sent, "hospital") == ["ending"]
    assert (desk.state(name), desk.reason(name)) == (State.CANCELLED, "cancelled by an operator")
    desk.do(desk.engine.cancel, name, "someone else")
    assert desk.reason(name) == "cancelled by an operator"
    late = desk.send("lab", desk.answer("lab", tasks["lab"]))
    assert kinds(late, "lab") == ["ending"]
    assert not desk.store.answers(name, 0)
    desk.refused(UnknownJob, "no job", desk.engine.cancel, "nothing", "x")


def test_an_ending_reaches_a_party_that_was_away_when_it_comes_back(desk: Desk) -> None:
    name, _ = desk.opened(job_of("hospital", "lab"))
    assert name in desk.sides["lab"].ledger.state.left
    desk.do(desk.engine.detach, "lab", desk.epochs["lab"])
    assert kinds(desk.do(desk.engine.cancel, name, "x"), "lab") == []
    for again in (False, True):
        if again:
            desk.start()
        assert kinds(desk.attach("lab"), "lab") == ["welcome", "ending"]
    desk.deliver(desk.attach("lab"))
    assert name not in desk.sides["lab"].ledger.state.left
    assert kinds(desk.attach("lab"), "lab") == ["welcome"]


# -- rounds --------------------------------------------------------------------------------------


def test_a_submission_again_is_acknowledged_and_counted_as_a_retry(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    assert kinds(desk.send("lab", answer), "lab") == []
    desk.do(desk.engine.settle)
    before = desk.store.answers(name, 0)
    rows = {row.kind: row for row in desk.store.uplink(name) if row.party == "lab"}
    assert kinds(desk.send("lab", answer), "lab") == ["receipted"]
    assert desk.store.answers(name, 0) == before
    again = {row.kind: row for row in desk.store.uplink(name) if row.party == "lab"}
    assert again["means"] == rows["means"]
    assert (again["control"].messages, again["control"].wire_bytes) == (
        rows["control"].messages,
        rows["control"].wire_bytes,
    )
    assert again["control"].retry_bytes > len(before["lab"])
    assert rows["control"].retry_bytes == 0
    # After the round has closed, and after the job has ended, too.
    desk.deliver(desk.send("hospital", desk.answer("hospital", tasks["hospital"])))
    assert "receipted" in kinds(desk.send("lab", answer), "lab")


def test_other_bytes_under_a_used_key_are_refused(desk: Desk) -> None:
    _, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    desk.send("lab", answer)
    other = pb.AttachRequest()
    other.CopyFrom(answer)
    body = bytearray(other.submission.releases[0].body)
    body[0] ^= 1
    other.submission.releases[0].body = bytes(body)
    desk.refused(RequestConflict, "before with other bytes", desk.engine.receive, "lab", other)


def test_a_party_that_was_not_asked_is_refused(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital"))
    answer = desk.answer("hospital", tasks["hospital"])
    answer.epoch = desk.epochs["lab"]
    desk.refused(BadInput, "party lab is not in job", desk.engine.receive, "lab", answer)
    answer.submission.job_id = "0" * 64
    desk.refused(UnknownJob, "no job", desk.engine.receive, "lab", answer)
    ahead = desk.answer("hospital", tasks["hospital"])
    ahead.epoch = desk.epochs["hospital"]
    ahead.submission.round = 2
    desk.refused(BadInput, "not asked for round 2", desk.engine.receive, "hospital", ahead)
    assert desk.state(name) is State.RUNNING


def test_serial_rounds_take_answers_of_one_party_only(desk: Desk) -> None:
    job = job_of("hospital", "lab", sampling=PartySampling.SERIAL, mean_units=0)
    _, tasks = desk.opened(job)
    assert list(tasks) == ["hospital"]
    answer = desk.answer("hospital", tasks["hospital"])
    answer.epoch = desk.epochs["lab"]
    desk.refused(BadInput, "asked for nothing in round 1", desk.engine.receive, "lab", answer)


def _changed(answer: pb.AttachRequest, change: Any) -> pb.AttachRequest:
    made = pb.AttachRequest()
    made.CopyFrom(answer)
    change(made.submission)
    return made


def test_what_the_ledger_did_not_sign_for_this_round_is_refused(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    answer.epoch = desk.epochs["lab"]

    def releases(field: str, value: Any) -> Any:
        def change(submission: pb.Submission) -> None:
            release = submission.releases[0]
            holder: Any = release
            *path, last = field.split(".")
            for part in path:
                holder = getattr(holder, part)
            setattr(holder, last, value)

        return change

    cases = {
        "signature": releases("receipt.signature", bytes(64)),
        "short": releases("receipt.signature", b""),
        "seq": releases("receipt.seq", 2**64 - 1),
        "spent": releases("receipt.spent_units", 1),
        "ledger": releases("receipt.ledger_id", bytes(16)),
        "body": releases("body", bytes(len(answer.submission.releases[0].body))),
        "job": releases("key.job_id", "0" * 64),
        "round": releases("key.round", 1),
        "kind": releases("key.kind", "share"),
        "account": releases("key.account", "someone"),
        "twice": lambda submission: submission.releases.append(submission.releases[0]),
        "empty": lambda submission: submission.ClearField("releases"),
    }
    for change in cases.values():
        message = _changed(answer, change)
        desk.refused(BadInput, "lab|receipt", desk.engine.receive, "lab", message)
    assert desk.state(name) is State.RUNNING
    desk.send("lab", answer)


def resigned(side: Side, message: pb.AttachRequest, **changes: Any) -> pb.AttachRequest:
    """Return a submission as a party that lies about a release would sign it with its own key."""
    made = pb.AttachRequest()
    made.CopyFrom(message)
    release = made.submission.releases[0]
    for name, value in changes.items():
        holder: Any = release.receipt if name in ("seq", "spent_units") else release
        holder = release.key if name in ("kind", "round") else holder
        setattr(holder, name, value)
    statement = release_from_proto(release).receipt.statement()
    release.receipt.signature = side.ledger.sign(statement)
    return made


def test_a_signed_lie_of_wrong_kind_size_or_place_is_refused(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab"))
    answer, lab = desk.answer("lab", tasks["lab"]), desk.sides["lab"]
    answer.epoch = desk.epochs["lab"]
    size = len(answer.submission.releases[0].body)
    for changes in (
        {"body": b""},
        {"body": bytes(size + 1)},
        {"body": bytes(2**20)},
        {"kind": "share"},
        {"kind": "nonsense"},
        {"round": 1},
        {"seq": 2**63},
        {"seq": 2**64 - 1},
    ):
        message = resigned(lab, answer, **changes)
        desk.refused(BadInput, "lab", desk.engine.receive, "lab", message)
    # One of the right size is believed: what a party says of its data is its own affair.
    desk.send("lab", resigned(lab, answer, body=bytes(size)))
    desk.deliver(desk.send("hospital", desk.answer("hospital", tasks["hospital"])))
    assert desk.store.answers(name, 0)


def test_a_kind_that_is_released_twice_is_refused(desk: Desk) -> None:
    _, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    answer.epoch = desk.epochs["lab"]
    answer.submission.releases.append(answer.submission.releases[0])
    desk.refused(BadInput, "twice", desk.engine.receive, "lab", answer)


def test_a_selection_of_no_feature_is_refused(desk: Desk) -> None:
    _, tasks = desk.opened(job_of("hospital", "lab", mean_units=0))
    answer = desk.answer("lab", tasks["lab"])
    answer.epoch = desk.epochs["lab"]
    for code in (2 * len(FEATURES), 2**32 - 1):
        lie = resigned(desk.sides["lab"], answer, body=code.to_bytes(4, "little"))
        desk.refused(BadInput, "names no feature", desk.engine.receive, "lab", lie)


def test_a_message_of_no_known_kind_is_refused(desk: Desk) -> None:
    desk.attach("lab")
    for message in (pb.AttachRequest(epoch=1), pb.AttachRequest(epoch=1, hello=pb.Hello())):
        desk.refused(BadInput, "does not know", desk.engine.receive, "lab", message)


# -- time ----------------------------------------------------------------------------------------


def test_a_proposal_waits_as_long_as_the_job_says_and_no_longer(desk: Desk) -> None:
    desk.deliver(desk.attach("lab"))
    desk.deliver(desk.submit(job := job_of("hospital", "lab", timeout=10)))
    name = job_id(job_to_bytes(job))
    desk.now = 10.0
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.PROPOSED
    desk.now = 10.1
    sent = desk.do(desk.engine.tick)
    assert desk.reason(name) == "party hospital did not answer the proposal within 10 s"
    assert kinds(sent, "lab") == ["ending"]


def test_an_absence_is_counted_from_when_the_party_was_heard_last(desk: Desk) -> None:
    name, tasks = desk.opened(job_of("hospital", "lab", timeout=10))
    desk.send("hospital", desk.answer("hospital", tasks["hospital"]))
    desk.now = 9.0
    desk.do(desk.engine.detach, "lab", desk.epochs["lab"])
    desk.now = 18.9
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.RUNNING
    desk.attach("lab")  # it is back: the clock starts again
    desk.now = 28.8
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.RUNNING
    desk.now = 29.0
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.FAILED
    assert desk.reason(name) == "party lab did not answer round 0 within 10 s"
    run = run_of(desk.engine, desk.store, desk.store.jobs()[0])
    assert report_of(desk.engine, desk.store, run)["model"] is not None


def test_a_restart_gives_parties_their_time_again(desk: Desk) -> None:
    name, _ = desk.opened(job_of("hospital", "lab", timeout=10))
    desk.now = 1000.0
    desk.start()
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.RUNNING
    desk.now = 1010.1
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.FAILED


# -- crashes -------------------------------------------------------------------------------------


def uninterrupted(job: Job) -> tuple[int, list[Any], dict[str, int]]:
    desk = Desk("hospital", "lab")
    desk.commits = 0
    name = desk.run(job)
    spent = {each: side.ledger.budget().spent for each, side in desk.sides.items()}
    rows = list(desk.store.iterates(name))
    desk.store.close()
    return desk.commits, rows, spent


def test_a_coordinator_killed_at_any_commit_ends_with_the_same_model_at_no_extra_cost() -> None:
    job = job_of("hospital", "lab")
    commits, expected, price = uninterrupted(job)
    assert commits > 10
    for half in range(2 * commits):
        desk = Desk("hospital", "lab")
        desk.commits, desk.crash_at = 0, half / 2
        crashed = False
        for _ in range(2):
            try:
                desk.run(job)
                break
            except Crash:
                crashed, desk.crash_at = True, -1.0
                desk.start()  # of what it knew only the store is left
        name = job_id(job_to_bytes(job))
        assert crashed
        assert desk.state(name) is State.FINISHED
        assert list(desk.store.iterates(name)) == expected, f"crash at {half / 2}"
        for each, side in desk.sides.items():
            assert side.ledger.budget().spent == price[each]
        status = status_of(desk.engine, desk.store, desk.store.jobs()[0])
        assert {each.party: each.spent_units for each in status.parties} == price
        desk.store.close()


@settings(max_examples=300)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.binary(max_size=12))
def test_fuzzed_submissions_never_stop_the_coordinator(places: list[int], noise: bytes) -> None:
    desk, tasks = fuzzed()
    message = bytearray(desk.answer("lab", tasks["lab"]).SerializeToString())
    for place in places:
        at = place % len(message)
        message[at : at + 1] = noise[:1] or b"\0"
    message[places[0] % len(message) : 0] = noise
    try:
        made = pb.AttachRequest.FromString(bytes(message))
    except DecodeError:
        return  # gRPC refuses it
    made.epoch = desk.epochs["lab"]
    with suppress(ColonnadeError):  # anything else would end the process
        desk.do(desk.engine.receive, "lab", made)


def fuzzed() -> tuple[Desk, dict[str, pb.Task]]:
    """Return a desk with an open round; a new one whenever a fuzzed message ended the job."""
    if not _FUZZED or not _FUZZED[0][0].engine.runs:
        desk = Desk("hospital", "lab")
        _, tasks = desk.opened(job_of("hospital", "lab"))
        _FUZZED[:] = [(desk, tasks)]
    return _FUZZED[0]


_FUZZED: list[tuple[Desk, dict[str, pb.Task]]] = []


def test_a_stranger_with_the_certificate_but_not_the_ledgers_key_answers_nothing(
    desk: Desk,
) -> None:
    _, tasks = desk.opened(job_of("hospital", "lab"))
    answer = desk.answer("lab", tasks["lab"])
    answer.epoch = desk.epochs["lab"]
    thief = Ed25519PrivateKey.generate()
    release = answer.submission.releases[0]
    release.receipt.signature = thief.sign(release_from_proto(release).receipt.statement())
    desk.refused(BadInput, "its ledger did not sign", desk.engine.receive, "lab", answer)
