"""Killed processes and cut connections: the job ends with the same bits at no extra cost."""

import asyncio
import hashlib
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.dying import Died, Dying, lived
from support.federation import (
    NAMES,
    WAIT_S,
    Running,
    coordinator,
    credentials_of,
    everyone,
    founded,
    make_job,
    make_moments_job,
    party,
    reference,
)
from support.proxy import Fault, proxied

from colonnade.cli.main import main
from colonnade.client import Client
from colonnade.core.errors import JobEnded, Unreachable
from colonnade.ledger.create import open_ledger
from colonnade.methods.job import Job, job_id
from colonnade.party.vault import party as vault_party
from colonnade.party.vault.meter import read_log
from colonnade.server import runtime as server_runtime
from colonnade.server.methods.registry import algorithm_of
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import free_port
from colonnade.v1 import federation_pb2 as pb
from colonnade.wire import channels
from colonnade.wire.jobspec import job_to_bytes
from colonnade.wire.limits import client_options, server_options

pytestmark = pytest.mark.slow

PAIR = NAMES[:2]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parties dial again at once: how long they wait is no part of these claims."""
    monkeypatch.setattr(vault_party, "_FIRST_WAIT_S", 0.03)
    monkeypatch.setattr(vault_party, "_LONGEST_WAIT_S", 0.2)


def job_of_kind(kind: str, *, rounds: int) -> Job:
    """Return a job of a pair; one of moments has the rounds that its stages have."""
    if kind == "moments":
        return make_moments_job(founded(), PAIR, keep=2)
    return make_job(founded(), PAIR, rounds=rounds)


def expected(job: Job) -> bytes:
    """Return the last iterate of an undisturbed run with the same noise."""
    name = job_id(job_to_bytes(job))
    return algorithm_of(job, name).encode(reference(founded(), job)[0])


def price(job: Job) -> dict[str, int]:
    """Return what an undisturbed run costs each party."""
    return reference(founded(), job)[1]


def tap(hub: Running) -> dict[tuple[str, int, str], set[bytes]]:
    """Note every body that arrives for every key, retries included."""
    bodies: dict[tuple[str, int, str], set[bytes]] = defaultdict(set)
    receive = hub.serving.engine.receive

    def tapped(name: str, message: pb.AttachRequest) -> None:
        for release in message.submission.releases:
            bodies[name, release.key.round, release.key.kind].add(release.SerializeToString())
        receive(name, message)

    hub.serving.engine.receive = tapped  # type: ignore[method-assign,assignment]
    return bodies


# -- cut connections -----------------------------------------------------------------------------


def cuts(seed: int) -> Iterator[Fault]:
    """Cut connections within handshake, session and submissions, in either direction."""
    draw = np.random.default_rng(seed)
    # The second connection of each dial is the session; a handshake takes about 3000 bytes up.
    for place in range(40):
        if place % 2 == 0 and draw.random() < 0.8:
            yield Fault()
        elif place % 3:
            yield Fault(cut_up=int(draw.integers(0, 9000)))
        else:
            yield Fault(cut_down=int(draw.integers(0, 9000)))


@pytest.mark.parametrize(
    ("seed", "kind"), [*((n, "frank-wolfe") for n in range(4)), (4, "moments")]
)
def test_connections_cut_at_any_byte_cost_nothing_and_change_no_bit(
    seed: int, kind: str, tmp_path: Path
) -> None:
    made, job = founded(), job_of_kind(kind, rounds=12)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(coordinator(made))
            bodies = tap(hub)
            proxies = [
                await stack.enter_async_context(proxied(hub.serving.port, cuts(2 * seed + place)))
                for place in range(2)
            ]
            members = {
                name: await stack.enter_async_context(
                    party(made, name, proxies[place].address, tmp_path)
                )
                for place, name in enumerate(PAIR)
            }
            await hub.attached(*PAIR)
            name = await hub.submit(job)
            assert await hub.ended(name) == "finished"
            assert (await hub.iterates(name))[-1].body == expected(job)
            assert {each: members[each].spent() for each in PAIR} == price(job)
            assert {len(seen) for seen in bodies.values()} == {1}
            # Undisturbed, each party makes two connections.
            assert sum(len(proxy.links) for proxy in proxies) > 8, "the cuts did not happen"

    asyncio.run(run())


def test_every_cut_within_one_submission_is_survived(tmp_path: Path) -> None:
    """Cut each of many sessions a few bytes further on: the whole of one submission is covered."""
    made, name = founded(), NAMES[0]
    job = make_job(made, [name], rounds=8)

    async def measure() -> tuple[int, int]:
        """Return the bytes of a session up to its attachment, and up to the job's end."""
        async with coordinator(made) as hub, proxied(hub.serving.port) as proxy:
            (tmp_path / "measured").mkdir()
            async with party(made, name, proxy.address, tmp_path / "measured"):
                await hub.attached(name)
                begin = proxy.links[1].up
                await hub.ended(await hub.submit(job))
                return begin, proxy.links[1].up

    async def run(begin: int, end: int) -> None:
        def faults() -> Iterator[Fault]:
            for offset in np.linspace(begin, end, 60).astype(int):
                yield from (Fault(), Fault(cut_up=int(offset)))

        async with coordinator(made) as hub, proxied(hub.serving.port, faults()) as proxy:
            bodies = tap(hub)
            async with party(made, name, proxy.address, tmp_path) as member:
                await hub.attached(name)
                submitted = await hub.submit(job)
                assert await hub.ended(submitted) == "finished"
                assert (await hub.iterates(submitted))[-1].body == expected(job)
                assert {len(seen) for seen in bodies.values()} == {1}
                charged = member.ledger.state.charges
                assert member.spent() == sum(entry.units for entry in charged.values())
                assert len(proxy.links) > 8

    begin, end = asyncio.run(measure())
    asyncio.run(run(begin, end))


