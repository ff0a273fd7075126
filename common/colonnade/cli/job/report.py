"""``colonnade job report``: write a job's report and model."""

import argparse
import json
from pathlib import Path

from colonnade.cli.job.connection import (
    add_client_options,
    open_client,
    print_notes,
    print_results,
)
from colonnade.cli.run_folder import file_errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser, job=True)
    parser.add_argument("--out", type=Path, help="folder to write; default: print a summary")


def run(arguments: argparse.Namespace) -> int:
    """Write the report, or print a summary of it."""
    with open_client(arguments) as client:
        report = client.report(arguments.job)
    if arguments.out is not None:
        with file_errors(arguments.out):
            report.write(arguments.out)
    if arguments.json:
        print(json.dumps(report.document))
    elif arguments.out is not None:
        print(f"wrote {arguments.out}/report.html, report.json and model.json")
    else:
        print(report.statement)
        done = report["rounds"]["done"]
        print(
            f"{report.state}, {done} of {report['rounds']['planned']} rounds, "
            f"{report['uplink']['payload_bytes']} payload bytes; --out FOLDER writes all of it"
        )
    print_results(report, as_json=arguments.json)
    print_notes(report.notes, as_json=arguments.json)
    return 0
