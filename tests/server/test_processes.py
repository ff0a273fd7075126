"""Several coordinators' logic over one PostgreSQL, every message passed by hand."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from support.desk import Desk, Side, job_of
from support.postgres import reset, running_postgres

from colonnade.core.errors import StaleEpoch, StoreConflict
from colonnade.methods.job import Job, job_id
from colonnade.server.engine import worker as worker_module
from colonnade.server.engine.coordinator import Coordinator
from colonnade.server.engine.progress import find_job, status_of
from colonnade.server.engine.worker import Worker
from colonnade.server.store import peers
from colonnade.server.store.base import State
from colonnade.server.store.faults import StoreLost
from colonnade.server.store.peers import _LIVING
from colonnade.server.store.pulse import Pulse
from colonnade.server.store.sql import Database
from colonnade.server.store.tables import LEASES, PROCESSES, RELAY_DOWN, RELAY_UP
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire.jobspec import job_to_bytes


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture
def url(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    reset(server)
    # Only `Pulse` sends heartbeats here, and a busy machine takes seconds for a step.
    lease = sa.text("interval '10 minutes'")
    seen, now = PROCESSES.c.seen_at, sa.func.clock_timestamp()
    living = sa.select(PROCESSES.c.name).where(seen > now - lease, seen < now + lease)
    monkeypatch.setattr(peers, "_LIVING", living)
    return server


class Killed(Exception):
    """Ends a process at a commit."""


class Process:
    """A coordinator process: its connection, its logic, and whether it lives."""

    def __init__(self, url: str) -> None:
        self.store = Database(url)
        self.engine = Coordinator(self.store, "study", clock=lambda: 1e9, monotonic=lambda: 0.0)
        self.lives, self.commits, self.kill_at = True, 0, -1.0

    @property
    def name(self) -> str:
        assert self.store.peers is not None
        return self.store.peers.process

    def do(self, method: Callable[..., Any], *given: Any) -> list[Any]:
        with self.store.transaction():
            method(*given)
            if self.commits == self.kill_at:
                raise Killed
        self.commits += 1
        if self.commits - 0.5 == self.kill_at:
            raise Killed
        return self.engine.take()[0]


class Cluster:
    """Processes on one database and parties that are attached to any of them."""

    def __init__(self, url: str, *names: str, processes: int = 2) -> None:
        self.all = [Process(url) for _ in range(processes)]
        self.sides = {name: Side.of(name, seed) for seed, name in enumerate(names)}
        self.at: dict[str, tuple[Process, int]] = {}
        for place, side in enumerate(self.sides.values()):
            where = self.all[place % processes]
            self.call(where, where.engine.enrol, side.name, side.enrolment())
            self.attach(side.name, where)

    def close(self) -> None:
        for each in self.all:
            each.store.close()

    def call(self, where: Process, method: Callable[..., Any], *given: Any) -> None:
        """Call a process and let parties answer until nobody there has more to say."""
        if not where.lives:
            return
        try:
            sent = where.do(method, *given)
        except Killed:
            self.kill(where)
            return
        for each in sent:
            if each.message.HasField("welcome"):
                self.at[each.party] = (where, each.epoch)
            elif self.at.get(each.party) == (where, each.epoch):
                self.say(each.party, self.sides[each.party].take(each.message))

    def say(self, party: str, message: pb.AttachRequest | None) -> None:
        if message is not None and party in self.at:
            where, message.epoch = self.at[party]
            self.call(where, where.engine.receive, party, message)

    def attach(self, party: str, where: Process) -> None:
        self.call(where, where.engine.attach, party, self.sides[party].hello())

    def kill(self, process: Process) -> None:
        """End a process: its connection closes, and its heartbeat stops."""
        process.lives = False
        process.store.close()
        other = next(each for each in self.all if each.lives)
        lapse(other, process)
        lost = [party for party, (where, _) in self.at.items() if where is process]
        for party in lost:
            del self.at[party]

    def until(self, name: str) -> State:
        """Let time pass until a job has ended."""
        for _ in range(40):
            living = [each for each in self.all if each.lives]
            for party in self.sides.keys() - self.at.keys():
                self.attach(party, living[0])
            for each in living:
                self.call(each, each.engine.tick)
            row = self.all[-1].store.job(name)
            if row is not None and row.state.ended:
                return row.state
        raise AssertionError(f"the job is {row}")

    def run(self, job: Job) -> str:
        name = job_id(job_to_bytes(job))
        for _ in range(2):
            first = next(each for each in self.all if each.lives)
            self.call(first, first.engine.submit, job_to_bytes(job), "an operator")
        assert self.until(name) is State.FINISHED
        return name


def lapse(by: Process, process: Process, seen: str = "now() - interval '1 hour'") -> None:
    """Let a process's lease run out, or renew it."""
    with by.store.transaction():
        by.store._connection.execute(
            sa.update(PROCESSES)
            .where(PROCESSES.c.name == process.name)
            .values(seen_at=sa.text(seen))
        )


