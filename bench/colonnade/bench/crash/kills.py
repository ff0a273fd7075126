"""Kill -9 a party at every step of a release, again and again on the same ledger."""

import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from colonnade.bench.crash.counters import Counters, Durable, read_durable
from colonnade.bench.crash.party import (
    BODY,
    CAP,
    MECHANISM,
    MUTATED_OK,
    OPENED,
    STEPS,
    Answer,
    Frame,
    Plan,
    answer,
    fresh_ledger,
)
from colonnade.bench.crash.process import run_parties, run_party
from colonnade.ledger.storage.files import LedgerFiles
from colonnade.privacy.sampling import OsNoise

# Rounds answered on one ledger before a new one is made: opening reads all of it.
_ROUNDS = 24


@dataclass(slots=True)
class Observer:
    """Sees the wire and copies of the files, and counts."""

    copies: Path
    cost: Callable[[int], int] = lambda _: MECHANISM.cost  # of a round's release
    counters: Counters = field(default_factory=Counters)
    seen: dict[int, bytes] = field(default_factory=dict)  # longest body seen, by round
    durable: Durable = field(default_factory=lambda: Durable({}, {}))

    def new_ledger(self) -> None:
        """Forget the ledger before."""
        self.seen, self.durable = {}, Durable({}, {})

    def watch(self, frames: list[Frame]) -> None:
        """Take what a party sent while it lived."""
        for frame in frames:
            if frame.what == OPENED:
                (remaining,) = struct.unpack(">Q", frame.payload)
                self.counters.opened_with_more_budget += remaining > CAP - self.durable.spent
            elif frame.what == MUTATED_OK:
                self.counters.mutated_ok += 1
            elif frame.what == BODY:
                earlier = self.seen.get(frame.round, b"")
                common = min(len(earlier), len(frame.payload))
                self.counters.re_drawn += earlier[:common] != frame.payload[:common]
                self.seen[frame.round] = max(earlier, frame.payload, key=len)

    def inspect(self, files: LedgerFiles) -> None:
        """Look at a copy of the files as they are, before anyone recovers them."""
        shutil.rmtree(self.copies, ignore_errors=True)
        self.copies.mkdir(parents=True)
        for name in ("ledger.db", "ledger.db-wal"):
            if (files.folder / name).exists():
                shutil.copyfile(files.folder / name, self.copies / name)
        self.durable = read_durable(self.copies / "ledger.db")
        for round_, units in self.durable.charges.items():
            self.counters.double_spent += len(units) > 1 or sum(units) != self.cost(round_)
        for round_, body in self.seen.items():
            kept = self.durable.bodies.get(round_, b"")
            paid = round_ in self.durable.charges and kept[: len(body)] == body
            self.counters.under_counted += not paid

    def finish(self, files: LedgerFiles, rounds: int, how: Answer = answer) -> None:
        """Answer every round once more, one by one: paid ones must come back as they were."""
        frames, _ = run_party(files, Plan(range(rounds), how))
        self.watch(frames)
        self.inspect(files)
        whole = {frame.round for frame in frames if frame.what == BODY and frame.whole}
        self.counters.stranded += len(set(range(rounds)) - whole)


@dataclass(slots=True)
class _Series:
    """Kills on one ledger after another."""

    folder: Path
    how: Answer
    observer: Observer
    files: LedgerFiles
    next_round: int = 0

    def plan(self, steps: Sequence[object], choose: np.random.Generator, together: int) -> Plan:
        """Choose what comes next, on a new ledger if this one is full."""
        if self.next_round >= _ROUNDS:
            self.finish()
            self.files, self.next_round = fresh_ledger(self.folder / "ledger"), 0
            self.observer.new_ledger()
        step = steps[int(choose.integers(len(steps)))]
        # Answer some rounds that are done, to see replays, and up to two new ones, then die.
        first = max(0, self.next_round - int(choose.integers(3)))
        times = int(choose.integers(1, 4))
        mutate = first if first < self.next_round and choose.integers(4) == 0 else None
        rounds = range(first, _ROUNDS)
        return Plan(rounds, self.how, (times, step), mutate, together=together)

    def take(self, frames: list[Frame], *, killed: bool) -> None:
        """Look at what was sent and what is on the disk."""
        self.observer.watch(frames)
        self.observer.inspect(self.files)
        next_round = max(self.observer.durable.charges, default=-1) + 1
        self.next_round = next_round if killed else _ROUNDS

    def finish(self) -> None:
        """Ask for everything once more."""
        self.observer.finish(self.files, _ROUNDS, self.how)


def run_kills(
    folder: Path,
    kills: int,
    *,
    seed: int | tuple[int, ...] = 0,
    how: Answer = answer,
    steps: Sequence[object] = STEPS,
    cost: Callable[[int], int] = lambda _: MECHANISM.cost,
    together: int = 1,
    parties: int = 8,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Counters, dict[str, int]]:
    """Kill ``kills`` parties; return the counters and how often each step was hit.

    ``how`` they answer has these ``steps`` to die at, and each round this ``cost``. With
    ``together`` above 1 they answer so many rounds at once. A process that is killed is
    so many ``parties``, each on a ledger of its own and each at a step of its own.
    """
    choose = np.random.default_rng(seed)
    OsNoise().discrete_gaussian(MECHANISM.sigma2, 1)  # compile before forking
    hits, done = dict[str, int](), 0
    series = []
    for place in range(min(parties, kills)):
        own = folder / str(place)
        files = fresh_ledger(own / "ledger")
        series.append(_Series(own, how, Observer(own / "copy", cost), files))
    while done < kills:
        chosen = series[: kills - done]
        plans = [each.plan(steps, choose, together) for each in chosen]
        ended = run_parties([(each.files, plan) for each, plan in zip(chosen, plans, strict=True)])
        for each, plan, (frames, killed) in zip(chosen, plans, ended, strict=True):
            step = str(plan.die_at and plan.die_at[1])
            hits[step] = hits.get(step, 0) + killed
            done += killed
            each.take(frames, killed=killed)
        progress(done)
    total = Counters()
    for each in series:
        each.finish()
        total.add(each.observer.counters)
    return total, hits
