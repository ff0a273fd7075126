"""Health and metrics of running processes, over real sockets."""

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.federation import CAP, everyone, founded, make_job, sites

from colonnade.cli.main import main
from colonnade.core.errors import BadInput, Unreachable
from colonnade.privacy.accounting import rho_from_units
from colonnade.simulate.federation import create_federation, free_port
from colonnade.simulate.processes import Processes
from colonnade.wire.monitoring import LIVE, READY, check_health, monitored
from colonnade.wire.readings import Addresses, Reading


def addresses() -> Addresses:
    return Addresses(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")


def scrape(address: str | None) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.05)


def test_both_show_what_they_are_told() -> None:
    where = addresses()
    value = [3.0]

    async def run() -> None:
        def read() -> list[Reading]:
            return [
                Reading.one("colonnade_a_bytes", "a count", value[0], counts=True),
                Reading("colonnade_b", "by label", {("x",): 1.0, ("y",): 2.0}, ("kind",)),
            ]

        async with monitored(where, read) as monitor:
            assert where.health is not None
            assert await asyncio.to_thread(check_health, where.health, LIVE)
            assert not await asyncio.to_thread(check_health, where.health, READY)
            monitor.ready(True)
            await asyncio.sleep(0)
            assert await asyncio.to_thread(check_health, where.health, READY)
            monitor.ready(False)
            await asyncio.sleep(0)
            assert not await asyncio.to_thread(check_health, where.health, READY)
            value[0] = 4.0
            shown = await asyncio.to_thread(scrape, where.metrics)
            assert shown["colonnade_a_bytes_total"] == 4.0
            assert shown['colonnade_b{kind="y"}'] == 2.0
            assert shown["process_resident_memory_bytes"] > 0
        with pytest.raises(Unreachable):
            await asyncio.to_thread(check_health, where.health)

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["metrics", "health"])
def test_a_taken_port_is_one_clear_line(kind: str) -> None:
    async def run() -> None:
        where = replace(addresses(), **{"health" if kind == "metrics" else "metrics": None})
        async with monitored(where, list):
            with pytest.raises(BadInput, match=kind):
                async with monitored(where, list):
                    raise AssertionError("two servers on one port")

    asyncio.run(run())


def test_nothing_is_shown_where_nothing_is_asked_for() -> None:
    async def run() -> None:
        async with monitored(Addresses(), lambda: pytest.fail("it was read")) as monitor:
            monitor.ready(True)

    asyncio.run(run())


