"""All parts of the crash harness, one after the other."""

from collections.abc import Callable
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


def run_crash(
    folder: Path, *, kills: int, images: int, corruptions: int, seed: int, progress: Progress
) -> dict[str, object]:
    """Run everything and return counters and what was covered."""
    counters, covered = Counters(), dict[str, object]()
    broken, steps = run_kills(
        folder / "kills", kills, seed=seed, progress=progress(f"{kills} kills")
    )
    counters.add(broken)
    covered |= {"kills": kills, "kills_by_step": steps}
    amid = kills // 4
    broken, _ = run_kills(
        folder / "amid", amid, seed=seed, together=4, progress=progress(f"{amid} kills of four")
    )
    counters.add(broken)
    covered["kills_of_four"] = amid  # releases that went together
    sealing = kills // 4
    if available():
        broken, _ = run_kills(
            folder / "sealed",
            sealing,
            seed=seed,
            how=sealed_answer(folder / "sealed" / "keys"),
            steps=(*STEPS, "key written"),
            cost=cost_of,
            progress=progress(f"{sealing} kills of a party that seals, replies and opens"),
        )
        counters.add(broken)
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
