"""What ``job submit`` and ``job admm`` share: who takes part, and what is done with a job."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from colonnade.cli.job.confirm import confirm
from colonnade.cli.job.connection import follow
from colonnade.cli.run_folder import file_errors
from colonnade.cli.text import names_from, plan_text
from colonnade.client import Client, JobPlan
from colonnade.privacy.accounting import format_upper_bound


def add_party_options(parser: argparse.ArgumentParser) -> None:
    """Add who takes part."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--parties", metavar="A,B", help="who takes part; default: all enrolled, none may be away"
    )
    chosen.add_argument("--without", metavar="A,B", help="whom to leave out of the default")


def who(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return who was named to take part, and who not to."""
    parties, without = arguments.parties, arguments.without
    return {
        "parties": None if parties is None else names_from(parties),
        "without": () if without is None else names_from(without),
    }


def add_hand_in_options(parser: argparse.ArgumentParser, *, purpose: bool = True) -> None:
    """Add what is done with a job that was written, and with ``purpose`` what it is for."""
    parser.add_argument("--name", help="a name for people; default: the label")
    if purpose:
        parser.add_argument("--purpose", default="", help="what the answer is for, in a few words")
    parser.add_argument("--write-spec", type=Path, help="write the specification to a file")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, submit nothing")
    parser.add_argument("--watch", action="store_true", help="follow the job until it ends")
    parser.add_argument(
        "--yes", action="store_true", help="submit in spite of warnings, without asking"
    )
    parser.add_argument(
        "--again", action="store_true", help="spend again on a question that was asked before"
    )


def hand_in(
    client: Client,
    plan: JobPlan,
    arguments: argparse.Namespace,
    ended: Callable[[str], None] | None = None,
) -> int:
    """Submit a job, or show what it would do, as the options say; ``ended`` gets its name."""
    if arguments.write_spec is not None:
        with file_errors(arguments.write_spec):
            arguments.write_spec.write_bytes(plan.spec)
    if arguments.dry_run:
        print(json.dumps(plan.description) if arguments.json else plan_text(plan.description))
        return 0
    told = plan.description.get("evaluation")
    if not arguments.json and told:
        epsilon = format_upper_bound(told["epsilon"])
        print(
            f"{told['party']} sets aside epsilon {epsilon} to evaluate the model on "
            f"{told['people']} people who are kept out; expected error of its "
            f"{told['metric'].upper()}: about {told['expected_error']:.2g}",
            file=sys.stderr,
        )
    confirm(plan.warnings, yes=arguments.yes)
    name = client.submit(plan, again=arguments.again)
    if not arguments.watch and not getattr(arguments, "out", None):
        print(json.dumps({"job_id": name}) if arguments.json else name)
        return 0
    code = follow(client, name, as_json=arguments.json)
    if ended is not None:
        ended(name)
    if not arguments.json and told:
        print(_next_step(name, told["party"]))
    return code


def _next_step(name: str, holder: str) -> str:
    """Say how the model of a job is measured on the people whom it kept out of its fit."""
    return (
        f"to measure it on the people kept out, every party grants [[predict]] with job = "
        f'"{name}", receiver = "{holder}", purpose = "evaluation"; then: '
        f"colonnade job evaluate {name[:12]}"
    )
