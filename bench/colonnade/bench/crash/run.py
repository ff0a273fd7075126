"""All parts of the crash harness, one after the other, a few hundred faults at a time.

What a few hundred found is added to the figures when they are done, so that a run that is stopped
has the figures of what it did. Each piece has a seed of its own and files of its own, which it
removes: disk and memory that a run needs do not grow with what it is asked for.
"""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from colonnade.bench.crash.corruption import run_corruptions
from colonnade.bench.crash.counters import Counters
from colonnade.bench.crash.faults import (
    run_operation_faults,
    run_syscall_errors,
    run_syscall_kills,
)
from colonnade.bench.crash.images import run_double_images, run_images
from colonnade.bench.crash.kills import run_kills
from colonnade.bench.crash.party import STEPS
from colonnade.bench.crash.sealed import cost_of, sealed_answer
from colonnade.methods.sealed.ring import available

Progress = Callable[[str, int | None], Callable[[int], None]]
Seed = tuple[int, int]
Found = tuple[Counters, dict[str, int]]  # and, of what was done, how often each kind
Piece = Callable[[Path, int, Seed], Found]  # in a folder, so many faults, under a seed
# Faults between two sums: seconds of work. The first are few, so that a log says something soon.
_AT_ONCE, _SEALED_AT_ONCE, _AT_FIRST = 2000, 500, 50


@dataclass
class CrashCampaign:
    """What is asked for, and the figures of what is done of it."""

    kills: int
    images: int
    corruptions: int
    seed: int
    workers: int = 1
    counters: Counters = field(default_factory=Counters)
    done: dict[str, int] = field(default_factory=dict)
    steps: dict[str, dict[str, int]] = field(default_factory=dict)

    def figures(self) -> dict[str, object]:
        """Return the counters and what was covered; null is what this machine cannot do.

        In a run that was stopped it is also what was not come to.
        """
        done, steps = self.done, self.steps
        return asdict(self.counters) | {
            "kills": done.get("kills", 0),
            "kills_by_step": steps.get("kills", {}),
            "kills_of_four": done.get("amid", 0),  # releases that went together
            "kills_sealed": done.get("sealed"),
            "operations_failed": steps.get("operations", {}),
            "syscalls_killed": done.get("syscalls"),
            "syscalls_failed": steps.get("errors"),
            "images": done.get("images", 0),
            "double_images": done.get("doubles", 0),
            "corruptions": done.get("corruptions", 0),
            "corruptions_refused": steps.get("corruptions", {}).get("refused", 0),
            "seed": self.seed,
        }

    def add(self, part: str, count: int, found: Found) -> None:
        """Add what some faults came to."""
        self.counters.add(found[0])
        self.done[part] = self.done.get(part, 0) + count
        steps = self.steps.setdefault(part, {})
        for step, hits in found[1].items():
            steps[step] = steps.get(step, 0) + hits


def run_crash(folder: Path, campaign: CrashCampaign, progress: Progress) -> None:
    """Run everything, adding to the campaign's figures.

    Kills, power cuts and corruptions are divided among processes, each with a ledger of its own.
    """
    quarter = campaign.kills // 4
    parts: list[tuple[str, str, int, Piece]] = [
        ("kills", "kills", campaign.kills, _kills),
        ("amid", "kills of four", quarter, partial(_kills, together=4)),
        ("images", "power cuts", campaign.images, _images),
        ("doubles", "power cuts after a kill", campaign.images // 4, _doubles),
        ("corruptions", "corruptions", campaign.corruptions, _corruptions),
    ]
    if available():
        parts.insert(2, ("sealed", "kills of a party that seals", quarter, _sealed_kills))
    with _processes(campaign.workers) as each:
        for part, name, count, piece in parts:
            tell, size = progress(name, count), _SEALED_AT_ONCE if part == "sealed" else _AT_ONCE
            orders = _orders(folder / part, count, size, campaign.seed)
            campaign.add(part, 0, (Counters(), {}))  # it was come to
            for done, found in each(partial(_done, piece), orders):
                campaign.add(part, done, found)
                tell(campaign.done[part])
    failed = run_operation_faults(folder / "faults", progress=progress("failed writes", None))
    campaign.add("operations", sum(failed[1].values()), failed)
    if traced := run_syscall_kills(folder / "syscalls", progress=progress("killed calls", None)):
        campaign.add("syscalls", traced[1], (traced[0], {}))
    if errors := run_syscall_errors(folder / "errors", progress=progress("failed calls", None)):
        campaign.add("errors", sum(errors[1].values()), errors)


Order = tuple[Path, int, Seed]
Each = Callable[[Callable[[Order], tuple[int, Found]], list[Order]], Iterable[tuple[int, Found]]]


@contextmanager
def _processes(workers: int) -> Iterator[Each]:
    """Yield what does pieces: this process, or several."""
    if workers == 1:
        yield map
        return
    with ExitStack() as stack:
        context = multiprocessing.get_context("spawn")
        yield stack.enter_context(context.Pool(workers, _begin)).imap_unordered


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the first process ends the others


def _orders(folder: Path, count: int, size: int, seed: int) -> list[Order]:
    starts = [0, *range(_AT_FIRST, count, size)] if count else []
    sizes = [end - start for start, end in pairwise([*starts, count])]
    return [(folder, size, (seed, place)) for place, size in enumerate(sizes)]


def _done(piece: Piece, order: Order) -> tuple[int, Found]:
    folder, count, seed = order
    own = folder / str(os.getpid())
    try:
        return count, piece(own, count, seed)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _kills(folder: Path, count: int, seed: Seed, *, together: int = 1) -> Found:
    return run_kills(folder, count, seed=seed, together=together)


def _sealed_kills(folder: Path, count: int, seed: Seed) -> Found:
    how, steps = sealed_answer(folder / "keys"), (*STEPS, "key written")
    return run_kills(folder, count, seed=seed, how=how, steps=steps, cost=cost_of)


def _images(folder: Path, count: int, seed: Seed) -> Found:
    return run_images(folder, count, seed=seed), {}


def _doubles(folder: Path, count: int, seed: Seed) -> Found:
    return run_double_images(folder, count, seed=seed), {}


def _corruptions(folder: Path, count: int, seed: Seed) -> Found:
    counters, refused = run_corruptions(folder, count, seed=seed)
    return counters, {"refused": refused}
