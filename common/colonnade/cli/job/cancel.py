"""``colonnade job cancel``: stop a job; what was charged stays charged."""

import argparse
import json

from colonnade.cli.job.connection import add_client_options, open_client, view_as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)


def run(arguments: argparse.Namespace) -> int:
    """Cancel the job."""
    with open_client(arguments) as client:
        view = client.cancel(arguments.job)
    print(json.dumps(view_as_json(view)) if arguments.json else f"{view.job_id[:12]} {view.state}")
    return 0