def expected(job: Job) -> tuple[list[Any], dict[str, int]]:
    desk = Desk("hospital", "lab")
    rows = list(desk.store.iterates(desk.run(job)))
    spent = {name: side.ledger.budget().spent for name, side in desk.sides.items()}
    desk.store.close()
    return rows, spent


def test_parties_of_different_processes_fit_the_model_of_one(url: str) -> None:
    job = job_of("hospital", "lab")
    rows, spent = expected(job)
    cluster = Cluster(url, "hospital", "lab")
    name = cluster.run(job)
    one, two = cluster.all
    assert list(two.store.iterates(name)) == rows
    assert {each: side.ledger.budget().spent for each, side in cluster.sides.items()} == spent
    # Either process shows the same, and nothing is left behind.
    told = [
        status_of(each.engine, each.store, find_job(each.engine, each.store, name[:8]))
        for each in (one, two)
    ]
    assert told[0].state == told[1].state
    assert [each.spent_units for each in told[1].parties] == list(spent.values())
    with one.store.transaction():
        for table in (LEASES, RELAY_UP, RELAY_DOWN):
            assert one.store._connection.execute(sa.select(table)).all() == []
    cluster.close()


@pytest.mark.slow
def test_a_job_survives_its_owners_death_at_any_commit_with_the_same_model_and_price(
    url: str,
) -> None:
    job = job_of("hospital", "lab", rounds=1)
    rows, spent = expected(job)
    whole = Cluster(url, "hospital", "lab")
    start = whole.all[0].commits
    whole.run(job)
    end = whole.all[0].commits
    whole.close()
    assert end - start > 8
    for half in range(2 * start, 2 * end, 3):  # before a commit, after the next but one, ...
        reset(url)
        cluster = Cluster(url, "hospital", "lab")
        cluster.all[0].kill_at = half / 2
        name = cluster.run(job)
        assert not cluster.all[0].lives
        assert list(cluster.all[1].store.iterates(name)) == rows, f"killed at {half / 2}"
        assert {each: side.ledger.budget().spent for each, side in cluster.sides.items()} == spent
        row = cluster.all[1].store.job(name)
        assert row is not None
        told = status_of(cluster.all[1].engine, cluster.all[1].store, row)
        assert {each.party: each.spent_units for each in told.parties} == spent
        cluster.close()


def opened(cluster: Cluster, job: Job) -> tuple[str, dict[str, pb.Task]]:
    """Submit at the first process and hold the parties' answers to the opening back."""
    tasks: dict[str, pb.Task] = {}
    for side in cluster.sides.values():
        take = side.take

        def held(message: pb.AttachResponse, take: Any = take, name: str = side.name) -> Any:
            if message.HasField("task"):
                tasks[name] = message.task
                return None
            return take(message)

        side.take = held  # type: ignore[method-assign]
    first = cluster.all[0]
    cluster.call(first, first.engine.submit, job_to_bytes(job), "an operator")
    for _ in range(3):
        for each in cluster.all:
            cluster.call(each, each.engine.tick)
    for side in cluster.sides.values():
        del side.__dict__["take"]
    return job_id(job_to_bytes(job)), tasks


