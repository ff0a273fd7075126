"""``colonnade bench crash``: kill, cut, fill and corrupt a ledger; count the harm."""

import argparse
import json

from colonnade.bench.crash.run import CrashCampaign, run_crash
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
# How many by default, and what they are.
_FAULTS = {"kills": (1000, ""), "images": (1000, "power cuts; "), "corruptions": (2000, "")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    for name, (count, what) in _FAULTS.items():
        parser.add_argument(f"--{name}", type=int, help=f"{what}default {count}")
    parser.add_argument("--quick", action="store_true", help="a quarter of each, under 50 s")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of faults; default 0")
    parser.add_argument("--workers", type=int, default=1, help="processes that kill; default 1")
    add_folder_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Harm ledgers, and count what they did not withstand."""

    def asked(name: str) -> int:
        given, (count, _) = getattr(arguments, name), _FAULTS[name]
        return int(given if given is not None else count // 4 if arguments.quick else count)

    campaign = CrashCampaign(
        kills=asked("kills"),
        images=asked("images"),
        corruptions=asked("corruptions"),
        seed=arguments.seed,
        workers=arguments.workers,
    )
    if min(campaign.kills, campaign.images, campaign.corruptions, campaign.seed) < 0:
        raise BadInput("counts and seed cannot be negative")
    if arguments.workers < 1:
        raise BadInput("at least one worker kills")
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
