"""Kill -9 a party at every step of a release, again and again on the same ledger."""

import os
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
    run_party,
)
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


def run_kills(
    folder: Path,
    kills: int,
    *,
    seed: int | tuple[int, ...] = 0,
    how: Answer = answer,
    steps: Sequence[object] = STEPS,
    cost: Callable[[int], int] = lambda _: MECHANISM.cost,
    together: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Counters, dict[str, int]]:
    """Kill a party ``kills`` times; return the counters and how often each step was hit.

    ``how`` it answers has these ``steps`` to die at, and each round this ``cost``. With
    ``together`` above 1 it answers so many rounds at once.
    """
    choose = np.random.default_rng(seed)
    OsNoise().discrete_gaussian(MECHANISM.sigma2, 1)  # compile before forking
    observer, hits = Observer(folder / "copy", cost), dict[str, int]()
    done, next_round, files = 0, _ROUNDS, fresh_ledger(folder / "ledger")
    while done < kills:
        if next_round >= _ROUNDS:
            if observer.seen:
                observer.finish(files, _ROUNDS, how)
            files, next_round = fresh_ledger(folder / "ledger"), 0
            observer.new_ledger()
        step = steps[int(choose.integers(len(steps)))]
        # Answer some rounds that are done, to see replays, and up to two new ones, then die.
        first = max(0, next_round - int(choose.integers(3)))
        times = int(choose.integers(1, 4))
        mutate = first if first < next_round and choose.integers(4) == 0 else None
        plan = Plan(range(first, _ROUNDS), how, (times, step), mutate, together=together)
        frames, status = run_party(files, plan)
        done += os.WIFSIGNALED(status)
        hits[str(step)] = hits.get(str(step), 0) + os.WIFSIGNALED(status)
        observer.watch(frames)
        observer.inspect(files)
        next_round = max(observer.durable.charges, default=-1) + 1
        if not os.WIFSIGNALED(status):
            next_round = _ROUNDS
        progress(done)
    observer.finish(files, _ROUNDS, how)
    return observer.counters, hits
