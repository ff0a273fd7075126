"""``colonnade job retry``: ask again what a job asked that failed or was cancelled."""

import argparse
import json

from colonnade.cli.job.confirm import confirm
from colonnade.cli.job.connection import add_client_options, cost, follow, open_client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)
    parser.add_argument("--watch", action="store_true", help="follow the job until it ends")
    parser.add_argument(
        "--yes", action="store_true", help="spend again on what was spent before, without asking"
    )


def run(arguments: argparse.Namespace) -> int:
    """Submit the same specification under a new name."""
    with open_client(arguments) as client:
        details = client.show(arguments.job)
        view, job, warnings = details.view, details.again(), []
        if any(party.spent_units for party in view.parties):
            warnings.append(
                f"job {view.job_id[:12]} has cost {cost(view)}; asking again spends anew, and all "
                "counts"
            )
        confirm(warnings, yes=arguments.yes)
        name = client.submit(job, again=True)
        if arguments.watch:
            return follow(client, name, as_json=arguments.json)
    print(json.dumps({"job_id": name, "retries": view.job_id}) if arguments.json else name)
    return 0
