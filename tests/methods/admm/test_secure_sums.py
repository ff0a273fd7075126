"""Jobs that open nothing but the sum over all hosts: the protocol as a job, and its failures."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from support.clients import PRICE, ClientDesk, ClientSide, admm_job
from support.desk import VERSION, Crash
from support.entropy import shake

from colonnade.core.errors import (
    BadInput,
    BadMessage,
    ColonnadeError,
    PolicyRefused,
    RequestConflict,
)
from colonnade.ledger.create import LedgerConfig, memory_ledger
from colonnade.ledger.gate import Gate
from colonnade.masking.kinds import KEY, OPENED, SHARES, SURVIVORS
from colonnade.masking.rules import CohortRules
from colonnade.methods.admm.choices import Aggregate, Variant
from colonnade.methods.admm.job_spec import AdmmJobSpec
from colonnade.methods.admm.prox import ClientRows, factorise
from colonnade.methods.admm.releases import DISPLACEMENT, INTERCEPT
from colonnade.methods.admm.secure.claims import alone_units, cohort_promise
from colonnade.methods.admm.secure.exchanges import (
    Exchange,
    ExchangeTask,
    exchange_of,
    exchange_to_bytes,
    number_of,
)
from colonnade.methods.job import Job, job_id
from colonnade.party.data.clients import set_aside
from colonnade.party.methods.base import JobContext
from colonnade.party.methods.registry import answers_of
from colonnade.party.sealed.cohort import CohortGrant, cohort_grant_of, objection_to_cohort
from colonnade.privacy.accounting import units_down
from colonnade.privacy.distributed import GaussianShare
from colonnade.privacy.simulation import SeededNoise, ZeroNoise
from colonnade.server.engine.rounds import Run
from colonnade.server.methods.admm.opening import SumState
from colonnade.server.store.base import State
from colonnade.simulate.admm.baselines import federated
from colonnade.v1 import federation_pb2 as pb
from colonnade.v1 import job_pb2
from colonnade.wire.jobspec import job_from_bytes, job_to_bytes

pytestmark = pytest.mark.slow  # a job takes about a second

NAMES = tuple(f"host-{number:02}" for number in range(6))
RULES = CohortRules(6, 1)  # four must be there, three of them honest
PLAN: dict[str, Any] = {
    "variant": Variant.PLANNED,
    "radii": (1024, 800),
    "intercept_rounds": 1,
    "intercept_units": PRICE // 2,
    "client_rows": 4,
    "rounds": 3,
    "aggregate": Aggregate.COHORT,
    "maskers": RULES.maskers,
    "colluding": RULES.colluding,
}
Fate = Callable[[int], bool]  # whether a host is gone, by the number of a message


@dataclass
class Host(ClientSide):
    """A host that may refuse, or say nothing, from some exchange on."""

    refuses: Fate = lambda _number: False
    silent: Fate = lambda _number: False
    loses: Fate = lambda _number: False  # what it was charged for, on the way
    pins: dict[str, bytes] = field(default_factory=dict)
    tasks: dict[int, bytes] = field(default_factory=dict)  # by number, as they came

    def take(self, message: pb.AttachResponse) -> pb.AttachRequest | None:
        if message.WhichOneof("message") != "task":
            return super().take(message)
        task, number = message.task, message.task.round
        self.tasks[number] = task.body
        answer = pb.AttachRequest()
        if self.silent(number):
            return None
        try:
            if self.refuses(number):
                raise BadMessage("gone")
            replies = self.answers[task.job_id].answer(number, task.body)
        except ColonnadeError as error:
            answer.refusal.code = error.code
            answer.refusal.job_id, answer.refusal.round = task.job_id, number
            return answer
        answer.submission.job_id, answer.submission.round = task.job_id, number
        replies.put_into(answer.submission)
        return None if self.loses(number) else answer

    def _accept(self, spec: bytes) -> pb.AttachRequest:
        name, job = job_id(spec), job_from_bytes(spec)
        if name not in self.answers:
            set_aside(self.ledger, name, self.accounts, units=job.max_units(self.name))
            gate = Gate(self.ledger, self.noise)
            context = JobContext(name, self.name, VERSION, self.table, gate, self.ledger)
            context = replace(context, units=self.units, pins=self.pins)
            self.answers[name] = answers_of(job, context)
        return pb.AttachRequest(decision=pb.Decision(job_id=name, accepted=True))


class MaskedDesk(ClientDesk):
    """A coordinator and hosts of two clients, who have pinned each other's keys."""

    def __init__(self, names: tuple[str, ...] = NAMES, *, exact: bool = False) -> None:
        super().__init__({})
        for number, name in enumerate(names):
            ledger = memory_ledger(LedgerConfig(name, {"": 100 * PRICE}, simulation=True))
            noise = ZeroNoise() if exact else SeededNoise(number)
            self.sides[name] = Host(name, ledger, noise, clients=2)  # type: ignore[arg-type]
            self.do(self.engine.enrol, name, self.sides[name].enrolment())
        self.keys = {
            name: bytes.fromhex(side.ledger.opened.public_key) for name, side in self.sides.items()
        }
        for name in names:
            self.host(name).pins = {k: v for k, v in self.keys.items() if k != name}

    def host(self, name: str) -> Host:
        side = self.sides[name]
        assert isinstance(side, Host)
        return side

    def job(self, **changes: Any) -> Job:
        clients = dict.fromkeys(self.keys, 2)
        numbers = {**PLAN, "sampled": 2 * len(clients), "minimum": 3, **changes}
        made = admm_job(clients, **{"keys": tuple(self.keys.values()), **numbers})
        assert isinstance(made.method, AdmmJobSpec)
        return made

    def finish(self, job: Job) -> str:
        """Run a job to its end, past the deadlines of exchanges that lack somebody."""
        name = self.run(job)
        self.go_on(name)
        return name

    def go_on(self, name: str) -> None:
        for _ in range(400):
            if name not in self.engine.runs:
                return
            self.now += 3.0
            self.deliver(self.do(self.engine.tick))
        raise AssertionError("the job does not end")

    def sum_state(self, name: str) -> SumState:
        row = next(row for row in self.store.jobs() if row.job_id == name)
        state = Run.load(self.store, row, now=0.0).state
        assert isinstance(state, SumState)
        return state

    def spent(self) -> list[int]:
        hosts = [self.host(name) for name in self.keys]
        return [h.ledger.budget(account).spent for h in hosts for account in h.accounts]


