"""``colonnade job submit``: from options or a file to a job that the coordinator has."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colonnade.cli.job.connection import follow, open_client
from colonnade.cli.planning_options import add_plan_options, wishes_of

if TYPE_CHECKING:
    from colonnade.client.client import Client


def add_submit_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--target", metavar="NAME", help="the label; the plan chooses the rest")
    what.add_argument("--spec", type=Path, help="a specification's bytes, as --write-spec wrote")
    add_party_options(parser)
    parser.add_argument("--name", help="a name for people; default: the label")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a party may stay away")
    add_hand_in_options(parser)
    add_plan_options(parser, data=False)


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
        "parties": None if parties is None else _names(parties),
        "without": () if without is None else _names(without),
    }


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def add_hand_in_options(parser: argparse.ArgumentParser) -> None:
    """Add what is done with a job that was written."""
    parser.add_argument("--write-spec", type=Path, help="write the specification to a file")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, submit nothing")
    parser.add_argument("--watch", action="store_true", help="follow the job until it ends")
    parser.add_argument(
        "--again", action="store_true", help="spend again on a question that was asked before"
    )


def submit(arguments: argparse.Namespace) -> int:
    """Submit the job that the options ask for."""
    from colonnade.client.builder import author
    from colonnade.wire.jobspec import job_to_bytes

    with open_client(arguments) as client:
        if arguments.spec is not None:
            spec = _read_spec(arguments.spec)
        else:
            job = author(
                client.parties(),
                wishes_of(arguments),
                target=arguments.target,
                name=arguments.name,
                timeout_s=arguments.timeout,
                **who(arguments),
            )
            spec = job_to_bytes(job)
        return hand_in(client, spec, arguments)


def hand_in(client: "Client", spec: bytes, arguments: argparse.Namespace) -> int:
    """Submit a job's bytes, or show what they would do, as the options say."""
    import json

    from colonnade.cli.plan import as_text
    from colonnade.cli.run_folder import file_errors
    from colonnade.client.description import describe
    from colonnade.wire.jobspec import job_from_bytes

    job = job_from_bytes(spec)
    if arguments.write_spec is not None:
        with file_errors(arguments.write_spec):
            arguments.write_spec.write_bytes(spec)
    if arguments.dry_run:
        told = describe(job, client.parties())
        print(json.dumps(told) if arguments.json else as_text(told))
        return 0
    name = client.submit(spec, again=arguments.again)
    if not arguments.watch:
        print(json.dumps({"job_id": name}) if arguments.json else name)
        return 0
    return follow(client, name, as_json=arguments.json)


def _read_spec(path: Path) -> bytes:
    from colonnade.core.errors import BadInput

    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
