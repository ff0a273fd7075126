"""Coordinator processes on one PostgreSQL that are killed, stopped and woken while a job runs."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.federation import (
    WAIT_S,
    Member_,
    credentials_of,
    founded,
    make_job,
    party,
    reference,
)
from support.postgres import reset, running_postgres

from colonnade.client import Client
from colonnade.core.errors import NotEnrolled, Unreachable
from colonnade.methods.job import Job, job_id
from colonnade.server.methods.registry import side_of
from colonnade.server.store.sql import Database
from colonnade.server.store.tables import LEASES
from colonnade.simulate.federation import free_port
from colonnade.wire.jobspec import job_to_bytes

PAIR = ("hospital", "laboratory")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


class Hubs:
    """Coordinator processes, and what the tests see of them."""

    def __init__(self, url: str, folder: Path, count: int) -> None:
        self.url, self.running = url, list[subprocess.Popen[str]]()
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        self._configs = [founded().folder / "hub" / f"{folder.name}-{i}.toml" for i in range(count)]
        for config, address in zip(self._configs, self.addresses, strict=True):
            config.write_text(f'listen = "{address}"\ncredentials = "pki"\ndatabase = "{url}"\n')
        self.engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        command = [sys.executable, "-m", "colonnade.cli.main", "coordinator", "--config"]
        try:
            for config in self._configs:
                self.running.append(
                    subprocess.Popen([*command, str(config)], stdout=subprocess.PIPE, text=True)
                )
            for each in self.running:
                assert each.stdout is not None
                line = await asyncio.wait_for(asyncio.to_thread(each.stdout.readline), WAIT_S)
                assert line.startswith("listening"), line
            yield
        finally:
            for each in self.running:
                each.kill()
                each.wait()
                assert each.stdout is not None
                each.stdout.close()
            self.engine.dispose()

    def client(self, place: int) -> Client:
        return Client(self.addresses[place], credentials_of(founded(), "analyst"))

    async def submit(self, place: int, job: Job) -> None:
        with self.client(place) as client:
            for _ in range(3000):  # parties enrol when they first attach
                try:
                    await asyncio.to_thread(client.submit, job_to_bytes(job))
                    return
                except (NotEnrolled, Unreachable):
                    await asyncio.sleep(0.02)
        raise AssertionError("the parties never enrolled")

    def lease(self, name: str) -> tuple[str, int] | None:
        with self.engine.connect() as connection:
            query = sa.select(LEASES.c.owner, LEASES.c.token).where(LEASES.c.job_id == name)
            found = connection.execute(query).first()
            return None if found is None else (found.owner, found.token)

    def end_connections(self) -> None:
        """Have the database end all connections but this one."""
        others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
        query = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}"
        with self.engine.connect() as connection:
            assert connection.execute(sa.text(query)).scalar_one() > 0

    async def taken_from(self, name: str, before: tuple[str, int] | None) -> None:
        """Wait until another process owns the job."""
        async with asyncio.timeout(WAIT_S):
            while (found := self.lease(name)) == before:
                await asyncio.sleep(0.02)
        assert before is not None
        assert found is not None
        assert found[0] != before[0]
        assert found[1] > before[1]

    def watched(self, place: int, name: str) -> str:
        with self.client(place) as client:
            return [view.state for view in client.watch(name)][-1]


async def stored(members: dict[str, Member_], count: int) -> None:
    """Wait until the parties have stored so many releases."""
    async with asyncio.timeout(WAIT_S):
        while sum(len(each.ledger.state.stored) for each in members.values()) < count:
            await asyncio.sleep(0.001)


def check(url: str, job: Job, members: dict[str, Member_], name: str) -> None:
    """Compare the model's bytes and what parties spent with a run that nothing disturbed."""
    state, spent = reference(founded(), job)
    assert {each: member.spent() for each, member in members.items()} == spent
    store = Database(url)
    last = store.iterates(name)[-1]
    store.close()
    assert last.body == side_of(job.kind).algorithm(job, name, job.method).encode(state)


async def attached(stack: AsyncExitStack, address: str, folder: Path) -> dict[str, Member_]:
    return {
        each: await stack.enter_async_context(party(founded(), each, address, folder))
        for each in PAIR
    }


def run(server: str, tmp_path: Path, salt: int, scenario: Any) -> None:
    reset(server)
    asks = credentials_of(founded(), "analyst").identity.uri
    job = replace(make_job(founded(), PAIR, rounds=16, salt=salt), requested_by=asks)
    hubs = Hubs(server, tmp_path, 3)

    async def whole() -> None:
        async with hubs.run(), AsyncExitStack() as stack:
            members = await scenario(hubs, stack, job, job_id(job_to_bytes(job)))
            check(server, job, members, job_id(job_to_bytes(job)))

    asyncio.run(whole())


def test_two_of_three_processes_are_killed_and_the_third_ends_with_the_same_bits(
    server: str, tmp_path: Path
) -> None:
    async def scenario(hubs: Hubs, stack: AsyncExitStack, job: Job, name: str) -> Any:
        members = await attached(stack, ", ".join(hubs.addresses), tmp_path)
        await hubs.submit(0, job)
        await stored(members, 6)
        before = hubs.lease(name)
        hubs.running[0].send_signal(signal.SIGKILL)
        await hubs.taken_from(name, before)
        await stored(members, 12)
        hubs.running[1].send_signal(signal.SIGKILL)
        assert await asyncio.to_thread(hubs.watched, 2, name) == "finished"
        hubs.running[2].send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(hubs.running[2].wait, WAIT_S) == 0
        return members

    run(server, tmp_path, 1, scenario)


def test_an_owner_that_is_stopped_and_woken_is_fenced_and_serves_on(
    server: str, tmp_path: Path
) -> None:
    async def scenario(hubs: Hubs, stack: AsyncExitStack, job: Job, name: str) -> Any:
        members = await attached(stack, ", ".join(hubs.addresses[1:]), tmp_path)
        await hubs.submit(0, job)
        await stored(members, 6)
        before = hubs.lease(name)
        hubs.running[0].send_signal(signal.SIGSTOP)
        await hubs.taken_from(name, before)
        hubs.running[0].send_signal(signal.SIGCONT)
        assert await asyncio.to_thread(hubs.watched, 1, name) == "finished"
        assert await asyncio.to_thread(hubs.watched, 0, name) == "finished"
        hubs.running[0].send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(hubs.running[0].wait, WAIT_S) == 0
        return members

    run(server, tmp_path, 2, scenario)


def test_a_database_that_ends_all_connections_again_and_again_ends_no_process(
    server: str, tmp_path: Path
) -> None:
    async def scenario(hubs: Hubs, stack: AsyncExitStack, job: Job, name: str) -> Any:
        members = await attached(stack, ", ".join(hubs.addresses), tmp_path)
        await hubs.submit(0, job)
        for count in range(2, 26, 4):
            await stored(members, count)
            hubs.end_connections()
        assert await asyncio.to_thread(hubs.watched, 0, name) == "finished"
        assert [each.poll() for each in hubs.running] == [None, None, None]
        return members

    run(server, tmp_path, 3, scenario)
