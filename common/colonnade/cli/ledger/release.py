"""``colonnade ledger release``: free what a job keeps for an evaluation that is not coming."""

import argparse
import json
from contextlib import closing

from colonnade.cli.ledger.place import add_place, files_of
from colonnade.core.errors import BadInput
from colonnade.ledger.create import open_ledger
from colonnade.privacy.accounting import format_units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "A job that is to be evaluated keeps the price of that set aside when it has finished. If "
        "the evaluation is not coming, this frees it; the party must be stopped. Nothing that was "
        "spent comes back."
    )
    add_place(parser)
    parser.add_argument("job", help="the job's name, or its beginning")


def run(arguments: argparse.Namespace) -> int:
    """Free what the job keeps."""
    with closing(open_ledger(files_of(arguments))) as ledger:
        kept = ledger.state.kept
        found = [job for job in kept if job.startswith(arguments.job)]
        if len(found) != 1:
            there = ", ".join(job[:12] for job in kept) or "none"
            raise BadInput(
                f"{len(found)} jobs {arguments.job[:12]!r} keep something; there are {there}"
            )
        units = kept[found[0]]
        ledger.close_job(found[0])
    if arguments.json:
        print(json.dumps({"job_id": found[0], "units": units}))
    else:
        print(f"{format_units(units)} that job {found[0][:12]} kept is free again")
    return 0