def test_an_owner_that_stood_still_can_write_nothing_and_serves_on(url: str) -> None:
    job = job_of("hospital", "lab")
    rows, spent = expected(job)
    cluster = Cluster(url, "hospital", "lab")
    stale, other = cluster.all
    name, tasks = opened(cluster, job)
    assert set(tasks) == {"hospital", "lab"}
    lapse(other, stale)
    cluster.call(other, other.engine.tick)
    assert name in other.engine.runs
    assert name in stale.engine.runs  # it does not know yet
    answer = cluster.sides["hospital"].take(pb.AttachResponse(task=tasks["hospital"]))
    assert answer is not None
    answer.epoch = cluster.at["hospital"][1]
    before = list(other.store.iterates(name)), other.store.answers(name, 0)

    def write() -> None:
        stale.engine.receive("hospital", answer)
        stale.engine.settle()

    with pytest.raises(StoreConflict):
        stale.do(write)
    assert (list(other.store.iterates(name)), other.store.answers(name, 0)) == before
    stale.engine.reload()
    assert name not in stale.engine.runs
    lapse(stale, stale, "now()")
    # As one that owns nothing it takes its party's words to the new owner.
    cluster.say("hospital", answer)
    cluster.say("lab", cluster.sides["lab"].take(pb.AttachResponse(task=tasks["lab"])))
    assert cluster.until(name) is State.FINISHED
    assert list(other.store.iterates(name)) == rows
    assert {each: side.ledger.budget().spent for each, side in cluster.sides.items()} == spent
    cluster.close()


