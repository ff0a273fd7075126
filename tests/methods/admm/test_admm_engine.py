"""Rounds of clients at the coordinator: deadlines, late answers, declines, crashes."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clients import PRICE, ClientDesk, admm_job, tasks_of
from support.desk import Crash
from support.entropy import shake

from colonnade.core.errors import BadInput, RequestConflict
from colonnade.methods.admm.choices import Aggregate, Variant
from colonnade.methods.admm.codec import tasks_to_bytes
from colonnade.methods.admm.releases import DISPLACEMENT, INTERCEPT
from colonnade.methods.admm.tasks import ClientTasks
from colonnade.methods.job import Job, job_id
from colonnade.party.methods.registry import answers_of
from colonnade.server.engine.cohort import Cohort
from colonnade.server.engine.outbox import Send
from colonnade.server.engine.progress import status_of
from colonnade.server.engine.rounds import Run
from colonnade.server.engine.status import job_status
from colonnade.server.methods.admm.rules import DualRule
from colonnade.server.methods.admm.state import AdmmState, encode_state
from colonnade.server.store.base import State
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.codec import release_from_proto
from colonnade.wire.cohort import Replies, newest_release
from colonnade.wire.jobspec import job_to_bytes

TWO = {"gateway": 6, "lab": 1}


@pytest.fixture(autouse=True)
def known_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_bytes", lambda size: shake("sampling")(size))


@pytest.fixture
def desk() -> Iterator[ClientDesk]:
    made = ClientDesk(TWO)
    yield made
    made.store.close()


def state_of(desk: ClientDesk, name: str) -> AdmmState:
    run = desk.engine.runs.get(name)
    if run is None:
        row = next(row for row in desk.store.jobs() if row.job_id == name)
        run = Run.load(desk.store, row, now=0.0)
    assert isinstance(run.state, AdmmState)
    return run.state


def started(desk: ClientDesk, job: Job) -> tuple[str, dict[str, pb.Task]]:
    return desk.opened(job)


def tasks_in(sent: list[Send]) -> dict[str, pb.Task]:
    return {each.party: each.message.task for each in sent if each.message.HasField("task")}


# -- the whole job -------------------------------------------------------------------------------


def test_a_job_runs_and_every_client_pays_for_its_own_answers(desk: ClientDesk) -> None:
    job = admm_job(TWO, sampled=4, rounds=5)
    name = desk.run(job)
    assert desk.state(name) is State.FINISHED
    state = state_of(desk, name)
    assert state.round == 6
    assert int(state.taken.sum()) == 5 * 4
    cost = job.method.spec.mechanism.cost  # type: ignore[attr-defined]
    for party, first in (("gateway", 0), ("lab", 6)):
        side = desk.side(party)
        for number, account in enumerate(side.accounts):
            assert side.ledger.budget(account).spent == cost * state.taken[first + number]
    assert np.any(state.z != 0)


def test_payload_is_counted_by_round_party_and_kind_and_is_as_predicted(desk: ClientDesk) -> None:
    job = admm_job(TWO, sampled=4, rounds=5)
    name = desk.run(job)
    rows = [row for row in desk.store.uplink(name) if row.kind == DISPLACEMENT]
    size = job.method.body_bytes("lab", DISPLACEMENT)
    assert all(row.payload_bytes == row.messages * size for row in rows)
    assert sum(row.messages for row in rows) == 20
    assert sorted({row.round for row in rows}) == [1, 2, 3, 4, 5]
    control = [row for row in desk.store.uplink(name) if row.kind == "control"]
    assert all(row.wire_bytes > 0 for row in control)


def test_a_round_writes_what_was_answered_and_neither_points_nor_duals(desk: ClientDesk) -> None:
    job = admm_job(TWO, sampled=2, rounds=4)
    name = desk.run(job)
    first, *later = desk.store.iterates(name)
    assert len(first.body) > 7 * 4 * 8  # the duals of all
    size = job.method.body_bytes("lab", DISPLACEMENT)
    # A head of 20 bytes, the model, and for each answer three numbers and its body.
    assert {len(row.body) for row in later} == {20 + 4 * 8 + 2 * (3 * 4 + size)}
    for round_ in range(1, 5):
        for task in desk.store.tasks(name, round_).values():
            assert not job_pb2.TaskBody.FromString(task).admm_step.points


def test_a_task_is_asked_again_with_the_same_bytes_after_a_restart(desk: ClientDesk) -> None:
    gateway = desk.side("gateway")
    _, first = started(desk, admm_job(TWO, minimum=3, dual_weight=0.5))
    gateway.away = {1, 4}  # so that the second round asks for two rounds
    desk.send("lab", desk.answer("lab", first["lab"]))
    second = tasks_in(desk.send("gateway", desk.answer("gateway", first["gateway"])))
    asked = job_pb2.TaskBody.FromString(second["gateway"].body).admm_step
    assert list(asked.rounds) == [2, 1, 2, 2, 1, 2]
    assert any(asked.points)
    desk.start()
    assert tasks_in(desk.attach("gateway")) == {"gateway": second["gateway"]}
    assert tasks_in(desk.attach("lab")) == {"lab": second["lab"]}


def test_listing_a_job_that_has_ended_reads_none_of_its_states(
    desk: ClientDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [desk.run(admm_job(TWO, rounds=3, salt=salt)) for salt in (1, 2)]
    for party in TWO:
        desk.attach(party)
    running = desk.submit(admm_job(TWO, salt=3))[0].message.proposal.spec
    desk.do(desk.engine.cancel, job_id(running), "an operator")
    desk.start()
    desk.attach("lab")
    rows = {row.job_id: row for row in desk.store.jobs()}
    loaded = {name: job_status(Run.load(desk.store, row, now=0.0)) for name, row in rows.items()}

    def none(*given: object, **named: object) -> object:
        raise AssertionError("a state was read")

    for name in ("iterates", "latest_iterate", "answers"):
        monkeypatch.setattr(desk.store, name, none)
    listed = {name: status_of(desk.engine, desk.store, row) for name, row in rows.items()}
    assert [listed[name].rounds_done for name in names] == [3, 3]
    for name, status in listed.items():
        attached = [each.attached for each in status.parties]
        assert attached == [False, True]  # as it is now, not as it was
        for each in status.parties:
            each.attached = False
        assert status == loaded[name]
    spent = [[each.spent_units for each in listed[name].parties] for name in names]
    assert spent == [[3 * PRICE] * 2] * 2
    assert listed[job_id(running)].reason == "cancelled by an operator"


# -- deadlines and late answers ------------------------------------------------------------------


def test_a_round_closes_at_its_deadline_with_those_who_answered(desk: ClientDesk) -> None:
    name, tasks = started(desk, admm_job(TWO, minimum=3, rounds=2))
    sent = desk.send("gateway", desk.answer("gateway", tasks["gateway"]))
    assert tasks_in(sent) == {}  # the lab is awaited
    desk.now = 4.0
    assert tasks_in(desk.do(desk.engine.tick)) == {}
    desk.now = 5.5
    again = tasks_in(desk.do(desk.engine.tick))
    assert again["gateway"].round == 2
    state = state_of(desk, name)
    assert state.taken.tolist() == [1] * 6 + [0]
    assert state.owed.tolist() == [0] * 6 + [1]


def test_no_round_closes_with_fewer_than_the_minimum(desk: ClientDesk) -> None:
    name, tasks = started(desk, admm_job(TWO, minimum=2, rounds=2, party_timeout=30))
    desk.send("lab", desk.answer("lab", tasks["lab"]))
    desk.now = 6.0  # the deadline: the others are asked again, and the lab, which answered, not
    assert tasks_in(desk.do(desk.engine.tick)).keys() == {"gateway"}
    desk.now = 29.0
    assert desk.do(desk.engine.tick) == []  # nobody else can be asked
    assert state_of(desk, name).round == 1
    desk.now = 31.0
    desk.do(desk.engine.tick)
    assert desk.state(name) is State.FAILED
    reason = "round 1 of 2 had 1 answers and needs 2; it waited 30 s"
    assert desk.reason(name) == reason
    assert state_of(desk, name).taken.tolist() == [0] * 6 + [1]  # what was paid for is counted


def test_a_job_that_fails_in_a_round_keeps_the_model_before_and_counts_all_answers(
    desk: ClientDesk,
) -> None:
    gateway = desk.side("gateway")
    gateway.away_in = {number: {0, 1, 2} for number in range(2, 99)}
    job = admm_job(TWO, minimum=5, rounds=3, party_timeout=30)
    name, tasks = started(desk, job)
    sent = [each for p in TWO for each in desk.send(p, desk.answer(p, tasks[p]))]
    model = state_of(desk, name).z
    assert model.any()
    while name in desk.engine.runs:
        desk.deliver(sent)
        desk.now += 1.0
        sent = desk.do(desk.engine.tick)
    assert desk.state(name) is State.FAILED
    reason = "round 2 of 3 had 4 answers and needs 5; it waited 30 s"
    assert desk.reason(name) == reason
    state = state_of(desk, name)
    assert np.array_equal(state.z, model)
    assert state.taken.tolist() == [1, 1, 1, 2, 2, 2, 2]
    # Who is away is asked at growing distances: after 1, 2, 4 and then 5 s, the round's timeout.
    assert 6 <= len(desk.store.iterates(name)) - 3 <= 9
    row = next(row for row in desk.store.jobs() if row.job_id == name)
    assert status_of(desk.engine, desk.store, row).rounds_done == 1


def test_a_job_that_is_cancelled_counts_what_was_answered_until_then(desk: ClientDesk) -> None:
    name, tasks = started(desk, admm_job(TWO, minimum=3, rounds=2))
    desk.send("lab", desk.answer("lab", tasks["lab"]))
    desk.do(desk.engine.cancel, name, "an operator")
    assert state_of(desk, name).taken.tolist() == [0] * 6 + [1]
    row = next(row for row in desk.store.jobs() if row.job_id == name)
    status = status_of(desk.engine, desk.store, row)
    assert [party.spent_units for party in status.parties] == [0, PRICE]


def test_a_round_short_at_its_deadline_asks_others_instead(desk: ClientDesk) -> None:
    name, first = started(desk, admm_job(TWO, sampled=5, minimum=5, rounds=2))
    assert "lab" in first  # and it is gone
    sent = desk.send("gateway", desk.answer("gateway", first["gateway"]))
    assert sent == []
    desk.now = 6.0
    second = tasks_in(desk.do(desk.engine.tick))
    assert second.keys() == {"gateway"}
    asked = job_pb2.TaskBody.FromString(second["gateway"].body).admm_step
    before = job_pb2.TaskBody.FromString(first["gateway"].body).admm_step
    assert list(asked.rounds) == [1]
    assert not set(asked.clients) & set(before.clients)
    desk.send("gateway", desk.answer("gateway", second["gateway"]))
    state = state_of(desk, name)
    assert (state.round, state.drawing) == (2, 3)
    assert state.z.any()
    assert state.taken.sum() == 5


def late_desk(desk: ClientDesk) -> tuple[str, dict[str, pb.Task], dict[str, pb.Task]]:
    """Bring a job to round 2 with the lab's answer to round 1 on its way."""
    name, first = started(desk, admm_job(TWO, minimum=3, rounds=3))
    desk.send("gateway", desk.answer("gateway", first["gateway"]))
    desk.now = 6.0
    second = tasks_in(desk.do(desk.engine.tick))
    return name, first, second


