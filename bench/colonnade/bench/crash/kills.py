"""Kill -9 a party at every step of a release, again and again on the same ledger."""

import gc
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    ChildPlan,
    Frame,
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
        self.copies.mkdir(parents=True, exist_ok=True)
        (self.copies / "ledger.db-shm").unlink(missing_ok=True)
        for name in ("ledger.db", "ledger.db-wal"):
            source, copy = files.folder / name, self.copies / name
            if source.exists():
                copy.touch()
                with copy.open("r+b") as file:  # in place, which is cheaper
                    file.write(source.read_bytes())
                    file.truncate()
            else:
                copy.unlink(missing_ok=True)
        self.durable = read_durable(self.copies / "ledger.db")
        for round_, units in self.durable.charges.items():
            self.counters.double_spent += len(units) > 1 or sum(units) != self.cost(round_)
        for round_, body in self.seen.items():
            kept = self.durable.bodies.get(round_, b"")
            paid = round_ in self.durable.charges and kept[: len(body)] == body
            self.counters.under_counted += not paid

    def finish(self, files: LedgerFiles, rounds: int) -> None:
        """Have a party answer every round once more, one by one."""
        frames, _ = run_party(files, ChildPlan(range(rounds)))
        self.watch(frames)
        self.inspect(files)
        self.count_stranded(frames, rounds)

    def count_stranded(self, frames: list[Frame], rounds: int) -> None:
        """Look at the replies of a party that was asked for every round once more."""
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

    def plan(
        self, steps: Sequence[object], choose: np.random.Generator, together: int
    ) -> ChildPlan:
        """Choose what comes next: a ledger that is full is asked for everything once more."""
        if self.next_round >= _ROUNDS:
            return self.last()
        step = steps[int(choose.integers(len(steps)))]
        # Answer some rounds that are done, to see replays, and up to two new ones, then die.
        first = max(0, self.next_round - int(choose.integers(3)))
        times = int(choose.integers(1, 4))
        mutate = first if first < self.next_round and choose.integers(4) == 0 else None
        rounds = range(first, _ROUNDS)
        return ChildPlan(rounds, self.how, (times, step), mutate, together=together)

    def last(self) -> ChildPlan:
        """Ask for every round, one by one: what was paid for must come back as it was."""
        return ChildPlan(range(_ROUNDS), self.how)

    def take(self, plan: ChildPlan, frames: list[Frame], *, killed: bool) -> None:
        """Look at what was sent and what is on the disk; after a last plan make a new ledger."""
        self.observer.watch(frames)
        self.observer.inspect(self.files)
        next_round = max(self.observer.durable.charges, default=-1) + 1
        self.next_round = next_round if killed else _ROUNDS
        if plan.die_at is None:
            self.observer.count_stranded(frames, _ROUNDS)
            self.files, self.next_round = fresh_ledger(self.folder / "ledger"), 0
            self.observer.new_ledger()


def run_kills(
    folder: Path,
    kills: int,
    *,
    seed: int | tuple[int, ...] = 0,
    how: Answer = answer,
    steps: Sequence[object] = STEPS,
    cost: Callable[[int], int] = lambda _: MECHANISM.cost,
    together: int = 1,
    parties: int = 32,
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
    with _nothing_to_collect():
        while done < kills:
            chosen = series[: kills - done]
            plans = [each.plan(steps, choose, together) for each in chosen]
            for plan, killed in zip(plans, _run(chosen, plans), strict=True):
                if plan.die_at is not None:
                    step = str(plan.die_at[1])
                    hits[step] = hits.get(step, 0) + killed
                    done += killed
            progress(done)
        _run(series, [each.last() for each in series])
    total = Counters()
    for each in series:
        total.add(each.observer.counters)
    return total, hits


def _run(series: Sequence[_Series], plans: Sequence[ChildPlan]) -> list[bool]:
    """Run the plans in one process and look at what came of them; return which were killed."""
    ended = run_parties([(each.files, plan) for each, plan in zip(series, plans, strict=True)])
    for each, plan, (frames, killed) in zip(series, plans, ended, strict=True):
        each.take(plan, frames, killed=killed)
    return [killed for _, killed in ended]


@contextmanager
def _nothing_to_collect() -> Iterator[None]:
    """Keep forked processes from looking for garbage among what they share with this one."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
