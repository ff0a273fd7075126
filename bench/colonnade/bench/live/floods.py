"""A real coordinator under floods, while an operator asks it something all the time."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.bench.live.attacks import Attack, Target
from colonnade.bench.live.sites import small_sites
from colonnade.bench.processes import beside, held_by
from colonnade.client import Client
from colonnade.core.errors import ColonnadeError
from colonnade.pki.authority import load_credentials
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import Federation, create_federation
from colonnade.simulate.processes import Processes
from colonnade.wire.limits import split_address

_EVERY_S = 0.02
_SETTLE_S = 20.0


@dataclass(frozen=True, slots=True)
class FloodSizes:
    """How much of each."""

    silent: int
    storm: int
    oversized: int
    resets: int
    pauses: int


FULL = FloodSizes(silent=1000, storm=500, oversized=50, resets=20_000, pauses=3)
QUICK = FloodSizes(silent=100, storm=40, oversized=5, resets=800, pauses=1)


@dataclass
class Live:
    """An operator's calls: how long each took, and which failed."""

    seconds: list[float] = field(default_factory=list)
    failures: int = 0
    peak_mb: float = 0.0

    @property
    def p99_ms(self) -> float:
        """The 99th percentile."""
        return 1000.0 * float(np.quantile(self.seconds, 0.99)) if self.seconds else 0.0


@contextmanager
def asking(client: Client, pid: int) -> Iterator[Live]:
    """Ask the coordinator for its parties again and again, from a thread."""
    live = Live()

    def ask(stop: threading.Event) -> None:
        while True:  # at least once, however short the attack is
            began = time.monotonic()
            try:
                client.parties()
            except ColonnadeError:
                live.failures += 1
            else:
                live.seconds.append(time.monotonic() - began)
            live.peak_mb = max(live.peak_mb, held_by(pid).rss_mb)
            if stop.wait(_EVERY_S):
                return

    with beside(ask):
        yield live


def run_floods(folder: Path, sizes: FloodSizes) -> dict[str, Any]:
    """Run every attack in turn and return the figures."""
    sites = small_sites()
    federation = create_federation(folder / "federation", sites, cap_units=units_down(1.0))
    with Processes(federation, folder / "logs") as processes, processes.client() as client:
        processes.wait_for_parties(client)
        pid = processes.process("coordinator").pid
        attacks = _attacks(federation, processes, folder, sizes)
        with asking(client, pid) as calm:
            time.sleep(1.0)
        before, parts = held_by(pid), {}
        for name, attack in attacks.items():
            with asking(client, pid) as live:
                count = attack()
            parts[name] = {
                "count": count,
                "live_calls": len(live.seconds),
                "live_failures": live.failures,
                "live_p99_ms": round(live.p99_ms, 2),
                "rss_peak_mb": round(live.peak_mb, 1),
            }
        processes.wait_for_parties(client)  # those who were cut off are back
        after = _settled(pid, before.descriptors)
    return {
        "calm_p99_ms": round(calm.p99_ms, 2),
        "live_failures": sum(each["live_failures"] for each in parts.values()),
        "live_p99_ms": max(each["live_p99_ms"] for each in parts.values()),
        "rss_before_mb": round(before.rss_mb, 1),
        "rss_peak_mb": max(each["rss_peak_mb"] for each in parts.values()),
        "descriptors_before": before.descriptors,
        "descriptors_after": after,
        "attacks": parts,
        "sizes": {name: getattr(sizes, name) for name in sizes.__slots__},
    }


def _attacks(
    federation: Federation, processes: Processes, folder: Path, sizes: FloodSizes
) -> dict[str, Attack]:
    host, port = split_address(federation.address)
    first = federation.parties[0]
    credentials = load_credentials(federation.folder / first / "pki")
    target = Target(host, port, credentials, folder)

    def partition() -> int:
        """Stop a party where it is, as a network does that carries nothing, and let it go on."""
        party = processes.process(federation.parties[-1]).pid
        for _ in range(sizes.pauses):
            os.kill(party, signal.SIGSTOP)
            time.sleep(1.0)
            os.kill(party, signal.SIGCONT)
        return sizes.pauses

    return {
        "silent_still_open": lambda: target.silent(sizes.silent),
        "storm_opened": lambda: target.storm(sizes.storm),
        "oversized_refused": lambda: target.oversized(sizes.oversized),
        "streams_reset": lambda: target.resets(sizes.resets),
        "partitions": partition,
    }


def _settled(pid: int, before: int) -> int:
    """Return the descriptors of a process once it has closed what the attacks opened."""
    until = time.monotonic() + _SETTLE_S
    while (now := held_by(pid).descriptors) > before and time.monotonic() < until:
        time.sleep(0.1)
    return now