def test_a_late_answer_is_applied_in_the_round_that_is_open(desk: ClientDesk) -> None:
    name, first, second = late_desk(desk)
    desk.send("lab", desk.answer("lab", first["lab"]))
    assert state_of(desk, name).taken[6] == 0  # kept, and used when the round closes
    desk.send("gateway", desk.answer("gateway", second["gateway"]))
    before = state_of(desk, name)
    assert before.round == 2  # the lab was asked again and has not answered that
    desk.send("lab", desk.answer("lab", second["lab"]))
    after = state_of(desk, name)
    assert after.round == 3
    assert after.taken.tolist() == [2] * 6 + [1]  # the same release twice counts once
    assert desk.side("lab").ledger.budget().spent == PRICE
    again = [row for row in desk.store.uplink(name) if row.kind == DISPLACEMENT and row.retry_bytes]
    counts = [(row.round, row.party, row.messages, row.payload_bytes) for row in again]
    assert counts == [(2, "lab", 0, 0)]
    counted = sum(row.messages for row in desk.store.uplink(name) if row.kind == DISPLACEMENT)
    assert counted == int(after.taken.sum())


def test_a_late_answer_moves_the_dual_as_one_in_time(desk: ClientDesk) -> None:
    name, first, second = late_desk(desk)
    late = desk.answer("lab", first["lab"])
    desk.send("lab", late)
    desk.send("gateway", desk.answer("gateway", second["gateway"]))
    desk.send("lab", desk.answer("lab", second["lab"]))
    moved = np.asarray(state_of(desk, name).u)[6]
    prompt = ClientDesk(TWO)
    other, tasks = started(prompt, admm_job(TWO, minimum=3, rounds=3))
    for party in TWO:
        prompt.send(party, prompt.answer(party, tasks[party]))
    assert np.array_equal(np.asarray(state_of(prompt, other).u)[6], moved)
    prompt.store.close()


