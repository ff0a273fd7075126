"""``colonnade preflight``: check a party or a coordinator before it runs."""

import argparse
import importlib
import json
from dataclasses import asdict
from pathlib import Path

from colonnade.cli.preflight.checklist import Checklist
from colonnade.core.errors import EXIT_CHECK_FAILED, EXIT_OK

ROLES = ("party", "coordinator")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Check certificate, names, clock, reachability, data, ledger, policy and disk. Nothing is "
        "changed, nothing is charged. Exit code 1 if anything would fail."
    )
    role = parser.add_mutually_exclusive_group(required=True)
    role.add_argument("--party", metavar="FILE", type=Path, help="a party's configuration")
    role.add_argument("--coordinator", metavar="FILE", type=Path, help="a coordinator's")


def run(arguments: argparse.Namespace) -> int:
    """Run the checks of the role and print what they found."""
    role = next(role for role in ROLES if getattr(arguments, role) is not None)
    checks = importlib.import_module(f"colonnade.cli.preflight.{role}")  # an image has one role
    checklist = Checklist()
    checks.check(checklist, getattr(arguments, role))
    failed = [finding for finding in checklist.findings if not finding.ok]
    if arguments.json:
        rows = [asdict(finding) for finding in checklist.findings]
        print(json.dumps({"ok": not failed, "checks": rows}))
    else:
        for finding in checklist.findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check:<12}  {finding.text}")
        problems = f"{len(failed)} of {len(checklist.findings)} checks failed"
        print(problems if failed else "ready")
    return EXIT_CHECK_FAILED if failed else EXIT_OK
