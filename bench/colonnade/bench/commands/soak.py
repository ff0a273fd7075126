"""``colonnade bench soak``: jobs of every kind, real processes, random faults; slopes."""

import argparse
import json

from colonnade.bench.live.soak import run_soak
from colonnade.bench.scratch import add_folder_option, scratch
from colonnade.core.errors import EXIT_CHECK_FAILED, BadInput


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--minutes", type=float, default=5.0, help="default 5")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of faults; default 0")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run jobs until the time is up, and print what the processes gained."""
    if not 0.0 < arguments.minutes <= 10_000.0:
        raise BadInput("a soak takes minutes, at most 10000")

    with scratch(arguments.folder) as folder:
        figures, ending = run_soak(folder, minutes=arguments.minutes, seed=arguments.seed)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, gained in figures.pop("slopes").items():
            print(name, " ".join(f"{key}={value}" for key, value in gained.items()))
        print(" ".join(f"{key}={value}" for key, value in figures.items()))
    return ending.exit_code(EXIT_CHECK_FAILED if figures["problems"] else 0)