@pytest.mark.parametrize("restart", [False, True])
def test_late_answers_to_two_rounds_are_both_applied(desk: ClientDesk, restart: bool) -> None:
    name, tasks = started(desk, admm_job(TWO, rounds=4))
    asked = [tasks["gateway"]]
    for round_ in (1, 2):  # both close without the gateway
        desk.send("lab", desk.answer("lab", tasks["lab"]))
        desk.now += 6.0
        tasks = tasks_in(desk.do(desk.engine.tick))
        assert tasks["gateway"].round == round_ + 1
        asked.append(tasks["gateway"])
    for task, away in zip(asked[:2], ({3, 4}, {0, 1, 2, 4}), strict=True):
        desk.side("gateway").away = away
        desk.send("gateway", desk.answer("gateway", task))
    desk.do(desk.engine.settle)
    if restart:
        desk.start()
        desk.attach("lab")
    desk.send("lab", desk.answer("lab", tasks["lab"]))
    desk.now += 6.0
    desk.do(desk.engine.tick)
    state = state_of(desk, name)
    assert state.round == 4
    assert state.taken.tolist() == [1, 1, 1, 1, 0, 1, 3]
    assert state.owed.tolist() == [0, 0, 0, 0, 1, 0, 0]


def test_late_answers_survive_a_restart(desk: ClientDesk) -> None:
    name, first, second = late_desk(desk)
    desk.send("lab", desk.answer("lab", first["lab"]))
    desk.do(desk.engine.settle)
    desk.start()
    run = desk.engine.runs[name]
    assert isinstance(run.strategy, Cohort)
    assert run.strategy.late["lab"].clients.tolist() == [0]
    assert run.awaited() == ["gateway", "lab"]
    for party in TWO:
        desk.attach(party)
        desk.send(party, desk.answer(party, second[party]))
    assert state_of(desk, name).taken.tolist() == [2] * 6 + [1]