def test_a_connection_that_goes_silent_is_given_up_and_the_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, job = founded(), make_job(founded(), PAIR)

    def quick(options: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Make the keepalive options a hundred times shorter, and leave the others alone."""
        names = (
            "grpc.keepalive_time_ms",
            "grpc.keepalive_timeout_ms",
            "grpc.http2.ping_timeout_ms",
        )
        assert {name for name, _ in options} >= set(names)
        return [(name, value // 100 if name in names else value) for name, value in options]

    monkeypatch.setattr(channels, "client_options", lambda: quick(client_options()))

    async def run() -> None:
        async with (
            coordinator(made, options=quick(server_options())) as hub,
            proxied(hub.serving.port) as proxy,
            party(made, PAIR[0], proxy.address, tmp_path),
            party(made, PAIR[1], hub.address, tmp_path),
        ):
            await hub.attached(*PAIR)
            proxy.links[-1].stall()  # no proposal gets through, and no end of the connection
            name = await hub.submit(job)
            assert await hub.ended(name) == "finished"
            assert (await hub.iterates(name))[-1].body == expected(job)
            assert len(proxy.links) > 2

    asyncio.run(run())


def test_a_slow_connection_changes_nothing(tmp_path: Path) -> None:
    made, job = founded(), make_job(founded(), PAIR)

    async def run() -> None:
        async with coordinator(made) as hub:
            slow = iter([Fault(delay_s=0.02)] * 4)
            async with (
                proxied(hub.serving.port, slow) as proxy,
                party(made, PAIR[0], proxy.address, tmp_path),
                party(made, PAIR[1], hub.address, tmp_path),
            ):
                await hub.attached(*PAIR)
                name = await hub.submit(job)
                assert await hub.ended(name) == "finished"
                assert (await hub.iterates(name))[-1].body == expected(job)

    asyncio.run(run())


# -- a coordinator that dies ---------------------------------------------------------------------


def check_chain(hub: Running, name: str) -> None:
    chain = b""
    for row in hub.store.iterates(name):
        chain = hashlib.sha256(chain + row.body).digest()
        assert row.chain == chain


@pytest.mark.parametrize(("kind", "least"), [("frank-wolfe", 5), ("moments", 2)])
def test_a_coordinator_that_dies_at_many_commits_ends_with_the_same_bits(
    kind: str, least: int, tmp_path: Path
) -> None:
    made, job = founded(), job_of_kind(kind, rounds=16)
    url = f"sqlite:///{tmp_path}/hub.db"
    draw, port = np.random.default_rng(5), free_port()

    async def run() -> int:
        async with AsyncExitStack() as stack:
            members = {
                each: await stack.enter_async_context(
                    party(made, each, f"127.0.0.1:{port}", tmp_path)
                )
                for each in PAIR
            }
            deaths = 0

            # A life of at most 4 commits attaches the parties and closes 3 rounds at best, because
            # the next is not asked before a commit: the first ``least`` lives cannot end the job.
            def store() -> Dying:
                commits = int(draw.integers(2, 5 if deaths < least else 15))
                return Dying(url, commits, after=bool(deaths % 2))

            while (last := await lived(made, job, store(), port=port, look=check_chain)) is None:
                deaths += 1
                assert deaths < 200
            assert last == expected(job)
            assert {each: members[each].spent() for each in PAIR} == price(job)
            return deaths

    assert asyncio.run(run()) >= least


def test_a_coordinator_ends_with_what_ended_it_and_not_with_what_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_runtime, "_TICK_S", 0.0)  # a call is always under way

    async def run() -> None:
        for _ in range(20):  # which of the two is found first is up to their addresses
            with pytest.raises(Died):
                await ended()

    async def ended() -> None:
        store = Dying("sqlite://", 5, after=False)
        try:
            async with coordinator(founded(), store=store) as hub:
                await asyncio.wait([hub.task], timeout=WAIT_S)
        finally:
            store.close()

    asyncio.run(run())


@asynccontextmanager
async def process(*arguments: str, says: str) -> AsyncIterator[subprocess.Popen[str]]:
    """Run a command of the package until it has said ``says``; kill it at the end."""
    command = [sys.executable, "-m", "colonnade.cli.main", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            line = await asyncio.wait_for(asyncio.to_thread(running.stdout.readline), WAIT_S)
            assert line.startswith(says), line
            yield running
        finally:
            running.kill()


def assert_ends_well(running: "subprocess.Popen[str]") -> None:
    """Ask a process to stop; its exit code is 0."""
    running.send_signal(signal.SIGTERM)
    assert running.wait(WAIT_S) == 0


def test_a_coordinator_process_killed_and_stopped_ends_with_the_same_bits(tmp_path: Path) -> None:
    made = founded()
    asks = credentials_of(made, "analyst").identity.uri
    job = replace(make_job(made, PAIR, rounds=16), requested_by=asks)
    name, port = job_id(job_to_bytes(job)), free_port()
    address, config = f"127.0.0.1:{port}", made.folder / "hub" / f"{tmp_path.name}.toml"
    config.write_text(
        f'listen = "{address}"\ncredentials = "pki"\ndatabase = "sqlite:///{tmp_path}/hub.db"\n'
    )
    draw = np.random.default_rng(3)

    def submit() -> None:
        with Client(address, credentials_of(made, "analyst")) as client:
            while True:  # parties enrol when they first attach
                try:
                    client.submit(job_to_bytes(job))
                    return
                except Exception as error:
                    if type(error).__name__ not in ("NotEnrolled", "Unreachable"):
                        raise
                time.sleep(0.02)

    def watch() -> str:
        with Client(address, credentials_of(made, "analyst")) as client:
            return [view.state for view in client.watch(name)][-1]

    async def run() -> None:
        async with AsyncExitStack() as stack:
            members = {
                each: await stack.enter_async_context(party(made, each, address, tmp_path))
                for each in PAIR
            }

            async def stored(count: int) -> None:
                """Wait until the parties have stored so many releases."""
                async with asyncio.timeout(WAIT_S):
                    while sum(len(each.ledger.state.stored) for each in members.values()) < count:
                        await asyncio.sleep(0.001)

            goal = 0
            for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                async with process("coordinator", "--config", str(config), says="listening") as hub:
                    await asyncio.to_thread(submit)
                    goal += int(draw.integers(5, 12))
                    await stored(goal)
                    hub.send_signal(how)
                    code = await asyncio.to_thread(hub.wait, WAIT_S)
                    assert code == (0 if how is signal.SIGTERM else -how)
            async with process("coordinator", "--config", str(config), says="listening") as hub:
                assert await asyncio.to_thread(watch) == "finished"
                await asyncio.to_thread(assert_ends_well, hub)
            assert {each: members[each].spent() for each in PAIR} == price(job)

    asyncio.run(run())
    store = Database(f"sqlite:///{tmp_path}/hub.db")
    rows = store.iterates(name)
    store.close()
    assert rows[-1].body == expected(job)
    chain = b""
    for row in rows:
        chain = hashlib.sha256(chain + row.body).digest()
        assert row.chain == chain


# -- a party that dies ---------------------------------------------------------------------------


def test_a_killed_party_pauses_its_round_and_pays_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made, name = founded(), NAMES[3]
    other = NAMES[0]
    job = make_job(made, [name, other], rounds=10)
    home = made.folder / name

    def spent() -> int:
        ledger = open_ledger(made.ledger(name))
        try:
            assert not ledger.state.left, "something is still set aside"
            return ledger.budget().spent
        finally:
            ledger.close()

    def freed(job: str) -> bool:
        """Look into the files whether the job was closed: a running party keeps its ledger."""
        closed = rb'"job":"%s","seq":[0-9]+,"time":[0-9.]+,"type":"closed"' % job.encode()
        return any(re.search(closed, each.read_bytes()) for each in home.glob("ledger/ledger.db*"))

    before = spent()

    async def run() -> int:
        async with coordinator(made) as hub, party(made, other, hub.address, tmp_path) as member:
            bodies = tap(hub)
            config = home / f"{tmp_path.name}.toml"
            text = made.party_config(name).read_text()
            config.write_text(
                text.replace("127.0.0.1:1", hub.address).replace("uplink.jsonl", "killed.jsonl")
            )
            command = ("party", "run", "--config", str(config))
            await hub.attached(other)
            engine, submitted = hub.serving.engine, job_id(job_to_bytes(job))

            def reached(round_: int) -> Callable[[], bool]:
                return lambda: engine.runs[submitted].round >= round_

            for round_ in (2, 6):
                async with process(*command, says="attached") as running:
                    await hub.attached(name)
                    await hub.submit(job)
                    await hub.until(reached(round_))
                    running.kill()
                    await hub.until(lambda: name not in engine.attached)
                    # The round waits for it, however often the clock ticks.
                    await hub.until(lambda: engine.runs[submitted].awaited() == [name])
                    await hub.serving.worker.do(engine.tick)
                    assert engine.runs[submitted].awaited() == [name]
                    assert not member.task.done()
            async with process(*command, says="attached") as running:
                assert await hub.ended(submitted) == "finished"
                await hub.until(lambda: freed(submitted))
                assert any(line.job == submitted for line in read_log(home / "killed.jsonl"))
                await asyncio.to_thread(assert_ends_well, running)
            assert {len(seen) for seen in bodies.values()} == {1}
            report = await asyncio.to_thread(_report, hub.address, submitted)
            units = [each["spent"]["units"] for each in report["privacy"]["parties"]]
            return int(units[0])

    paid = asyncio.run(run())
    assert spent() - before == paid
    assert main(["ledger", "verify", str(home / "ledger")]) == 0
    capfd.readouterr()


def _report(address: str, name: str) -> dict[str, dict[str, list[dict[str, dict[str, int]]]]]:
    with Client(address, credentials_of(founded(), "analyst")) as client:
        return client.report(name).document


def test_a_party_that_stays_away_fails_the_job_with_the_reason_and_the_model_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_runtime, "_TICK_S", 0.05)
    made, job = founded(), make_job(founded(), PAIR, rounds=100, party_timeout_s=1)
    now = 0.0  # the coordinator's clock: a busy machine must not make the other party late

    async def run() -> None:
        nonlocal now
        async with everyone(made, PAIR, tmp_path, monotonic=lambda: now) as (hub, members):
            name = await hub.submit(job)
            engine = hub.serving.engine
            await hub.until(lambda: engine.runs[name].round >= 2)
            members[PAIR[1]].stop.set()
            await members[PAIR[1]].task
            await hub.until(lambda: engine.runs[name].awaited() == [PAIR[1]])
            now = 2.0
            assert await hub.ended(name) == "failed"
            report = await asyncio.to_thread(_report, hub.address, name)
            assert f"party {PAIR[1]} did not answer round" in str(report["reason"])
            assert report["model"]["features"]
            await hub.until(lambda: not members[PAIR[0]].ledger.state.left)

    asyncio.run(run())


def test_a_watcher_of_a_coordinator_that_stops_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, job = founded(), make_job(founded(), PAIR)
    monkeypatch.setattr("colonnade.server.runtime._GRACE_S", 10 * WAIT_S)  # it is not needed

    def watch(address: str, name: str) -> None:
        with (
            Client(address, credentials_of(made, "analyst")) as client,
            pytest.raises((Unreachable, JobEnded)),
        ):
            list(client.watch(name))

    async def run() -> None:
        async with coordinator(made) as hub:
            async with party(made, PAIR[0], hub.address, tmp_path) as first:
                await hub.attached(PAIR[0])
                first.stop.set()
                await first.task
            async with party(made, PAIR[1], hub.address, tmp_path):
                await hub.attached(PAIR[1])
                name = await hub.submit(job)
                watching = asyncio.create_task(asyncio.to_thread(watch, hub.address, name))
                await hub.until(lambda: bool(hub.serving.board._watchers))
                hub.stop.set()
                await asyncio.wait_for(hub.task, WAIT_S)
                await watching

    asyncio.run(run())