@pytest.fixture(autouse=True)
def known_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_bytes", lambda size: shake("sampling")(size))


@pytest.fixture
def desk() -> Iterator[MaskedDesk]:
    made = MaskedDesk()
    yield made
    made.store.close()


def spec_of(job: Job) -> Any:
    assert isinstance(job.method, AdmmJobSpec)
    return job.method.spec


def gone_from(exchange: Exchange, *, attempt: int | None = None) -> Fate:
    def fate(number: int) -> bool:
        at, which = exchange_of(number)
        return which >= exchange and attempt in (None, at)

    return fate


# -- the whole job -------------------------------------------------------------------------------


def test_without_noise_the_model_is_that_of_all_answers_in_one_place() -> None:
    desk = MaskedDesk(exact=True)
    job = desk.job()
    name = desk.finish(job)
    assert desk.state(name) is State.FINISHED
    spec, clients = spec_of(job), list[ClientRows]()
    for host in map(desk.host, NAMES):
        table = host.table
        assert table.label is not None
        clients += [ClientRows(table.features[:, r], table.label[r]) for r in host.units.rows()]
    # Everybody is asked in every round, so that the secret of the sampling does not matter.
    alone = federated(factorise(clients, spec), ZeroNoise(), hosts=len(NAMES))
    found = desk.sum_state(name).admm.z[: spec.dim] * spec.unit
    found[-1] /= 2.0
    assert np.allclose(found, alone, atol=4 * spec.unit)
    desk.store.close()


def test_every_client_pays_the_price_of_its_sums_and_messages_have_predicted_sizes(
    desk: MaskedDesk,
) -> None:
    job = desk.job()
    name = desk.finish(job)
    spec = spec_of(job)
    per_client = 2 * spec.release(1).cost + spec.release(3).cost
    assert desk.spent() == [per_client] * 12
    assert per_client <= spec.max_units
    rows = [row for row in desk.store.uplink(name) if row.kind != "control"]
    kinds = {KEY, SHARES, SURVIVORS, OPENED, DISPLACEMENT, INTERCEPT}
    assert {row.kind for row in rows} == kinds
    for row in rows:
        assert row.messages == 1  # a host's sum is one vector
        assert row.payload_bytes == job.method.body_bytes(row.party, row.kind)
    assert len(rows) == 6 * 5 * 3
    assert desk.sum_state(name).admm.answers.tolist() == [3] * 12