def test_the_same_late_answer_again_is_acknowledged_and_another_is_refused(
    desk: ClientDesk,
) -> None:
    _, first, _ = late_desk(desk)
    answer = desk.answer("lab", first["lab"])
    desk.send("lab", answer)
    sent = desk.send("lab", answer)
    assert [each.message.WhichOneof("message") for each in sent] == ["receipted"]
    changed = pb.AttachRequest()
    changed.CopyFrom(answer)
    body = bytearray(answer.submission.clients.bodies[0])
    body[0] ^= 1
    changed.submission.clients.bodies[0] = bytes(body)
    changed.epoch = desk.epochs["lab"]
    desk.refused(RequestConflict, "before with other bytes", desk.engine.receive, "lab", changed)


# -- who is not there, and who declines ----------------------------------------------------------


def test_clients_that_are_away_do_not_stop_a_round_and_are_asked_again(desk: ClientDesk) -> None:
    gateway = desk.side("gateway")
    name, first = started(desk, admm_job(TWO, minimum=3, rounds=3))
    gateway.away = {1, 4}
    sent = desk.send("lab", desk.answer("lab", first["lab"]))
    sent = desk.send("gateway", desk.answer("gateway", first["gateway"]))
    state = state_of(desk, name)
    assert state.round == 2
    assert state.owed.tolist() == [0, 1, 0, 0, 1, 0, 0]
    gateway.away = set()
    second = tasks_in(sent)
    for party in TWO:
        desk.send(party, desk.answer(party, second[party]))
    assert state_of(desk, name).taken.tolist() == [2, 1, 2, 2, 1, 2, 2]
    cost = PRICE
    spent = [gateway.ledger.budget(account).spent for account in gateway.accounts]
    assert spent == [2 * cost, cost, 2 * cost, 2 * cost, cost, 2 * cost]  # no second charge


