"""Rounds per second of a whole federation, against what bare messages and bare syncs allow.

Both sides are real processes on this machine with the same certificates, the same sizes of messages
and the same disk. They are measured in turns, because the machine is never quiet for long, and
medians are compared. Tables are tiny, so that transport and commits are what is measured.
"""

import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from colonnade.bench.scratch import say
from colonnade.bench.vertical.echo import Order, order_line
from colonnade.bench.vertical.jobs import job_of
from colonnade.client import Client, JobView, PartyOffer
from colonnade.core.errors import JobEnded
from colonnade.core.fixedpoint import Bounds
from colonnade.privacy.accounting import units_down
from colonnade.server.store.sql import Database
from colonnade.simulate.federation import HUB, Federation, create_federation, free_port
from colonnade.simulate.processes import Processes
from colonnade.simulate.sites import Site, SiteColumn
from colonnade.v1 import federation_pb2 as pb

_ROWS, _FEATURES, _SKETCH_DIM = 64, 4, 256
_BOUNDS = Bounds(-3.0, 3.0)
_CAP = units_down(1000.0)
_UNITS = units_down(1e-4)
_LOOK_S = 0.02
_STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class SpeedEffort:
    """How much to measure."""

    rounds: int
    repeats: int


QUICK = SpeedEffort(rounds=30, repeats=1)
FULL = SpeedEffort(rounds=150, repeats=5)


@dataclass(frozen=True, slots=True)
class Messages:
    """Bytes of a round's messages, one each way for each party."""

    task_bytes: int
    submission_bytes: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Rounds per second of one job after its first rounds, and what its messages weigh."""

    rounds_per_s: float
    messages: Messages


@dataclass(slots=True)
class Ours:
    """A running federation; jobs take as many of its parties as they need."""

    federation: Federation
    client: Client
    offers: Sequence[PartyOffer]

    def rounds_per_second(self, parties: int, rounds: int) -> Speed:
        """Run a job and return its speed."""
        job = job_of(
            self.offers[:parties],
            rounds=rounds,
            shares=0,
            sketch_dim=_SKETCH_DIM,
            units=_UNITS,
            mean_units=_UNITS,
        )
        job_id = self.client.submit(job, again=True)
        warm = max(1, rounds // 10)
        first = self._wait(job_id, lambda view: view.rounds_done >= warm)
        began = time.time()  # the coordinator's clock is this machine's
        last = self._wait(job_id, lambda view: view.ended)
        if last.state != "finished" or last.rounds_done <= first.rounds_done:
            raise JobEnded(f"the job ended too soon to be timed: {last.state} {last.reason}")
        done = last.rounds_done - first.rounds_done
        return Speed(done / (last.ended_at - began), self._messages(job_id, rounds))

    def _wait(self, job_id: str, ready: Callable[[JobView], bool]) -> JobView:
        # Looking now and then costs the coordinator less than a watcher does.
        while True:
            view = self.client.show(job_id).view
            if ready(view) or view.ended:
                return view
            time.sleep(_LOOK_S if view.rounds_done == 0 else 5 * _LOOK_S)

    def _messages(self, job_id: str, round_: int) -> Messages:
        """Return the mean sizes of the last round's messages, from a copy of the store."""
        hub = self.federation.folder / HUB
        copy = hub / "copy.db"
        shutil.copyfile(hub / "coordinator.db", copy)
        shutil.copyfile(hub / "coordinator.db-wal", hub / "copy.db-wal")
        store = Database(f"sqlite:///{copy}")
        try:
            tasks, answers = store.tasks(job_id, round_), store.answers(job_id, round_)
        finally:
            store.close()
        down = [
            pb.AttachResponse(task=pb.Task(job_id=job_id, round=round_, body=body)).ByteSize()
            for body in tasks.values()
        ]
        up = [
            pb.AttachRequest(epoch=1, submission=pb.Submission.FromString(body)).ByteSize()
            for body in answers.values()
        ]
        return Messages(round(statistics.mean(down)), round(statistics.mean(up)))