@pytest.mark.slow
def test_a_coordinator_shows_its_parties_and_jobs(tmp_path: Path) -> None:
    made, where = founded(), addresses()

    async def run() -> None:
        # The laboratory is enrolled, then leaves: the second job waits for it in its first round.
        async with everyone(made, ["hospital", "laboratory"], tmp_path, monitoring=where) as (
            hub,
            members,
        ):
            await until(lambda: check_health(str(where.health)))
            job = await hub.submit(make_job(made, ["hospital"]))
            assert await hub.ended(job) == "finished"
            members["laboratory"].stop.set()
            await members["laboratory"].task
            waiting = await hub.submit(make_job(made, ["hospital", "laboratory"]))
            name, lab = waiting[:12], 'party="laboratory"'
            await until(
                lambda: f'colonnade_job_awaited{{job="{name}",{lab}}}' in scrape(where.metrics)
            )
            shown = await asyncio.to_thread(scrape, where.metrics)
            assert shown['colonnade_jobs{state="finished"}'] == 1.0
            assert shown['colonnade_jobs{state="proposed"}'] == 1.0
            assert shown[f'colonnade_job_awaited{{job="{name}",{lab}}}'] == 1.0
            assert shown[f'colonnade_job_rounds_planned{{job="{name}"}}'] == 5.0
            assert shown[f'colonnade_job_rounds_done{{job="{name}"}}'] == 0.0
            assert shown[f'colonnade_job_payload_bytes{{job="{name}",{lab}}}'] == 0.0
            assert shown[f"colonnade_party_attached{{{lab}}}"] == 0.0
            assert shown['colonnade_party_attached{party="hospital"}'] == 1.0

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.usefixtures("fork_server")
def test_a_party_shows_its_session_and_its_budget(tmp_path: Path) -> None:
    made = create_federation(tmp_path, sites(names=["hospital"]), cap_units=CAP)
    where = addresses()
    with made.party_config("hospital").open("a") as file:
        file.write(f'metrics = "{where.metrics}"\nhealth = "{where.health}"\n')

    async def run() -> None:
        with Processes(made, tmp_path / "logs") as running, running.client() as client:
            await asyncio.to_thread(running.wait_for_parties, client)
            await until(lambda: check_health(str(where.health)))
            before = await asyncio.to_thread(scrape, where.metrics)
            assert before["colonnade_attached"] == 1.0
            assert before['colonnade_budget_rho{part="cap"}'] == rho_from_units(CAP)
            assert before['colonnade_budget_rho{part="spent"}'] == 0.0
            job = make_job(made, ["hospital"])
            name = await asyncio.to_thread(client.submit, job)
            view = (await asyncio.to_thread(list, client.watch(name)))[-1]
            after = await asyncio.to_thread(scrape, where.metrics)
            spent = rho_from_units(view.parties[0].spent_units)
            assert after['colonnade_budget_rho{part="spent"}'] == spent > 0.0
            sent = after["colonnade_uplink_payload_bytes_total"]
            assert sent == view.parties[0].payload_bytes > 0
            assert after["colonnade_uplink_wire_bytes_total"] > sent
            assert (
                after["colonnade_ledger_entries_total"] > before["colonnade_ledger_entries_total"]
            )
            assert after["colonnade_disk_free_bytes"] > 0
            running.process("coordinator").kill()
            await until(lambda: not check_health(str(where.health)))
            assert await asyncio.to_thread(check_health, str(where.health), LIVE)
            assert (await asyncio.to_thread(scrape, where.metrics))["colonnade_attached"] == 0.0

    asyncio.run(run())


def test_the_command_asks_for_health(capsys: pytest.CaptureFixture[str]) -> None:
    where = addresses()

    async def run() -> None:
        async with monitored(where, list) as monitor:
            ask = ["health", str(where.health)]
            assert await asyncio.to_thread(main, ask) == 1
            assert await asyncio.to_thread(main, [*ask, "--live"]) == 0
            monitor.ready(True)
            await asyncio.sleep(0)
            assert await asyncio.to_thread(main, [*ask, "--json"]) == 0
        assert await asyncio.to_thread(main, ask) == 7

    asyncio.run(run())
    assert capsys.readouterr().out == 'not serving\nserving\n{"serving": true}\n'
    assert main(["health", "nowhere"]) == 3


def test_an_address_without_port_is_refused(tmp_path: Path) -> None:
    from colonnade.party.config import TEMPLATE, load_config

    (tmp_path / "party.toml").write_text(TEMPLATE + 'metrics = "localhost"\n')
    with pytest.raises(BadInput, match="'localhost'"):
        load_config(tmp_path / "party.toml")


@pytest.mark.slow
def test_a_process_shows_metrics_where_the_command_line_says(tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text(
        'listen = "127.0.0.1:0"\ninsecure = true\nfederation = "study"\n'
        'database = "sqlite:///hub.db"\n'
    )
    place = f"127.0.0.1:{free_port()}"
    words = ["coordinator", "--config", str(tmp_path / "hub.toml"), "--metrics", place]
    process = subprocess.Popen(
        [sys.executable, "-m", "colonnade.cli.main", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert any(f"metrics address={place}" in line for line in process.stderr)
        assert any(name.startswith("colonnade_build_info") for name in scrape(place))
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
