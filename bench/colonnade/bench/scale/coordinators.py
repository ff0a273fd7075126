"""``coordinators``: a job's owner is killed; how long until another process goes on, and the cost.

``takeover_s`` counts from the kill until another process has written the job's next iterate.
``equal`` compares every iterate with what one undisturbed coordinator computes from the same
releases, byte for byte. ``extra_charges`` is what parties' ledgers spent beyond the releases used.
"""

import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from colonnade.bench.scale.postgres import temporary_postgres
from colonnade.bench.scratch import say
from colonnade.bench.vertical.jobs import job_of
from colonnade.bench.vertical.speed import found_tiny
from colonnade.client import Client
from colonnade.core.errors import JobEnded
from colonnade.ledger.create import open_ledger
from colonnade.methods.job import Job
from colonnade.pki.authority import load_credentials
from colonnade.privacy.accounting import units_down
from colonnade.server.methods.registry import side_of
from colonnade.server.store.base import Store
from colonnade.server.store.sql import Database
from colonnade.server.store.tables import ITERATES, LEASES
from colonnade.simulate.federation import Federation, free_port
from colonnade.simulate.processes import Processes
from colonnade.v1 import federation_pb2 as pb

PROCESSES, QUICK_PROCESSES = (2, 3), (2,)
_PARTIES, _GRID_MS, _WAIT_S = 2, 20, 60.0


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return a row for each number of processes; none where there is no PostgreSQL."""
    rows = []
    for processes in QUICK_PROCESSES if quick else PROCESSES:
        place = folder / str(processes)
        place.mkdir()
        with temporary_postgres(place) as url:
            if url is None:
                say("PostgreSQL is not installed; nothing is measured")
                break
            say(f"{processes} processes")
            rows.append(_measure(place, url, processes, rounds=60 if quick else 200))
    return {"coordinators": rows}


def _measure(folder: Path, url: str, count: int, *, rounds: int) -> dict[str, Any]:
    federation = found_tiny(folder / "federation", _PARTIES)
    configs = _share(federation, url, count)
    with Processes(federation, folder / "logs") as processes:
        for place, config in enumerate(configs[1:], start=2):
            processes.start_coordinator(f"coordinator-{place}", config)
        with processes.client() as client:
            offers = processes.wait_for_parties(client)
            units = units_down(1e-4)
            job = job_of(offers, rounds=rounds, shares=0, sketch_dim=64, units=units)
            name = client.submit(job)
        took = _kill_owner(processes, url, name)
        with _client(federation, configs[1]) as client:
            state = client.wait(name).state
    if state != "finished":
        raise JobEnded(f"the job whose owner was killed is {state}")
    store = Database(url)
    try:
        equal, used = _recomputed(store, name, job)
    finally:
        store.close()
    extra = sum(_spent(federation, party) for party in federation.parties) - used
    return {"processes": count, "takeover_s": took, "equal": equal, "extra_charges": extra}


def _share(federation: Federation, url: str, count: int) -> list[Path]:
    """Give the coordinator a PostgreSQL and more processes, and tell parties of them all."""
    text = federation.coordinator_config.read_text()
    text = text.replace("sqlite:///coordinator.db", url)
    addresses = [federation.address, *(f"127.0.0.1:{free_port()}" for _ in range(count - 1))]
    configs = []
    for place, address in enumerate(addresses):
        path = federation.coordinator_config
        path = path if place == 0 else path.with_name(f"coordinator-{place + 1}.toml")
        path.write_text(text.replace(federation.address, address))
        configs.append(path)
    for party in federation.parties:
        config = federation.party_config(party)
        found = config.read_text().replace(federation.address, ", ".join(addresses))
        config.write_text(found.replace("answer_grid_ms = 0", f"answer_grid_ms = {_GRID_MS}"))
    return configs


def _kill_owner(processes: Processes, url: str, name: str) -> float:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    done = sa.select(sa.func.count()).where(ITERATES.c.job_id == name)
    owner = sa.select(LEASES.c.owner).where(LEASES.c.job_id == name)

    def look(query: "sa.Select[Any]") -> Any:
        with engine.connect() as connection:
            return connection.execute(query).scalar()

    try:
        ends = time.monotonic() + _WAIT_S
        while look(done) < 5:  # some rounds have closed
            _patience(ends)
        before = look(owner)
        processes.process("coordinator").kill()
        killed, reached = time.monotonic(), look(done)
        ends = killed + _WAIT_S
        while look(owner) == before or look(done) <= reached:
            _patience(ends)
        return time.monotonic() - killed
    finally:
        engine.dispose()


def _patience(ends: float) -> None:
    if time.monotonic() > ends:
        raise JobEnded("the job did not go on")
    time.sleep(0.01)


def _client(federation: Federation, config: Path) -> Client:
    address = config.read_text().split('"')[1]
    return Client(address, load_credentials(federation.operator_credentials))


def _recomputed(store: Store, name: str, job: Job) -> tuple[bool, int]:
    """Return whether iterates follow from the stored releases, and what these cost."""
    algorithm = side_of(job.kind).algorithm(job, name, job.method)
    rows, state, used = store.iterates(name), algorithm.start(), 0
    equal = rows[0].body == algorithm.encode(state)
    for row in rows[1:]:
        answers = {
            party: pb.Submission.FromString(body)
            for party, body in store.answers(name, algorithm.round_of(state)).items()
        }
        for party, said in answers.items():
            kinds = [release.key.kind for release in said.releases]
            used += sum(algorithm.cost(party, kind, said.round) for kind in kinds)
        bodies = {
            party: {release.key.kind: release.body for release in said.releases}
            for party, said in answers.items()
        }
        state = algorithm.absorb(state, bodies)
        equal = equal and row.body == algorithm.encode(state)
    return equal, used


def _spent(federation: Federation, party: str) -> int:
    ledger = open_ledger(federation.ledger(party))
    try:
        return ledger.budget().spent
    finally:
        ledger.close()
