"""``colonnade job retry``: ask again what a job asked that failed or was cancelled."""

import argparse
import json

from colonnade.cli.job.confirm import confirm
from colonnade.cli.job.connection import add_client_options, follow, open_client, tell_scores
from colonnade.core.errors import DuplicateJob


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
        job = details.again()
        try:
            name = client.submit(job)
        except DuplicateJob as error:  # it has cost something itself, or was retried before
            confirm([str(error)], yes=arguments.yes)
            name = client.submit(job, again=True)
        if arguments.watch:
            code = follow(client, name, as_json=arguments.json)
            tell_scores(client, name, as_json=arguments.json)
            return code
    retried = details.view.job_id
    print(json.dumps({"job_id": name, "retries": retried}) if arguments.json else name)
    return 0