def test_a_round_with_too_few_there_asks_until_it_has_its_minimum(desk: ClientDesk) -> None:
    gateway = desk.side("gateway")
    name, tasks = started(desk, admm_job(TWO, minimum=5, rounds=1))
    gateway.away = {0, 1, 2}
    sent = [each for p in TWO for each in desk.send(p, desk.answer(p, tasks[p]))]
    state = state_of(desk, name)
    assert (state.round, state.drawing) == (1, 2)
    assert not state.z.any()  # four answers are too few for a step
    assert state.taken.tolist() == [0, 0, 0, 1, 1, 1, 1]
    again = tasks_in(sent)
    asked = job_pb2.TaskBody.FromString(again["gateway"].body).admm_step
    assert again.keys() == {"gateway"}
    assert (list(asked.clients), list(asked.rounds)) == ([0, 1, 2], [1, 1, 1])
    assert desk.send("gateway", desk.answer("gateway", again["gateway"])) == []  # not at once
    assert desk.do(desk.engine.tick) == []
    desk.now = 1.0
    third = tasks_in(desk.do(desk.engine.tick))
    assert third["gateway"].body == again["gateway"].body
    gateway.away = {0}
    desk.send("gateway", desk.answer("gateway", third["gateway"]))
    assert desk.state(name) is State.FINISHED
    state = state_of(desk, name)
    assert state.taken.tolist() == [0, 1, 1, 1, 1, 1, 1]
    rule = DualRule(admm_job(TWO, minimum=5, rounds=1).method.spec)  # type: ignore[attr-defined]
    assert np.array_equal(
        state.z, rule.consensus(np.asarray(state.u).sum(axis=0))
    )  # all moved the model
    assert {gateway.ledger.budget(account).spent for account in gateway.accounts} == {PRICE}


def test_a_client_over_its_cap_declines_and_the_round_goes_on() -> None:
    desk = ClientDesk(TWO)
    poor = desk.side("gateway").accounts[2]
    desk.side("gateway").ledger.set_cap(2 * PRICE, reason="little", account=poor)
    name = desk.run(admm_job(TWO, rounds=4))
    state = state_of(desk, name)
    assert desk.state(name) is State.FINISHED
    assert state.declined.tolist() == [False, False, True, False, False, False, False]
    assert state.taken.tolist() == [4, 4, 2, 4, 4, 4, 4]
    assert desk.side("gateway").ledger.budget(poor).spent == 2 * PRICE
    desk.store.close()


def test_a_party_that_refuses_a_task_is_out_and_the_job_goes_on(desk: ClientDesk) -> None:
    name, first = started(desk, admm_job(TWO, rounds=2))
    desk.send("gateway", desk.answer("gateway", first["gateway"]))
    refusal = pb.Refusal(job_id=name, round=1, code="bad_input", message="no")
    sent = desk.send("lab", pb.AttachRequest(refusal=refusal))
    assert state_of(desk, name).declined.tolist() == [False] * 6 + [True]
    assert tasks_in(sent).keys() == {"gateway"}


