"""``colonnade job list``: list jobs, newest first."""

import argparse
import json

from colonnade.cli.job.connection import add_client_options, open_client, view_as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the jobs."""
    with open_client(arguments) as client:
        views = client.jobs()
    if arguments.json:
        print(json.dumps({"jobs": [view_as_json(view) for view in views]}))
        return 0
    for view in views:
        rounds = f"{view.rounds_done:>4}/{view.rounds:<4}"
        print(f"{view.job_id[:12]}  {view.state:<9}  {rounds}  {view.name}")
    return 0
