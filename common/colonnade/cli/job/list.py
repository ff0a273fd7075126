"""``colonnade job list``: list jobs, newest first."""

import argparse
import json
from datetime import UTC, datetime

from colonnade.cli.job.connection import add_client_options, open_client, view_as_json, why


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
    if not views:
        print("no jobs")
    for view in views:
        rounds = f"{view.rounds_done:>4}/{view.rounds:<4}"
        when = datetime.fromtimestamp(view.submitted_at, UTC).strftime("%Y-%m-%d %H:%MZ")
        print(f"{view.job_id[:12]}  {when}  {view.state:<9}  {rounds}  {view.name}")
        if view.state in ("failed", "cancelled"):
            print(f"{'':<14}{why(view)}")
    return 0
