"""Jobs of every kind against real processes that are killed and stopped, for as long as one likes.

Two federations of three parties each, one over columns and one over clients, as `colonnade party
run` and `colonnade coordinator` run them. Parties are killed (``kill -9``) and started again, and
every process is stopped for a while at random. The coordinators and the first parties are never
killed: what they hold must not grow.
"""

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from colonnade.bench.faults.chance import Chance
from colonnade.bench.live.sites import NAMES, small_sites
from colonnade.bench.live.soak_jobs import CLIENTS, KINDS, Asker
from colonnade.bench.processes import beside, held_by, slope
from colonnade.bench.progress import Ending, keeping_figures, stopped_between, told
from colonnade.core.errors import ColonnadeError
from colonnade.privacy.accounting import units_down
from colonnade.simulate.federation import create_federation
from colonnade.simulate.processes import Processes

_WARM_UP = 0.2  # of the readings: what is loaded and compiled first is no leak
_EVERY_S = 1.0


@dataclass
class Readings:
    """What the processes held over time."""

    hours: list[float] = field(default_factory=list)
    rss_mb: dict[str, list[float]] = field(default_factory=dict)
    descriptors: dict[str, list[float]] = field(default_factory=dict)

    def take(self, hours: float, watched: dict[str, int]) -> None:
        """Note what each process holds now."""
        held = {name: held_by(pid) for name, pid in watched.items()}
        self.hours.append(hours)
        for name, now in held.items():
            self.rss_mb.setdefault(name, []).append(now.rss_mb)
            self.descriptors.setdefault(name, []).append(now.descriptors)

    def slopes(self) -> dict[str, dict[str, float]]:
        """Return what each process gains an hour, after a warm-up."""
        first = int(_WARM_UP * len(self.hours))
        return {
            name: {
                "rss_mb_per_hour": round(slope(self.hours[first:], self.rss_mb[name][first:]), 2),
                "descriptors_per_hour": round(
                    slope(self.hours[first:], self.descriptors[name][first:]), 2
                ),
                "rss_last_mb": round(self.rss_mb[name][-1], 1),
                "descriptors_last": self.descriptors[name][-1],
            }
            for name in self.rss_mb
        }


class ProcessTrouble:
    """Kills and stops processes at random."""

    def __init__(self, groups: list[Processes], seed: int) -> None:
        self._groups, self._chance = groups, Chance(seed)
        self.kills, self.pauses = 0, 0

    def make(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        while not stop.wait(self._chance.between(1.0, 6.0)):
            group = self._chance.one_of(self._groups)
            if self._chance.happens(0.5):
                self._kill(group, self._chance.one_of(NAMES[1:]), stop)
            else:
                self._pause(group, self._chance.one_of(("coordinator", *NAMES)), stop)

    def _kill(self, group: Processes, party: str, stop: threading.Event) -> None:
        process = group.process(party)
        process.kill()
        process.wait()
        self.kills += 1
        stop.wait(self._chance.between(0.0, 2.0))
        group.start_party(party)

    def _pause(self, group: Processes, name: str, stop: threading.Event) -> None:
        pid = group.process(name).pid
        # A party that came back while its killed vault still held the ledger has ended again.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            stop.wait(self._chance.between(0.1, 1.5))
            os.kill(pid, signal.SIGCONT)
            self.pauses += 1


def run_soak(folder: Path, *, minutes: float, seed: int = 0) -> tuple[dict[str, Any], Ending]:
    """Run jobs until the time is up; return how many, and what the processes gained.

    A signal ends the run after the job that is under way.
    """
    readings, done, tell = Readings(), dict.fromkeys(KINDS, 0), told("jobs")
    problems: list[str] = []
    with _running(folder) as (columns, clients, asker):
        watched = {
            f"{group} {name}": processes.process(name).pid
            for group, processes in (("columns", columns), ("clients", clients))
            for name in ("coordinator", NAMES[0])
        }
        began = time.monotonic()

        def read(stop: threading.Event) -> None:
            while not stop.wait(_EVERY_S):
                readings.take((time.monotonic() - began) / 3600.0, watched)

        trouble = ProcessTrouble([columns, clients], seed)
        with (
            beside(trouble.make),
            beside(read),
            keeping_figures() as ending,
            stopped_between() as between,
        ):
            for kind in itertools.cycle(KINDS):
                if time.monotonic() - began > 60.0 * minutes:
                    break
                try:
                    state = asker.run(kind)
                except ColonnadeError as error:
                    state = f"{error.code}: {error}"
                done[kind] += state == "finished"
                if state != "finished":
                    problems.append(f"{kind}: {state}")
                tell(sum(done.values()) + len(problems))
                between()
        lasted_s = time.monotonic() - began
    finished = sum(done.values())
    figures = {
        "minutes": round(lasted_s / 60.0, 2),
        "jobs_started": finished + len(problems),
        "jobs_finished": finished,
        "by_kind": done,
        "kills": trouble.kills,
        "pauses": trouble.pauses,
        "slopes": readings.slopes(),
        "readings": len(readings.hours),
        "problems": problems[:20],
    }
    return figures | ending.fields, ending


@contextmanager
def _running(folder: Path) -> Iterator[tuple[Processes, Processes, Asker]]:
    cap = units_down(1000.0)
    over_columns = create_federation(folder / "columns", small_sites(), cap_units=cap, sealed=True)
    over_clients = create_federation(
        folder / "clients", small_sites(clients=CLIENTS), cap_units=cap
    )
    asker = Asker(over_columns)
    asker.let_align()
    with ExitStack() as stack:
        columns = stack.enter_context(Processes(over_columns, folder / "logs" / "columns"))
        clients = stack.enter_context(Processes(over_clients, folder / "logs" / "clients"))
        asker.columns = stack.enter_context(columns.client())
        asker.clients = stack.enter_context(clients.client())
        asker.signal = lambda name: os.kill(columns.process(name).pid, signal.SIGHUP)
        columns.wait_for_parties(asker.columns)
        clients.wait_for_parties(asker.clients)
        yield columns, clients, asker
