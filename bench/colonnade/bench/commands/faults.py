"""``colonnade bench faults``: simulate federations from seeds, with faults; count what broke."""

import argparse
import json
import sys
from contextlib import ExitStack

from colonnade.bench.faults.run import Tally, run_faults
from colonnade.bench.progress import keeping_figures, stopped_between, told
from colonnade.bench.scratch import add_folder_option, memory_folder, scratch
from colonnade.core.errors import EXIT_CHECK_FAILED, BadInput

_SEEDS, _QUICK_SEEDS = 1000, 180


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--seeds", type=int, help=f"how many; default {_SEEDS}")
    parser.add_argument("--first", type=int, default=0, help="the first of them; default 0")
    parser.add_argument(
        "--quick", action="store_true", help=f"{_QUICK_SEEDS} small seeds, under 50 s"
    )
    parser.add_argument(
        "--small", action="store_true", help="two parties, one job, little time for faults"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes; default 1")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and count what does not hold; a seed that fails is printed and replays."""
    count = arguments.seeds
    if count is None:
        count = _QUICK_SEEDS if arguments.quick else _SEEDS
    if count < 1 or arguments.first < 0 or arguments.workers < 1:
        raise BadInput("at least one seed is simulated, by one worker, and none is negative")
    small = arguments.small or arguments.quick
    tally, tell = Tally(), told("seeds", count)

    def add(part: Tally) -> None:
        tally.merge(part)
        for seed, violated in part.failures.items():
            again = f"--first {seed} --seeds 1{' --small' if small else ''}"
            for what in violated:
                print(f"seed {seed}: {what} (again: {again})", file=sys.stderr, flush=True)
        tell(tally.seeds)
        between()

    with keeping_figures() as ending, ExitStack() as stack:
        folder = stack.enter_context(scratch(arguments.folder or memory_folder()))
        # A simulation in this process takes whatever is raised in it for a fault of the code.
        alone = arguments.workers == 1
        between = stack.enter_context(stopped_between()) if alone else lambda: None
        seeds = range(arguments.first, arguments.first + count)
        run_faults(folder, seeds, small=small, workers=arguments.workers, progress=add)
    result = {
        name: getattr(tally, name)
        for name in ("seeds", "steps", "violations", "kills", "power_cuts", "restarts")
    }
    jobs = {"jobs_finished": tally.finished, "jobs_ended": tally.ended}
    if arguments.json:
        found = {"failing_seeds": sorted(tally.failures), "by_method": tally.by_method}
        print(json.dumps(result | jobs | {"first": arguments.first} | found | ending.fields))
    else:
        print(" ".join(f"{name}={value}" for name, value in (result | jobs).items()))
    return ending.exit_code(EXIT_CHECK_FAILED if tally.violations else 0)
