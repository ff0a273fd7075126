"""``colonnade demo``: from three messy files to a model, scores and a report."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from colonnade.cli.run_folder import file_errors, workplace
from colonnade.core.errors import EXIT_OK, BadInput
from colonnade.simulate.demo.story import Story

_MIN_PEOPLE, _MAX_PEOPLE = 1500, 99_999


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Three organizations with synthetic, messy files about partly the same people: enrol, "
        "align, plan, approve, fit and score, with real processes, and write a report."
    )
    parser.add_argument(
        "--epsilon", type=float, default=6.0, help="of the job and its evaluation; default 6"
    )
    parser.add_argument("--people", type=int, default=12_000, help="in all; default 12000")
    parser.add_argument("--seed", type=int, default=0, help="of the synthetic people")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="default runs")
    parser.add_argument("--keep", type=Path, help="keep the organizations' folders here")


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    if not 0.1 <= arguments.epsilon <= 20.0:
        raise BadInput("--epsilon: between 0.1 and 20")
    if not _MIN_PEOPLE <= arguments.people <= _MAX_PEOPLE:
        raise BadInput(f"--people: between {_MIN_PEOPLE} and {_MAX_PEOPLE}")
    if arguments.seed < 0:
        raise BadInput("--seed: 0 or more")
    with file_errors(arguments.out):  # before anything is made
        arguments.out.mkdir(parents=True, exist_ok=True)
    began, step = time.monotonic(), 0

    def say(heading: str, lines: Sequence[str]) -> None:
        nonlocal step
        step += 1
        if not arguments.json:
            print(f"{step}. {heading}", file=sys.stderr)
            for line in lines:
                print(f"   {line}", file=sys.stderr)
            print(file=sys.stderr, flush=True)

    with workplace(keep=arguments.keep, out=None) as folder:
        story = Story(
            folder, arguments.epsilon, arguments.people, arguments.seed, say, arguments.out
        )
        found = story.tell()
    found["seconds"] = time.monotonic() - began
    if arguments.json:
        print(json.dumps(found))
    else:
        print(f"the report: {found['folder']}/report.html ({found['seconds']:.0f} s in all)")
    return EXIT_OK