def test_a_masked_sum_that_the_coordinator_holds_says_nothing_of_its_host() -> None:
    desk = MaskedDesk(exact=True)  # not even noise hides it
    name = desk.finish(desk.job())
    radius = spec_of(desk.job()).radius
    for party in NAMES:
        stored = desk.store.answers(name, number_of(1, Exchange.MASK))[party]
        (body,) = [each for each in pb.Submission.FromString(stored).clients.bodies if each]
        words = np.frombuffer(body, "<i8")
        # Uniform words of 64 bits: one of 24 is below 2**40 once in 600,000 runs.
        assert min(abs(words).tolist()) > 2**40 > 2 * radius
    desk.store.close()


# -- drop-outs -----------------------------------------------------------------------------------


def test_a_tenth_of_the_hosts_may_drop_out_after_they_have_shared() -> None:
    desk = MaskedDesk(tuple(f"host-{number}" for number in range(10)))
    desk.host("host-3").refuses = gone_from(Exchange.MASK)
    name = desk.finish(desk.job(maskers=10, colluding=3))
    assert desk.state(name) is State.FINISHED
    state = desk.sum_state(name).admm
    assert state.drawing == state.round == 4  # no attempt failed
    assert state.counts[:, 1].tolist() == [9] * 3  # parts of the noise
    desk.store.close()


@pytest.mark.parametrize(
    ("exchange", "how"), [*((each, "refuses") for each in Exchange), (Exchange.MASK, "loses")]
)
def test_a_host_may_drop_out_at_any_exchange(
    desk: MaskedDesk, exchange: Exchange, how: str
) -> None:
    setattr(desk.host("host-03"), how, gone_from(exchange))
    name = desk.finish(desk.job())
    assert desk.state(name) is State.FINISHED
    state = desk.sum_state(name).admm
    assert state.drawing == state.round == 4  # no attempt failed
    others = np.delete(np.arange(12), [6, 7])
    assert state.answers[others].tolist() == [3] * 10
    masked = exchange > Exchange.MASK or how == "loses"
    assert (desk.spent()[6] > 0) is masked
    # What may have been paid is counted: never less than what the ledger says.
    spec = spec_of(desk.job())
    costs = state.taken * spec.release(1).cost + state.intercepts * spec.release(3).cost
    assert np.all(costs >= desk.spent())


def test_below_the_threshold_nothing_opens_and_the_next_attempt_is_charged_anew(
    desk: MaskedDesk,
) -> None:
    for name in NAMES[:3]:  # three of six are left, and four must be there
        desk.host(name).refuses = gone_from(Exchange.MASK, attempt=1)
    job = desk.job(participations=2)
    name = desk.finish(job)
    assert desk.state(name) is State.FAILED  # nobody may answer a third time
    state = desk.sum_state(name).admm
    assert state.counts[:, 0].tolist() == [12, 0][: len(state.counts)]
    price = spec_of(job).release(1).cost
    assert desk.spent() == [price] * 6 + [2 * price] * 6
    masks = [
        desk.store.answers(name, number_of(attempt, Exchange.MASK))[NAMES[5]] for attempt in (1, 2)
    ]
    first, second = (pb.Submission.FromString(each).clients for each in masks)
    assert first.bodies[0] != second.bodies[0]
    assert {*first.rounds} == {1}
    assert {*second.rounds} == {2}
    assert not desk.store.answers(name, number_of(1, Exchange.OPEN))


def test_an_exchange_without_enough_hosts_waits_for_those_who_are_away(desk: MaskedDesk) -> None:
    away = NAMES[:3]
    for each in away:
        desk.host(each).silent = lambda number: number == number_of(1, Exchange.CONFIRM)
    name = desk.run(desk.job())
    for _ in range(5):
        desk.now += 6.0
        assert desk.do(desk.engine.tick) == []  # three confirmed, which is not enough
    assert desk.sum_state(name).exchange is Exchange.CONFIRM
    for each in away:
        desk.host(each).silent = lambda _number: False
        desk.deliver(desk.attach(each))
    assert desk.state(name) is State.FINISHED
    assert desk.sum_state(name).admm.answers.tolist() == [3] * 12


