"""``colonnade job submit``: from options or a file to a job that the coordinator has."""

import argparse
from collections.abc import Callable
from pathlib import Path

from colonnade.cli.job.connection import add_client_options, open_client, print_results
from colonnade.cli.job.hand_in import add_hand_in_options, add_party_options, hand_in, who
from colonnade.cli.options.planning import add_plan_options, options_of
from colonnade.cli.run_folder import file_errors
from colonnade.client import Client
from colonnade.core.errors import BadInput


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_client_options(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--target", metavar="NAME", help="the label; the plan chooses the rest")
    what.add_argument("--spec", type=Path, help="a specification's bytes, as --write-spec wrote")
    add_party_options(parser)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    add_hand_in_options(parser)
    parser.add_argument(
        "--out", type=Path, help="follow the job, then write its report and model to this folder"
    )
    add_plan_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submit the job that the options ask for."""
    with open_client(arguments) as client:
        if arguments.spec is not None:
            if arguments.purpose:
                raise BadInput("--purpose: the specification of --spec has its own")
            plan = client.plan(_read_spec(arguments.spec))
            return hand_in(client, plan, arguments, _writer(client, arguments))
        plan = client.plan(
            options_of(arguments),
            target=arguments.target,
            name=arguments.name,
            purpose=arguments.purpose,
            timeout_s=arguments.timeout,
            **who(arguments),
        )
        return hand_in(client, plan, arguments, _writer(client, arguments))


def _writer(client: Client, arguments: argparse.Namespace) -> Callable[[str], None] | None:
    """Return what writes the report of a job that has finished."""
    out: Path | None = arguments.out
    if out is None:
        return None

    def write(job: str) -> None:
        report = client.report(job)
        with file_errors(out):
            report.write(out)
        if not arguments.json:
            print(report.statement)
            print_results(report, as_json=False)
            print(f"wrote {out}/report.html, report.json and model.json")

    return write


def _read_spec(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
