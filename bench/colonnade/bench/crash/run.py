"""All parts of the crash harness, one after the other."""

import functools
import multiprocessing
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict
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

Progress = Callable[[str], Callable[[int], None]]
ONE, FOUR, SEALED = "kills", "amid", "sealed"
_TOGETHER = 500  # kills that a process does before it says how many


def run_crash(
    folder: Path,
    *,
    kills: int,
    images: int,
    corruptions: int,
    seed: int,
    progress: Progress,
    workers: int = 1,
) -> dict[str, object]:
    """Run everything and return counters and what was covered.

    Kills are divided among ``workers`` processes, each with a ledger of its own.
    """
    counters, covered = Counters(), dict[str, object]()
    kill = functools.partial(_kill_many, folder, seed=seed, workers=workers)
    broken, steps = kill(ONE, kills, progress=progress(f"{kills} kills"))
    counters.add(broken)
    covered |= {"kills": kills, "kills_by_step": steps}
    amid = kills // 4
    counters.add(kill(FOUR, amid, progress=progress(f"{amid} kills of four"))[0])
    covered["kills_of_four"] = amid  # releases that went together
    sealing = kills // 4
    if available():
        told = progress(f"{sealing} kills of a party that seals, replies and opens")
        counters.add(kill(SEALED, sealing, progress=told)[0])
    covered["kills_sealed"] = sealing if available() else None
    broken, points = run_operation_faults(folder / "faults", progress=progress("failed writes"))
    counters.add(broken)
    covered["operations_failed"] = points
    traced = run_syscall_kills(folder / "syscalls", progress=progress("killed system calls"))
    if traced is not None:
        counters.add(traced[0])
    covered["syscalls_killed"] = traced[1] if traced else None
    failed = run_syscall_errors(folder / "errors", progress=progress("failed system calls"))
    if failed is not None:
        counters.add(failed[0])
    covered["syscalls_failed"] = failed[1] if failed else None
    counters.add(
        run_images(folder / "images", images, seed=seed, progress=progress(f"{images} power cuts"))
    )
    doubles = images // 4
    counters.add(
        run_double_images(
            folder / "doubles", doubles, seed=seed, progress=progress(f"{doubles} after a kill")
        )
    )
    covered |= {"images": images, "double_images": doubles}
    broken, refused = run_corruptions(
        folder / "corruptions",
        corruptions,
        seed=seed,
        progress=progress(f"{corruptions} corruptions"),
    )
    counters.add(broken)
    covered |= {"corruptions": corruptions, "corruptions_refused": refused, "seed": seed}
    return asdict(counters) | covered


def _kill_many(
    folder: Path,
    part: str,
    kills: int,
    *,
    seed: int,
    workers: int,
    progress: Callable[[int], None],
) -> tuple[Counters, dict[str, int]]:
    """Kill in this process, or in several, a few hundred at a time under seeds of their own."""
    if workers == 1:
        return _killed(folder / part, part, kills, seed, progress=progress)
    sizes = [min(_TOGETHER, kills - at) for at in range(0, kills, _TOGETHER)]
    orders = [(folder / part, part, size, seed + place) for place, size in enumerate(sizes)]
    total, steps, done = Counters(), dict[str, int](), 0
    with ExitStack() as stack:
        pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(workers))
        found: Iterable[tuple[Counters, dict[str, int]]] = pool.imap_unordered(_ordered, orders)
        for size, (broken, hits) in zip(sizes, found, strict=True):
            total.add(broken)
            steps |= {step: steps.get(step, 0) + count for step, count in hits.items()}
            done += size
            progress(done)
    return total, steps


def _ordered(order: tuple[Path, str, int, int]) -> tuple[Counters, dict[str, int]]:
    folder, part, kills, seed = order
    return _killed(folder / str(os.getpid()), part, kills, seed)


def _killed(
    folder: Path,
    part: str,
    kills: int,
    seed: int,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Counters, dict[str, int]]:
    """Kill a party that answers one by one, four at once, or under encryption."""
    if part != SEALED:
        together = 4 if part == FOUR else 1
        return run_kills(folder, kills, seed=seed, together=together, progress=progress)
    return run_kills(
        folder,
        kills,
        seed=seed,
        how=sealed_answer(folder / "keys"),
        steps=(*STEPS, "key written"),
        cost=cost_of,
        progress=progress,
    )