def test_a_party_that_refuses_the_job_is_left_out(desk: ClientDesk) -> None:
    for party in TWO:
        desk.attach(party)
    sent = desk.submit(admm_job(TWO, rounds=2))
    name = next(iter(desk.engine.runs))
    refused = pb.Decision(job_id=name, code="budget_exceeded", message="no budget")
    desk.send("lab", pb.AttachRequest(decision=refused))
    desk.deliver([each for each in sent if each.party == "gateway"])
    assert desk.state(name) is State.FINISHED
    assert state_of(desk, name).taken.tolist() == [2] * 6 + [0]


def test_a_job_whose_clients_run_out_ends_and_says_so() -> None:
    caps = {"": 2 * PRICE}
    desk = ClientDesk(TWO, gateway=caps, lab=caps)
    name = desk.run(admm_job(TWO, rounds=9, minimum=2))
    assert desk.state(name) is State.FAILED
    reason = "round 3 of 9 had 0 answers and needs 2; too few clients are left to ask"
    assert desk.reason(name) == reason
    assert state_of(desk, name).taken.tolist() == [2] * 7
    desk.store.close()


# -- what nobody asked for -----------------------------------------------------------------------


def test_answers_that_nobody_asked_for_are_refused_and_leave_no_trace(desk: ClientDesk) -> None:
    _, tasks = started(desk, admm_job(TWO, sampled=3, rounds=2))
    party = "gateway"
    answer = desk.answer(party, tasks[party])
    asked = list(answer.submission.clients.clients)
    other = next(client for client in range(6) if client not in asked)

    def broken(**changes: object) -> pb.AttachRequest:
        made = pb.AttachRequest()
        made.CopyFrom(answer)
        made.epoch = desk.epochs[party]
        for field, value in changes.items():
            made.submission.clients.ClearField(field)
            if isinstance(value, list):
                getattr(made.submission.clients, field).extend(value)
            else:
                setattr(made.submission.clients, field, value)
        return made

    said = answer.submission.clients
    receive = desk.engine.receive
    for message, says in (
        (broken(clients=[other, *asked[1:]]), "was not asked"),
        (broken(rounds=[2] * len(asked)), "was not asked|not sign"),
        (broken(bodies=[body + b"x" for body in said.bodies]), "bytes instead|not sign"),
        (broken(bodies=said.bodies[:-1] or [b""]), "other numbers|speaks of|not sign|bytes"),
        (broken(declined=[other]), "was not asked"),
        (broken(declined=[asked[0]]), "twice"),
        (broken(newest=7), "not there"),
        (broken(account="another"), "not sign"),
        (broken(account="x" * 65), "too long a name"),
        (broken(kind="select"), "not sign"),
        (broken(kind="select", bodies=[], clients=[], rounds=[]), "another kind of job"),
    ):
        desk.refused(BadInput, says, receive, party, message)


# -- crashes -------------------------------------------------------------------------------------


def resigned(desk: ClientDesk, answer: pb.AttachRequest, body: bytes) -> pb.AttachRequest:
    """Return an answer of the lab with another body, signed as only its ledger can."""
    changed = pb.AttachRequest()
    changed.CopyFrom(answer)
    changed.submission.clients.bodies[0] = body
    release = newest_release(changed.submission)
    assert release is not None
    receipt = replace(release_from_proto(release).receipt, signature=b"")
    signature = desk.side("lab").ledger.sign(receipt.statement())
    changed.submission.clients.receipt.signature = signature
    return changed