def test_a_late_masked_sum_is_in_no_model_and_its_price_stays(desk: MaskedDesk) -> None:
    host = desk.host("host-03")
    host.silent = lambda number: number == number_of(1, Exchange.MASK)
    name = desk.run(desk.job())
    desk.now += 6.0
    later = desk.do(desk.engine.tick)  # closes without it
    task = pb.Task(job_id=name, round=3, body=host.tasks[3])
    host.silent = lambda _number: False
    before = desk.sum_state(name)
    late = desk.answer("host-03", task)
    assert desk.send("host-03", late) == []
    assert desk.send("host-03", late) != []  # a repeat is receipted
    assert [*desk.sum_state(name).masked] == [*before.masked] == [0, 1, 2, 4, 5]
    desk.deliver(later)
    assert desk.state(name) is State.FINISHED
    assert min(desk.spent()) > 0


# -- liars ---------------------------------------------------------------------------------------


def test_shares_that_were_not_dealt_open_nothing_and_the_round_is_tried_anew(
    desk: MaskedDesk,
) -> None:
    name, tasks = desk.opened(desk.job(participations=3))
    sent = [each for party in NAMES for each in desk.send(party, desk.answer(party, tasks[party]))]
    while sent:
        each = sent.pop(0)
        if not each.message.HasField("task"):
            continue
        answer = desk.sides[each.party].take(each.message)
        assert answer is not None
        if each.message.task.round == number_of(1, Exchange.OPEN) and each.party == NAMES[0]:
            # A liar's ledger signs what it likes, so the answer is put where it would be kept.
            run = desk.engine.runs[name]
            run.answers[each.party] = replace(
                run.strategy.parse(run, each.party, answer.submission, b""), body=bytes(6 * 33)
            )
            continue
        sent += desk.send(each.party, answer)
    state = desk.sum_state(name).admm
    assert state.drawing > state.round  # one attempt opened nothing
    assert not state.counts.any()  # nor did it move the model
    desk.go_on(name)
    assert desk.state(name) is State.FINISHED


def test_a_message_of_another_exchange_or_size_is_refused(desk: MaskedDesk) -> None:
    _, tasks = desk.opened(desk.job())
    good = desk.answer(NAMES[0], tasks[NAMES[0]])
    spoils: list[Callable[[pb.AttachRequest], object]] = [
        lambda m: m.submission.releases[0].key.__setattr__("kind", OPENED),
        lambda m: m.submission.releases.extend([*m.submission.releases]),
    ]
    for spoil in spoils:
        bad = pb.AttachRequest()
        bad.CopyFrom(good)
        spoil(bad)
        with pytest.raises((BadInput, BadMessage)):
            desk.send(NAMES[0], bad)
        desk.engine.take()


def mask_task(desk: MaskedDesk, party: str) -> tuple[str, job_pb2.TaskBody]:
    """Return the task of the first masked sum, which nobody has answered."""
    for each in NAMES:
        desk.host(each).silent = gone_from(Exchange.MASK)
    name = desk.run(desk.job())
    return name, job_pb2.TaskBody.FromString(desk.host(party).tasks[3])


def test_the_same_attempt_with_another_point_is_refused_and_costs_nothing(
    desk: MaskedDesk,
) -> None:
    name, body = mask_task(desk, NAMES[0])
    side = desk.host(NAMES[0]).answers[name]
    first = side.answer(3, body.SerializeToString())
    spent = desk.spent()
    points = np.frombuffer(body.cohort_step.asked.points, "<i8").copy()
    body.cohort_step.asked.points = (points + 1).tobytes()
    with pytest.raises(RequestConflict):
        side.answer(3, body.SerializeToString())
    assert [*first]
    assert desk.spent() == spent


