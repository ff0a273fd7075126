"""A party as two processes: net may die whenever it likes, and the vault stops the party."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.federation import (
    NAMES,
    UNITS,
    WAIT_S,
    coordinator,
    credentials_of,
    founded,
    make_job,
    party,
    reference,
)

from colonnade.cli.main import main
from colonnade.client import Client
from colonnade.ledger.create import LedgerConfig, create_ledger, open_ledger
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.methods.job import job_id
from colonnade.party import runtime
from colonnade.party.data.binding import OWNER_NAME
from colonnade.party.vault import party as vault_side
from colonnade.server.methods.registry import algorithm_of
from colonnade.simulate.federation import free_port
from colonnade.wire.jobspec import job_to_bytes

PAIR = NAMES[:2]


class Cut(runtime.InProcess):
    """Nets whose connection with the vault breaks after a number of bytes, a different one each."""

    cuts = 0

    async def next(self) -> socket.socket:
        inner = await super().next()
        ours, vaults = socket.socketpair()
        limit = int(np.random.default_rng(Cut.cuts).integers(1, 3500))
        Cut.cuts += 1
        asyncio.create_task(self._carry(inner, ours, limit))  # noqa: RUF006
        return vaults

    async def _carry(self, inner: socket.socket, ours: socket.socket, limit: int) -> None:
        loop, left = asyncio.get_running_loop(), [limit]
        for each in (inner, ours):
            each.setblocking(False)

        async def carry(source: socket.socket, target: socket.socket) -> None:
            while left[0] > 0 and (data := await loop.sock_recv(source, 1 << 16)):
                await loop.sock_sendall(target, data[: max(0, left[0])])
                left[0] -= len(data)

        ways = [asyncio.create_task(carry(inner, ours)), asyncio.create_task(carry(ours, inner))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        inner.close()
        ours.close()


@pytest.mark.slow
def test_a_net_that_dies_at_any_byte_leaves_the_same_model_and_the_same_charges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, job = founded(), make_job(founded(), PAIR, rounds=8)
    name = job_id(job_to_bytes(job))
    state, spent = reference(made, job)
    expected = algorithm_of(job, name).encode(state)
    monkeypatch.setattr(runtime, "InProcess", Cut)
    monkeypatch.setattr(vault_side, "_FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(vault_side, "_LONGEST_WAIT_S", 0.001)
    Cut.cuts = 0

    async def run() -> None:
        async with (
            coordinator(made) as hub,
            party(made, PAIR[0], hub.address, tmp_path) as first,
            party(made, PAIR[1], hub.address, tmp_path) as second,
        ):
            await hub.until(lambda: set(hub.serving.engine.parties) >= set(PAIR))
            await hub.submit(job)
            assert await hub.ended(name) == "finished"
            assert (await hub.iterates(name))[-1].body == expected
            paid = {each.config.data.name.split()[0]: each.spent() for each in (first, second)}
            assert paid == spent

    asyncio.run(run())
    assert Cut.cuts > 10


# -- as processes --------------------------------------------------------------------------------


class Unit:
    """A command of the package, and what it said."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "colonnade.cli.main", *words], stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    async def says(self, line: str) -> None:
        assert self._process.stdout is not None
        read = asyncio.to_thread(self._process.stdout.readline)
        assert (await asyncio.wait_for(read, WAIT_S)).rstrip() == line

    async def ends(self, number: int) -> int:
        self._process.send_signal(number)
        code = await asyncio.to_thread(self._process.wait, WAIT_S)
        self.kill()
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def home_of(name: str, folder: Path, address: str, more: str = "") -> Path:
    """Return a party's file: a table and a certificate of the federation, a ledger of its own."""
    unowned = shutil.ignore_patterns("ledger*", OWNER_NAME, "uplink*", "*.toml.*")
    shutil.copytree(founded().folder / name, folder / name, ignore=unowned)
    create_ledger(LedgerFiles(folder / name / "ledger"), LedgerConfig(name, {"": UNITS * 1000}))
    config = folder / name / "party.toml"
    config.write_text(config.read_text().replace("127.0.0.1:1", address) + more)
    return config


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def network(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


@pytest.mark.slow
def test_net_is_started_again_whenever_it_dies_and_dies_with_the_vault(tmp_path: Path) -> None:
    made, job = founded(), make_job(founded(), PAIR, rounds=6)
    name = job_id(job_to_bytes(job))

    async def run() -> int:
        async with coordinator(made) as hub, party(made, PAIR[1], hub.address, tmp_path):
            config = home_of(PAIR[0], tmp_path, hub.address)
            vault = Unit("party", "run", "--config", str(config))
            try:
                await vault.says("attached")
                (launcher,) = children(vault.pid)
                await hub.attached(*PAIR)
                await hub.submit(job)
                for round_ in (1, 3):
                    await hub.until(lambda at=round_: hub.serving.engine.runs[name].round >= at)  # type: ignore[misc]
                    (net,) = children(launcher)
                    assert network(net) == network(os.getpid())
                    os.kill(net, signal.SIGKILL)
                    await vault.says("attached")
                assert await hub.ended(name) == "finished"
                paid = await asyncio.to_thread(charged, hub.address, name)
                status = Path(f"/proc/{vault.pid}/status").read_text()
                assert network(vault.pid) != network(os.getpid()) or "Seccomp:\t2" in status
                (net,) = children(launcher)
                vault.kill()
                await hub.until(lambda: not alive(net) and not alive(launcher))
                return paid
            finally:
                vault.kill()

    paid = asyncio.run(run())
    ledger = open_ledger(LedgerFiles(tmp_path / PAIR[0] / "ledger"))
    assert ledger.budget().spent == paid  # once for each of the releases that arrived
    ledger.close()
    assert main(["ledger", "verify", str(tmp_path / PAIR[0] / "ledger")]) == 0


def charged(address: str, name: str) -> int:
    """Return what a job's report says that the first party paid."""
    with Client(address, credentials_of(founded(), "analyst")) as client:
        parties = client.report(name).document["privacy"]["parties"]
    return next(int(each["spent"]["units"]) for each in parties if each["party"] == PAIR[0])


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_the_two_halves_run_as_two_services_and_either_may_be_restarted(tmp_path: Path) -> None:
    made, port = founded(), free_port()

    async def run() -> None:
        async with coordinator(made) as hub:
            more = f'socket = "vault.sock"\nhealth = "127.0.0.1:{port}"\n'
            config = home_of(PAIR[0], tmp_path, hub.address, more)
            words = ("--config", str(config))
            vault, net = Unit("party", "vault", *words), Unit("party", "net", *words)
            try:
                await net.says("connected")
                await vault.says("attached")
                assert (config.parent / "vault.sock").stat().st_mode & 0o777 == 0o600
                assert await health(port) == 0
                net.kill()
                net = Unit("party", "net", *words)
                await vault.says("attached")
                assert await vault.ends(signal.SIGTERM) == 0
                await hub.until(lambda: PAIR[0] not in hub.serving.engine.attached)
                assert await health(port) == 1  # it is there, and can do nothing
                vault = Unit("party", "vault", *words)
                await vault.says("attached")
                await net.says("connected")
                assert await net.ends(signal.SIGTERM) == 0
                assert await vault.ends(signal.SIGTERM) == 0
            finally:
                vault.kill()
                net.kill()

    asyncio.run(run())


async def health(port: int) -> int:
    return await asyncio.to_thread(main, ["health", f"127.0.0.1:{port}"])
