"""``colonnade bench faults``: simulate federations from seeds, with faults; count what broke."""

import argparse
import json
import sys

from tqdm import tqdm

from colonnade.bench.faults.run import Tally, run_faults
from colonnade.bench.scratch import add_folder_option, scratch
from colonnade.core.errors import EXIT_CHECK_FAILED, BadInput

_SEEDS, _QUICK_SEEDS = 1000, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--seeds", type=int, help=f"how many; default {_SEEDS}")
    parser.add_argument("--first", type=int, default=0, help="the first of them; default 0")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_SEEDS} seeds, under 50 s")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and count what does not hold; a seed that fails is printed and replays."""
    count = arguments.seeds
    if count is None:
        count = _QUICK_SEEDS if arguments.quick else _SEEDS
    if count < 1 or arguments.first < 0:
        raise BadInput("at least one seed is simulated, and none is negative")
    bar = tqdm(total=count, unit="seed", disable=not sys.stderr.isatty())

    def show(seed: int, tally: Tally) -> None:
        bar.update()
        for what in tally.failures.get(seed, ()):
            bar.write(f"seed {seed}: {what} (again: --first {seed} --seeds 1)", file=sys.stderr)

    with bar, scratch(arguments.folder) as folder:
        seeds = range(arguments.first, arguments.first + count)
        tally = run_faults(folder, seeds, progress=show)
    result = {
        name: getattr(tally, name)
        for name in ("seeds", "steps", "violations", "kills", "power_cuts", "restarts")
    }
    jobs = {"jobs_finished": tally.finished, "jobs_ended": tally.ended}
    if arguments.json:
        found = {"failing_seeds": sorted(tally.failures), "by_method": tally.by_method}
        print(json.dumps(result | jobs | {"first": arguments.first} | found))
    else:
        print(" ".join(f"{name}={value}" for name, value in (result | jobs).items()))
    return EXIT_CHECK_FAILED if tally.violations else 0