@dataclass(slots=True)
class EchoFloor:
    """The echo's processes."""

    server: "subprocess.Popen[str]"
    clients: list["subprocess.Popen[str]"] = field(default_factory=list)

    def rounds_per_second(self, parties: int, messages: Messages, rounds: int) -> float:
        """Exchange ``rounds`` of bare messages and return their speed."""
        order = Order(parties, rounds, messages.task_bytes, messages.submission_bytes)
        if self.server.stdin is None or self.server.stdout is None:
            raise JobEnded("the echo has no pipes")
        self.server.stdin.write(order_line(order))
        self.server.stdin.flush()
        if not (answer := self.server.stdout.readline()):
            raise JobEnded(f"the echo ended with exit code {self.server.wait()}")
        return rounds / float(json.loads(answer)["seconds"])


def measure_speed(
    folder: Path,
    parties: Sequence[int] = (4, 8),
    *,
    effort: SpeedEffort = FULL,
) -> list[dict[str, float]]:
    """Measure ours and the floor in turns; return a row for each number of parties.

    Parameters
    ----------
    folder
        Scratch space on the disk whose syncs are to count.

    Returns
    -------
    list of dict
        ``ratio`` is how many times faster the floor is.
    """
    say("processes starting")
    federation = found_tiny(folder / "federation", max(parties))
    with start_floor(federation, folder) as floor, start_ours(federation, folder) as ours:
        speeds: dict[int, list[Speed]] = {count: [] for count in parties}
        floors: dict[int, list[float]] = {count: [] for count in parties}
        for turn in range(effort.repeats):
            for count in parties:
                say(f"rounds of {count} parties, {turn + 1} of {effort.repeats}")
                speeds[count].append(ours.rounds_per_second(count, effort.rounds))
                messages = speeds[count][-1].messages
                bare = floor.rounds_per_second(count, messages, 3 * effort.rounds)
                floors[count].append(bare)
    return [_row(count, speeds[count], floors[count]) for count in parties]


def _row(parties: int, speeds: Sequence[Speed], floors: Sequence[float]) -> dict[str, float]:
    ours = statistics.median(speed.rounds_per_s for speed in speeds)
    floor = statistics.median(floors)
    return {
        "parties": parties,
        "rounds_per_s": round(ours, 2),
        "floor_rounds_per_s": round(floor, 2),
        "ratio": round(floor / ours, 2),
    } | asdict(speeds[-1].messages)


def found_tiny(folder: Path, parties: int) -> Federation:
    """Make a federation of small tables."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)

    def column(name: str) -> SiteColumn:
        return SiteColumn(name, _BOUNDS, random.normal(size=_ROWS))

    label = column("y")
    sites = [
        Site(f"party-{place}", [column(f"x{feature}") for feature in range(_FEATURES)], label)
        for place in range(parties)
    ]
    settings = {"answer_grid_ms": 0}  # what is timed is the work, not the waiting
    return create_federation(folder, sites, cap_units=_CAP, party_settings=settings)


@contextlib.contextmanager
def start_ours(federation: Federation, folder: Path) -> Iterator[Ours]:
    """Run the federation's processes."""
    with Processes(federation, folder / "logs") as processes, processes.client() as client:
        yield Ours(federation, client, processes.wait_for_parties(client))


@contextlib.contextmanager
def start_floor(federation: Federation, folder: Path) -> Iterator[EchoFloor]:
    """Run the echo's processes with the federation's certificates."""
    address = f"127.0.0.1:{free_port()}"

    def command(role: str, name: str) -> list[str]:
        credentials, scratch = federation.folder / name / "pki", folder / f"{name}.raw"
        program = [sys.executable, "-m", "colonnade.bench.vertical.echo", role, address]
        return [*program, str(credentials), str(scratch)]

    pipe = subprocess.PIPE
    floor = EchoFloor(subprocess.Popen(command("serve", HUB), stdin=pipe, stdout=pipe, text=True))
    try:
        for party in federation.parties:
            floor.clients.append(subprocess.Popen(command("dial", party), text=True))
        yield floor
    finally:
        _stop(floor)


def _stop(floor: EchoFloor) -> None:
    if floor.server.stdin is not None:
        floor.server.stdin.close()  # ends the server, and its end the clients
    for process in (floor.server, *floor.clients):
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if floor.server.stdout is not None:
        floor.server.stdout.close()
