"""Thousands of clients at one host, as real processes: time, processor time, memory, growth.

Everything is on: TLS, a ledger account for each client, exact noise, durable rounds.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.admm.loop import loop_seconds
from colonnade.bench.processes import cpu_seconds, memory_of
from colonnade.bench.scratch import say
from colonnade.client import Client, PartyOffer
from colonnade.client.builder import job_over_clients
from colonnade.core.arrays import FloatArray
from colonnade.core.errors import JobEnded
from colonnade.methods.admm.spec import AdmmSpec
from colonnade.privacy.accounting import MAX_UNITS, units_down
from colonnade.simulate.admm.run import TARGET, Dealt, Population, found, people
from colonnade.simulate.processes import Processes

_HOST, _HUB = "host-1", "coordinator"


@dataclass(frozen=True, slots=True)
class ClientsScale:
    """How large."""

    clients: int = 10_000
    sampled: int = 500
    features: int = 100
    rows_per_client: int = 20
    rounds: int = 50
    growth: tuple[int, ...] = (125, 250, 500, 1000, 2000)
    growth_rounds: int = 12


FULL = ClientsScale()
QUICK = ClientsScale(rows_per_client=5, rounds=6, growth=(250, 1000), growth_rounds=4)


def spec_of(scale: ClientsScale, *, sampled: int, rounds: int) -> AdmmSpec:
    """Return the job that is timed."""
    return AdmmSpec(
        n_clients=scale.clients,
        n_features=scale.features,
        rounds=rounds,
        sampled=sampled,
        release_units=units_down(0.01),
        gamma=5.0,
        lipschitz=0.1,
        intercept=True,
        minimum=sampled // 2,
        dual_weight=0.0,
    )


@dataclass(frozen=True, slots=True)
class Timed:
    """One job between its first round and its end."""

    seconds_per_round: float
    cpu_seconds_per_answer: dict[str, float]  # by process


@dataclass(slots=True)
class ClientsHost:
    """A running federation of one host."""

    scale: ClientsScale
    processes: Processes
    client: Client
    offers: list[PartyOffer]
    dealt: Dealt

    def run(self, *, sampled: int, rounds: int) -> Timed:
        """Time a job; with twice the rounds if it was over before anybody looked."""
        return self._run(sampled, rounds) or self.run(sampled=sampled, rounds=2 * rounds)

    def _run(self, sampled: int, rounds: int) -> Timed | None:
        """Run one job; its set-up, which reads all clients' rows, is not timed."""
        spec = spec_of(self.scale, sampled=sampled, rounds=rounds)
        job = job_over_clients(
            spec, self.offers, target=TARGET, name="timed", delta=1e-6, timeout_s=300
        )
        name = self.client.submit(job, again=True)
        first: tuple[float, int, dict[str, float]] | None = None
        view = None
        for view in self.client.watch(name):
            if first is None and view.rounds_done:
                first = time.monotonic(), view.rounds_done, self._cpu()
        if view is None or view.state != "finished" or first is None:
            raise JobEnded(f"the timed job did not finish; see {self.processes.logs}")
        began, before, cpu = first
        done = view.rounds_done - before
        if done < max(1, rounds // 3):
            return None
        spent = {key: value - cpu[key] for key, value in self._cpu().items()}
        return Timed(
            (time.monotonic() - began) / done,
            {key: value / (done * sampled) for key, value in spent.items()},
        )

    def peak_rss_mb(self) -> dict[str, float]:
        """Return the most memory that each process has had."""
        return {name: memory_of(self._pid(name))["VmHWM"] / 2**20 for name in (_HOST, _HUB)}

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(self._pid(name)) for name in (_HOST, _HUB)}

    def _pid(self, name: str) -> int:
        return self.processes.process(name).pid


@contextmanager
def field_of(folder: Path, scale: ClientsScale) -> Iterator[ClientsHost]:
    """Found a federation of one host and run it."""
    say(f"{scale.clients} clients with {scale.rows_per_client} rows each")
    dealt = people(Population(scale.clients, scale.rows_per_client, scale.features))
    settings = {"answer_grid_ms": 0}  # what is timed is the work, not the waiting
    place = folder / "clients"
    federation = found(place, dealt, cap_units=MAX_UNITS // 2, host_settings=settings)
    logs = folder / "logs"
    with Processes(federation, logs) as processes, processes.client() as client:
        offers = processes.wait_for_parties(client)
        yield ClientsHost(scale, processes, client, offers, dealt)


def measure(folder: Path, scale: ClientsScale) -> dict[str, Any]:
    """Return throughput against the loop, the large job's figures, and growth."""
    with field_of(folder, scale) as field:
        say(f"{scale.sampled} of {scale.clients} clients, {scale.rounds} rounds")
        spec = spec_of(scale, sampled=scale.sampled, rounds=scale.rounds)
        chosen = field.dealt.clients[: scale.sampled]
        # Before and after, because a machine's speed changes with what else it does.
        loops = [loop_seconds(spec, chosen, rounds=4, seed=seed) for seed in range(3)]
        large = field.run(sampled=scale.sampled, rounds=scale.rounds)
        loops += [loop_seconds(spec, chosen, rounds=4, seed=seed) for seed in range(3)]
        memory = field.peak_rss_mb()
        growth = []
        for sampled in scale.growth:
            say(f"growth: {sampled} clients a round")
            timed = field.run(sampled=sampled, rounds=scale.growth_rounds)
            cpu = sampled * sum(timed.cpu_seconds_per_answer.values())
            row = {"seconds_per_round": timed.seconds_per_round, "cpu_seconds_per_round": cpu}
            growth.append({"sampled": sampled, **row})
    loop, ours = statistics.mean(loops), large.cpu_seconds_per_answer
    return {
        "throughput_fraction": loop / sum(ours.values()),
        "throughput": {
            "loop_us": 1e6 * loop,
            "ours_us": {key: 1e6 * value for key, value in ours.items()},
            "host_fraction": loop / ours[_HOST],
            "clients_per_s_per_core": 1.0 / sum(ours.values()),
        },
        "clients_10k": {
            "clients": scale.clients,
            "sampled": scale.sampled,
            "features": scale.features,
            "rows_per_client": scale.rows_per_client,
            "rounds": scale.rounds,
            "seconds_per_round": large.seconds_per_round,
            "peak_rss_mb": sum(memory.values()),
            "peak_rss_mb_by_process": memory,
        },
        "growth": {"rows": growth, **_slope(growth)},
    }


def _slope(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the power with which time grows in clients, and the cost of one and of a round."""
    sampled = np.array([row["sampled"] for row in rows], float)
    seconds = np.array([row["seconds_per_round"] for row in rows])
    cpu = np.array([row["cpu_seconds_per_round"] for row in rows])

    def power(of: FloatArray) -> float:
        return float(np.polyfit(np.log(sampled), np.log(of), 1)[0])

    each, fixed = np.polyfit(sampled, seconds, 1)
    return {
        "power": power(seconds),
        "cpu_power": power(cpu),  # the same in processor time, which other programs slow less
        "ms_per_client": 1e3 * float(each),
        "ms_per_round": 1e3 * float(fixed),
    }