def test_an_attempt_that_asks_clients_one_by_one_gets_one_sum(desk: MaskedDesk) -> None:
    # Under one attempt's masks: the second would bare the difference of two clients.
    name, body = mask_task(desk, NAMES[0])
    host, asked = desk.host(NAMES[0]), body.cohort_step.asked
    whole = body.SerializeToString()
    del asked.clients[1:], asked.rounds[1:]
    asked.points = asked.points[: len(asked.points) // 2]
    first = host.answers[name].answer(3, body.SerializeToString())
    assert [each.key.account for each in first] == [host.accounts[0]]
    asked.clients[0] = 1
    for other in (body.SerializeToString(), whole):
        with pytest.raises(RequestConflict):
            host.answers[name].answer(3, other)
    assert host.ledger.budget(host.accounts[1]).spent == 0


def test_a_client_admitted_later_gives_no_message_a_second_key(desk: MaskedDesk) -> None:
    host, job = desk.host(NAMES[0]), desk.job()
    # Another job has set all of the first client aside when this one is proposed, and then ends.
    host.ledger.admit("other", units=host.ledger.free(host.accounts[0]), account=host.accounts[0])
    for each in NAMES:
        desk.host(each).silent = gone_from(Exchange.SHARE)
    name = desk.run(job)
    assert (name, host.accounts[0]) not in host.ledger.state.admitted
    host.ledger.close_job("other")
    host.answers.clear()
    host._accept(job_to_bytes(job))  # a start: jobs are proposed again
    assert (name, host.accounts[0]) in host.ledger.state.admitted
    announce = number_of(1, Exchange.ANNOUNCE)
    first = host.answers[name].answer(announce, exchange_to_bytes(ExchangeTask(1)))
    assert [each.key.account for each in first] == [host.accounts[1]]  # a replay
    with pytest.raises(RequestConflict):
        host.answers[name].answer(announce, exchange_to_bytes(ExchangeTask(2)))


def test_a_task_that_names_nobody_on_the_roster_is_refused(desk: MaskedDesk) -> None:
    name, body = mask_task(desk, NAMES[0])
    body.cohort_step.sealed[0].place = len(NAMES)
    with pytest.raises(BadMessage):
        desk.host(NAMES[0]).answers[name].answer(3, body.SerializeToString())


def test_a_task_that_names_another_round_or_fewer_sharers_is_refused(desk: MaskedDesk) -> None:
    name, body = mask_task(desk, NAMES[0])
    side, before = desk.host(NAMES[0]).answers[name], desk.spent()

    def refused(spoil: Callable[[job_pb2.CohortStep], object], number: int = 3) -> None:
        bad = job_pb2.TaskBody()
        bad.CopyFrom(body)
        spoil(bad.cohort_step)
        with pytest.raises(BadMessage):
            side.answer(number, bad.SerializeToString())
        assert desk.spent() == before

    def other_round(step: job_pb2.CohortStep) -> None:
        step.round = step.asked.step = 2

    refused(other_round)  # keys were announced for round 1
    refused(lambda step: step.sealed.__delitem__(slice(0, 3)))  # three shared: too few
    refused(lambda step: step.announced[3].__setattr__("body", step.announced[4].body))
    refused(lambda step: step.ClearField("asked"))
    refused(lambda _step: None, number=number_of(2, Exchange.MASK))
    # Free messages have an end too: so many attempts, and no more.
    last = desk.job().method.max_attempts  # type: ignore[attr-defined]
    announce = exchange_to_bytes(ExchangeTask(1))
    assert [*side.answer(number_of(last, Exchange.ANNOUNCE), announce)]
    with pytest.raises(BadMessage):
        side.answer(number_of(last + 1, Exchange.ANNOUNCE), announce)


# -- crashes -------------------------------------------------------------------------------------


def crashed_at(moment: float) -> tuple[list[int], list[int], list[int]]:
    desk = MaskedDesk()
    desk.host(NAMES[3]).refuses = gone_from(Exchange.MASK)
    job = desk.job()
    desk.crash_at = moment + desk.commits
    try:
        name = desk.finish(job)
    except Crash:
        desk.crash_at = -1.0
        desk.start()
        name = desk.finish(job)
    state = desk.sum_state(name).admm
    assert desk.state(name) is State.FINISHED
    desk.store.close()
    return state.z.tolist(), state.answers.tolist(), desk.spent()


def test_a_coordinator_killed_at_any_commit_ends_with_the_same_model_and_charges() -> None:
    whole = crashed_at(-100.0)
    # Six attach, six accept; then commits of single answers: some of every exchange.
    for moment in (19.5, 26.0, 32.5):
        assert crashed_at(moment) == whole, moment


# -- by policy -----------------------------------------------------------------------------------


def test_secure_sums_are_refused_unless_the_policy_grants_them_with_these_keys(
    desk: MaskedDesk,
) -> None:
    method, me = desk.job().method, NAMES[0]
    pins = desk.host(me).pins
    assert objection_to_cohort(CohortGrant(pins), method, me) is None
    assert objection_to_cohort(None, method, me) is not None
    few = {name: key for name, key in pins.items() if name != NAMES[5]}
    assert objection_to_cohort(CohortGrant(few), method, me) is not None
    other = {**pins, NAMES[5]: bytes(32)}
    assert objection_to_cohort(CohortGrant(other), method, me) is not None
    assert objection_to_cohort(CohortGrant(pins, 2), method, me) is not None  # it assumes one
    assert objection_to_cohort(None, replace_sums(method), me) is None
    desk.host(me).pins = other
    with pytest.raises(PolicyRefused):  # nor does the method itself go on
        desk.host(me)._accept(job_to_bytes(desk.job()))


def replace_sums(method: Any) -> Any:
    spec = replace(method.spec, aggregate=Aggregate.HOST, maskers=0, colluding=0)
    return replace(method, spec=spec, keys=())


def test_a_grant_says_what_it_rests_on() -> None:
    peers, key = "peers-follow-the-protocol", "ed25519:" + "ab" * 32
    granted = cohort_grant_of(peers, {"lab": key}, 1, kinds=("admm",))
    assert granted == CohortGrant({"lab": bytes.fromhex("ab" * 32)}, 1)
    assert cohort_grant_of("", {}, None, kinds=("admm",)) is None
    wrongs: list[Callable[[], object]] = [
        lambda: cohort_grant_of("everybody", {}, None, kinds=("admm",)),
        lambda: cohort_grant_of("", {"lab": key}, None, kinds=("admm",)),
        lambda: cohort_grant_of(peers, {"lab": key}, None, kinds=("moments",)),
        lambda: cohort_grant_of(peers, {"lab": "ab"}, None, kinds=("admm",)),
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"cohort|kinds|key"):
            wrong()


def test_the_promise_names_the_hosts_and_what_is_left_if_all_others_collude(
    desk: MaskedDesk,
) -> None:
    spec = spec_of(desk.job())
    told = cohort_promise(spec, 1e-6)
    assert "if named peers follow the protocol" in told
    # Three parts make the noise, and one is left.
    whole = spec.max_participations * spec.release(1).cost + spec.release(3).cost
    assert alone_units(spec) == pytest.approx(3 * whole, rel=1e-6)


# -- the specification ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"maskers": 0},
        {"maskers": 5},
        {"colluding": 5},
        {"aggregate": Aggregate.HOST},
        {"variant": Variant.PAPER, "radii": (), "intercept_rounds": 0, "intercept_units": 0},
        {"keys": ()},
        {"keys": (bytes(32),) * RULES.maskers},
    ],
)
def test_numbers_of_a_secure_sum_that_do_not_belong_together_are_refused(
    desk: MaskedDesk, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"mask|collude|duals|key|sum"):
        desk.job(**changes)