def test_a_process_that_takes_a_job_back_cannot_write_from_what_it_knew_before(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    name, _ = opened(cluster, job_of("hospital", "lab"))
    assert one.store.peers is not None
    assert two.store.peers is not None
    lapse(two, one)
    with two.store.transaction():
        assert two.store.peers.claim(10) == [name]
        two.store.peers.leave()
    held = dict(one.store.peers._tokens)
    with one.store.transaction():
        assert one.store.peers.claim(10) == [name]
    one.store.peers._tokens = held  # as memory of before would have it
    with pytest.raises(StoreConflict):
        one.do(one.engine.cancel, name, "an operator")
    row = two.store.job(name)
    assert row is not None
    assert not row.state.ended
    cluster.close()


def test_a_dead_owners_job_is_taken_although_the_databases_clock_was_set_back(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    dead, other = cluster.all
    name, _ = opened(cluster, job_of("hospital", "lab"))
    lapse(other, dead, "now() + interval '1 hour'")
    cluster.call(other, other.engine.tick)
    assert name in other.engine.runs
    cluster.close()


def test_a_process_whose_row_was_removed_lives_again_with_its_next_heartbeat(url: str) -> None:
    forgotten, other = Process(url), Process(url)
    with other.store.transaction():
        other.store._connection.execute(sa.delete(PROCESSES))
    pulse = Pulse(forgotten.store.engine, forgotten.name, lambda: None, lambda _: None)
    pulse.start()
    deadline = time.monotonic() + 20.0
    found: list[str] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
        with other.store.transaction():
            living = sa.select(PROCESSES.c.name).where(PROCESSES.c.name.in_(_LIVING))
            found = list(other.store._connection.execute(living).scalars())
    pulse.stop()
    assert found == [forgotten.name]
    for each in (forgotten, other):
        each.store.close()


def test_a_newer_session_at_another_process_ends_the_older_one(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    assert cluster.at["hospital"] == (one, 1)
    cluster.attach("hospital", two)
    assert cluster.at["hospital"] == (two, 2)
    sent = one.do(one.engine.collect)
    assert [(each.party, each.epoch, type(each.error)) for each in sent] == [
        ("hospital", 1, StaleEpoch)
    ]
    assert one.engine.attached == two.engine.attached == {"hospital", "lab"}
    # The end of the older stream does not end the newer session.
    one.do(one.engine.detach, "hospital", 1)
    two.do(two.engine.collect)
    assert "hospital" in two.engine.attached
    row = two.store.party("hospital")
    assert row is not None
    assert (row.epoch, row.process) == (2, two.name)
    cluster.close()


def test_a_process_that_waits_learns_at_its_next_tick_that_its_job_was_taken(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    name, _ = opened(cluster, job_of("hospital", "lab"))
    lapse(two, one)
    cluster.call(two, two.engine.tick)
    cluster.call(one, one.engine.tick)
    assert list(one.engine.runs) == []
    assert list(two.engine.runs) == [name]
    cluster.close()


def test_an_operator_cancels_a_job_at_any_process_and_submits_it_once(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    job = job_of("hospital", "lab")
    name, _ = opened(cluster, job)
    two.do(two.engine.submit, job_to_bytes(job), "an operator")
    assert name in one.engine.runs
    assert name not in two.engine.runs
    cluster.call(two, two.engine.cancel, name, "an operator")
    cluster.call(one, one.engine.collect)
    row = two.store.job(name)
    assert row is not None
    assert (row.state, row.reason) == (State.CANCELLED, "cancelled by an operator")
    cluster.close()


def test_what_an_owner_refuses_ends_the_session_where_it_is(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    name, tasks = opened(cluster, job_of("hospital", "lab"))
    answer = cluster.sides["lab"].take(pb.AttachResponse(task=tasks["lab"]))
    assert answer is not None
    answer.submission.releases[0].receipt.signature = bytes(64)
    answer.epoch = cluster.at["lab"][1]
    two.do(two.engine.receive, "lab", answer)
    one.do(one.engine.collect)
    (sent,) = two.do(two.engine.collect)
    assert (sent.party, sent.error.code) == ("lab", "bad_input")
    assert one.store.answers(name, 0) == {}
    cluster.close()


def test_a_worker_repeats_a_batch_that_another_process_was_ahead_of(url: str) -> None:
    cluster = Cluster(url, "hospital", "lab")
    one, two = cluster.all
    name, _ = opened(cluster, job_of("hospital", "lab"))
    lapse(two, one)
    cluster.call(two, two.engine.tick)
    worker = Worker(one.engine, one.store, lambda sent, changed: None)
    calls = [_call(lambda: one.engine.cancel(name, "an operator"))]
    assert worker._perform(calls) == [(None, None)]
    assert name not in one.engine.runs
    cluster.call(two, two.engine.collect)
    row = one.store.job(name)
    assert row is not None
    assert row.state is State.CANCELLED
    worker.close()
    cluster.close()


def end_connections(url: str) -> None:
    """Have the server end all connections but the one that asks, as it does when it restarts."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        query = (
            f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE {others}"
        )
        assert connection.execute(sa.text(query)).scalar_one() >= 1
    engine.dispose()


@contextmanager
def refusing(engine: sa.Engine, times: int) -> Iterator[list[int]]:
    """Have the next connections refused, as by a server that is not up yet."""
    seen: list[int] = []

    def refuse(*_: Any) -> None:
        seen.append(1)
        if len(seen) <= times:
            raise psycopg.OperationalError("connection refused")

    sa.event.listen(engine, "do_connect", refuse)
    yield seen
    sa.event.remove(engine, "do_connect", refuse)


def test_a_worker_waits_for_a_database_that_restarts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_PAUSE_S", 0.01)
    cluster = Cluster(url, "hospital", "lab")
    one, _ = cluster.all
    name, _ = opened(cluster, job_of("hospital", "lab"))
    worker = Worker(one.engine, one.store, lambda sent, changed: None)
    for refusals in (0, 7):  # more than the attempts after a conflict
        end_connections(url)
        with refusing(one.store.engine, refusals) as seen:
            assert worker._perform([_call(one.engine.tick)])[0][1] is None
        assert len(seen) == refusals + 1
    assert worker._perform([_call(lambda: one.engine.cancel(name, "an operator"))])[0][1] is None
    row = one.store.job(name)
    assert row is not None
    assert row.state is State.CANCELLED
    worker.close()
    cluster.close()


@pytest.mark.parametrize("stops", [True, False])
def test_a_worker_does_not_wait_for_a_database_for_ever(
    url: str, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_PATIENCE_S", 3600.0 if stops else 0.0)
    cluster = Cluster(url, "hospital", "lab")
    one, _ = cluster.all
    worker = Worker(one.engine, one.store, lambda sent, changed: None)
    if stops:
        worker.stop_waiting()
    end_connections(url)
    with refusing(one.store.engine, 10**6) as seen, pytest.raises(StoreLost, match="start again"):
        worker._perform([_call(one.engine.tick)])
    assert len(seen) <= 2
    worker.close()
    cluster.close()


def _call(function: Callable[[], Any]) -> Any:
    from colonnade.server.engine.worker import _Call

    return _Call(function, None, reads=False)  # type: ignore[arg-type]
