"""``colonnade bench``: the benchmarks and the crash harness."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from colonnade.bench.admm.command import register_admm
from colonnade.bench.scratch import scratch
from colonnade.bench.solvers.command import register_solvers
from colonnade.bench.vertical.command import register_vertical


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser("bench", help="measure, in ratios to a peer or a floor")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)

    core = verbs.add_parser("core", help="noise, score, sketch, selection, durable releases")
    core.add_argument("--quick", action="store_true", help="less of each, under 40 s")
    core.set_defaults(handler=_core)

    crash = verbs.add_parser("crash", help="kill, cut, fill and corrupt a ledger; count the harm")
    crash.add_argument("--kills", type=int, default=1000, help="default 1000")
    crash.add_argument("--images", type=int, default=1000, help="power cuts; default 1000")
    crash.add_argument("--corruptions", type=int, default=2000, help="default 2000")
    crash.add_argument("--seed", type=int, default=0, help="of the choice of faults; default 0")
    crash.set_defaults(handler=_crash)
    register_vertical(verbs)
    register_solvers(verbs)
    register_admm(verbs)
    for verb in (core, crash):
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.add_argument(
            "--folder", type=Path, help="where to put scratch files: measure the ledger's disk"
        )


def _core(arguments: argparse.Namespace) -> int:
    from colonnade.bench.core import FULL, QUICK, run_core, table

    def progress(name: str) -> None:
        if sys.stderr.isatty():
            print(f"measuring {name} ...", file=sys.stderr)

    with scratch(arguments.folder) as folder:
        figures = run_core(QUICK if arguments.quick else FULL, folder, progress)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    print(f"{'':<48}{'measured':>12}  aim")
    for name, figure, aim in table(figures):
        print(f"{name:<48}{figure:>12}  {aim}")
    return 0


def _crash(arguments: argparse.Namespace) -> int:
    from colonnade.bench.crash.run import run_crash
    from colonnade.core.errors import EXIT_CHECK_FAILED, BadInput

    if min(arguments.kills, arguments.images, arguments.corruptions, arguments.seed) < 0:
        raise BadInput("counts and seed cannot be negative")
    with scratch(arguments.folder) as folder:
        result = run_crash(
            folder,
            kills=arguments.kills,
            images=arguments.images,
            corruptions=arguments.corruptions,
            seed=arguments.seed,
            progress=_bars,
        )
    names = (
        "double_spent",
        "under_counted",
        "re_drawn",
        "mutated_ok",
        "stranded",
        "opened_with_more_budget",
    )
    if arguments.json:
        print(json.dumps(result))
    else:
        print(" ".join(f"{name}={result[name]}" for name in names))
        covered = ("kills", "operations_failed", "syscalls_killed", "images", "corruptions")
        print("after " + ", ".join(f"{name}: {result[name]}" for name in covered))
    return EXIT_CHECK_FAILED if any(result[name] for name in names) else 0


def _bars(name: str) -> Callable[[int], None]:
    """Return a counter that shows on a terminal how far a part has come."""
    if not sys.stderr.isatty():
        return lambda _: None
    from tqdm import tqdm

    bar = tqdm(desc=name, unit="", leave=True)

    def show(done: int) -> None:
        bar.update(done - bar.n)

    return show