def test_what_was_answered_is_not_replaced_by_a_late_answer_of_other_bytes(
    desk: ClientDesk,
) -> None:
    name, first, second = late_desk(desk)
    desk.send("lab", desk.answer("lab", second["lab"]))
    late = desk.answer("lab", first["lab"])
    body = late.submission.clients.bodies[0]
    too_long = resigned(desk, late, body + b"x")
    too_long.epoch = desk.epochs["lab"]
    desk.do(desk.engine.settle)
    desk.refused(BadInput, "bytes", desk.engine.receive, "lab", too_long)
    desk.send("lab", resigned(desk, late, bytes(len(body))))
    desk.do(desk.engine.settle)
    desk.start()  # it reads what it kept
    for party in TWO:
        desk.attach(party)
    desk.send("gateway", desk.answer("gateway", second["gateway"]))
    undisturbed = ClientDesk(TWO)
    other, _, again = late_desk(undisturbed)
    undisturbed.send("lab", undisturbed.answer("lab", again["lab"]))
    undisturbed.send("gateway", undisturbed.answer("gateway", again["gateway"]))
    assert state_of(desk, name).round == state_of(undisturbed, other).round == 3
    assert np.array_equal(state_of(desk, name).u, state_of(undisturbed, other).u)
    undisturbed.store.close()


@pytest.mark.parametrize("round_", [2**31, 2**32 - 1])
def test_a_round_beyond_a_databases_integers_is_refused(desk: ClientDesk, round_: int) -> None:
    name, _ = started(desk, admm_job(TWO))
    for message in (
        pb.AttachRequest(submission=pb.Submission(job_id=name, round=round_)),
        pb.AttachRequest(refusal=pb.Refusal(job_id=name, round=round_)),
    ):
        message.epoch = desk.epochs["lab"]
        desk.refused(BadInput, "no job has", desk.engine.receive, "lab", message)


def ask(desk: ClientDesk, name: str, rounds: range) -> int:
    """Ask the gateway's first client in many rounds; return how often it answers."""
    answered = 0
    for round_ in rounds:
        asked = ClientTasks(np.array([0]), np.array([round_]), np.zeros((1, 4), np.int64))
        replies = desk.side("gateway").answers[name].answer(round_, tasks_to_bytes(asked))
        assert isinstance(replies, Replies)
        answered += len(replies.released)
    return answered


def test_a_job_that_a_client_could_not_afford_does_not_live_on_what_becomes_free() -> None:
    desk = ClientDesk({"gateway": 3}, gateway={"": 10 * PRICE})
    side = desk.side("gateway")
    for job, most in (
        (admm_job({"gateway": 3}, rounds=9, salt=1), 9),
        (admm_job({"gateway": 3}, rounds=10, participations=2, salt=2), 2),
    ):
        assert job.max_units("gateway") == most * PRICE
        side._accept(job_to_bytes(job))
    first, second = side.answers
    assert ask(desk, second, range(1, 4)) == 1  # of two: one was all that the other job left
    side.ledger.close_job(first)
    assert ask(desk, second, range(4, 11)) == 0
    # Nor when the host starts again and considers the job anew.
    spec = job_to_bytes(admm_job({"gateway": 3}, rounds=10, participations=2, salt=2))
    side.answers.clear()
    side._accept(spec)
    assert ask(desk, second, range(4, 11)) == 0
    desk.store.close()


Outcome = tuple[bytes, bytes, list[int]]  # state, chain, spent


def outcome(desk: ClientDesk, name: str) -> Outcome:
    spent = [
        desk.side(party).ledger.budget(account).spent
        for party in TWO
        for account in desk.side(party).accounts
    ]
    return encode_state(state_of(desk, name)), desk.store.iterates(name)[-1].chain, spent


PLAN: dict[str, Any] = {
    "variant": Variant.PLANNED,
    "radii": (1024, 800),
    "intercept_rounds": 2,
    "intercept_units": PRICE // 2,
    "client_rows": 4,
    "rounds": 4,
}
MODES: dict[str, dict[str, Any]] = {
    "paper": {},
    "planned": PLAN,
    "sums": {**PLAN, "aggregate": Aggregate.HOST},
}


