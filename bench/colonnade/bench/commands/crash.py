"""``colonnade bench crash``: kill, cut, fill and corrupt a ledger; count the harm."""

import argparse
import json

from colonnade.bench.crash.run import Campaign, run_crash
from colonnade.bench.progress import keeping_figures, told
from colonnade.bench.scratch import add_folder_option, memory_folder, scratch
from colonnade.core.errors import EXIT_CHECK_FAILED, BadInput

HARM = (
    "double_spent",
    "under_counted",
    "re_drawn",
    "mutated_ok",
    "stranded",
    "opened_with_more_budget",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--kills", type=int, default=1000, help="default 1000")
    parser.add_argument("--images", type=int, default=1000, help="power cuts; default 1000")
    parser.add_argument("--corruptions", type=int, default=2000, help="default 2000")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of faults; default 0")
    parser.add_argument("--workers", type=int, default=1, help="processes that kill; default 1")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Harm ledgers, and count what they did not withstand."""
    if min(arguments.kills, arguments.images, arguments.corruptions, arguments.seed) < 0:
        raise BadInput("counts and seed cannot be negative")
    if arguments.workers < 1:
        raise BadInput("at least one worker kills")
    campaign = Campaign(
        kills=arguments.kills,
        images=arguments.images,
        corruptions=arguments.corruptions,
        seed=arguments.seed,
        workers=arguments.workers,
    )
    with keeping_figures() as ending, scratch(arguments.folder or memory_folder()) as folder:
        run_crash(folder, campaign, told)
    result = campaign.figures()
    if arguments.json:
        print(json.dumps(result | ending.fields))
    else:
        print(" ".join(f"{name}={result[name]}" for name in HARM))
        covered = ("kills", "operations_failed", "syscalls_killed", "images", "corruptions")
        print("after " + ", ".join(f"{name}: {result[name]}" for name in covered))
    found = EXIT_CHECK_FAILED if any(result[name] for name in HARM) else 0
    return ending.exit_code(found)