def test_a_part_of_the_noise_is_priced_for_the_honest_ones_and_at_least_four_steps(
    desk: MaskedDesk,
) -> None:
    spec = spec_of(desk.job())
    for round_ in (1, 2, 3):
        release = spec.release(round_)
        share = release.mechanism
        assert share.parts == RULES.honest == 3
        assert share.sigma2 >= 16
        assert share.l2_sensitivity2 == 4 * release.radius**2
        limit = spec.release_units if round_ < 3 else spec.intercept_units
        assert 0.999 * limit < share.cost <= limit
    coarse = {"radius_bits": 18, "release_units": units_down(2.0**12), "participations": 1}
    with pytest.raises(ValueError, match=r"deviation|price"):  # hardly any noise would be left
        desk.job(**coarse)
    assert GaussianShare(16, 3, 1, 1).cost > 0
    with pytest.raises(ValueError, match="deviation"):
        GaussianShare(15, 3, 1, 1)


def test_every_host_is_asked_something_however_few_are_drawn(desk: MaskedDesk) -> None:
    name = desk.finish(desk.job(sampled=6, minimum=2, participations=1))
    assert desk.state(name) is State.FINISHED
    rows = [row for row in desk.store.uplink(name) if row.kind == DISPLACEMENT]
    for attempt in (1, 2):
        number = number_of(attempt, Exchange.MASK)
        assert {row.party for row in rows if row.round == number} == {*NAMES}
    assert desk.sum_state(name).admm.taken.tolist() == [1] * 12
    with pytest.raises(ValueError, match="every masker"):
        desk.job(sampled=5)


def test_default_rules_leave_room_for_a_tenth_to_drop_out() -> None:
    for maskers in range(5, 60):
        rules = CohortRules.default(maskers)
        assert rules.honest >= 3
        if rules.colluding:
            assert maskers - rules.threshold >= maskers / 10
    assert CohortRules.default(10) == CohortRules(10, 3)
    assert CohortRules.default(4) == CohortRules(4, 0)
    with pytest.raises(ValueError, match="too few"):
        CohortRules.default(3)
