"""``colonnade bench floods``: a real coordinator under floods; who else is served, and memory."""

import argparse
import json

from colonnade.bench.live.floods import FULL, QUICK, run_floods
from colonnade.bench.scratch import add_folder_option, scratch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--quick", action="store_true", help="less of each, under 50 s")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Attack, and print the figures."""
    with scratch(arguments.folder) as folder:
        figures = run_floods(folder, QUICK if arguments.quick else FULL)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    for name, part in figures.pop("attacks").items():
        print(name, " ".join(f"{key}={value}" for key, value in part.items()))
    print(" ".join(f"{key}={value}" for key, value in figures.items()))
    return 0
