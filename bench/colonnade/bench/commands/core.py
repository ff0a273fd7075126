"""``colonnade bench core``: noise, score, sketch, selection, durable releases."""

import argparse
import json

from colonnade.bench import core
from colonnade.bench.parts import table
from colonnade.bench.scratch import add_folder_option, scratch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--quick", action="store_true", help="less of each, under 40 s")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    with scratch(arguments.folder) as folder:
        figures = core.run_core(core.QUICK if arguments.quick else core.FULL, folder)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    print(table("figure", "measured", "aim")(core.table(figures)))
    return 0