def run_with_crashes(crash_at: float, *, short: bool, mode: str = "paper") -> Outcome:
    desk = ClientDesk(TWO)
    job = admm_job(TWO, **{"sampled": 4, "rounds": 4, **MODES[mode]})
    if short:  # three are away at a time, so that rounds need several drawings
        job = admm_job(TWO, **{"sampled": 5, "minimum": 4, "rounds": 3, **MODES[mode]})
        desk.side("gateway").away_in = {
            number: {number % 6, (number + 2) % 6, (number + 3) % 6} for number in range(99)
        }
    desk.crash_at = crash_at + desk.commits
    try:
        name = desk.run(job)
    except Crash:
        desk.crash_at = -1.0
        desk.start()
        name = desk.run(job)
    while name in desk.engine.runs:
        desk.now += 1.0
        desk.deliver(desk.do(desk.engine.tick))
    found = outcome(desk, name)
    state = state_of(desk, name)
    assert desk.state(name) is State.FINISHED
    assert (state.drawing > state.round) is short
    desk.store.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "short"), [("paper", False), ("paper", True), ("planned", True), ("sums", True)]
)
def test_a_coordinator_killed_at_any_commit_ends_with_the_same_bits_and_charges(
    mode: str, short: bool
) -> None:
    whole = run_with_crashes(-10.0, short=short, mode=mode)
    for commit in range(2, 22):
        for moment in (commit, commit + 0.5):
            assert run_with_crashes(moment, short=short, mode=mode) == whole, moment


def test_where_nobody_is_there_the_answer_is_of_the_kind_that_was_asked(desk: ClientDesk) -> None:
    job = admm_job(TWO, sampled=4, **PLAN)
    name, _ = started(desk, job)
    side = desk.side("gateway").answers[name]
    gone = answers_of(job, replace(side.context, drop_out=1.0 - 2.0**-50))
    size = job.method.spec.point_size(4)  # type: ignore[attr-defined]
    body = tasks_to_bytes(tasks_of((0, 4, np.ones(size, np.int64))))
    replies = gone.answer(9, body)
    assert isinstance(replies, Replies)
    assert (replies.kind, dict(replies.released), [*replies.declined]) == (INTERCEPT, {}, [])


@pytest.mark.parametrize("mode", ["planned", "sums"])
def test_a_planned_job_costs_and_sends_exactly_what_was_predicted(
    desk: ClientDesk, mode: str
) -> None:
    job = admm_job(TWO, **{"sampled": 4, **MODES[mode]})
    name = desk.run(job)
    assert desk.state(name) is State.FINISHED
    state, spec = state_of(desk, name), job.method.spec  # type: ignore[attr-defined]
    assert state.intercepts.tolist() == [1] * 7
    first, last = spec.release(1).cost, spec.release(spec.rounds).cost
    paid = (state.taken * first + state.intercepts * last).tolist()
    assert outcome(desk, name)[2] == paid
    assert max(paid) <= spec.max_units
    rows = [row for row in desk.store.uplink(name) if row.kind != "control"]
    assert {row.kind for row in rows} == {DISPLACEMENT, INTERCEPT}
    for row in rows:
        assert row.payload_bytes == row.messages * job.method.body_bytes(row.party, row.kind)
        if mode == "sums":
            assert row.messages == 1
    answers = sum(row.messages for row in rows)
    assert answers == (len(rows) if mode == "sums" else int(state.answers.sum()))


def test_the_chain_follows_from_what_was_said_whoever_spoke_first_and_after_a_restart() -> None:
    found = []
    for parties, restart in ((("gateway", "lab"), False), (("lab", "gateway"), True)):
        desk = ClientDesk(TWO)
        desk.side("gateway").ledger.set_cap(PRICE, reason="little", account=poor_of(desk))
        desk.side("gateway").away = {4}  # it owes round 1, so that a restart reads all since
        name, tasks = started(desk, admm_job(TWO, rounds=4))
        while name in desk.engine.runs:
            sent = [each for p in parties for each in desk.send(p, desk.answer(p, tasks[p]))]
            tasks = tasks_in(sent)
            if restart:
                desk.start()
                for party in parties:
                    desk.attach(party)
        state = state_of(desk, name)
        assert state.taken.tolist() == [4, 4, 1, 4, 0, 4, 4]
        assert state.declined.tolist() == [False, False, True, False, False, False, False]
        found.append(outcome(desk, name))
        desk.store.close()
    assert found[0] == found[1]


def poor_of(desk: ClientDesk) -> str:
    return desk.side("gateway").accounts[2]
