"""``colonnade party jobs``: the jobs that wait for a decision, in sentences."""

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from colonnade.cli.amounts import amount_as_json
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import load_config
from colonnade.party.officer.case import Case, sentences
from colonnade.party.officer.reading import case_of, cases


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.description = (
        "Say who asks for what, what would leave, what it costs and what is promised. Nothing is "
        "locked or written, so a running party is not disturbed."
    )
    parser.add_argument("job", nargs="?", help="one job: its name, or the beginning of it")
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")
    parser.add_argument("--all", action="store_true", help="also those that were decided on")


def run(arguments: argparse.Namespace) -> int:
    """Show the jobs."""
    found = read_snapshot(load_config(arguments.config).ledger)
    if arguments.job is None:
        shown = cases(found, all_jobs=arguments.all)
    else:
        shown = [case_of(found, arguments.job)]
    if arguments.json:
        print(json.dumps({"jobs": [case_as_json(case) for case in shown]}))
        return 0
    if not shown:
        print("no job waits for a decision")
    for case in shown:
        print(f"job {case.job}")
        print(f"  {_standing(case)}")
        print("\n".join(f"  {line}" for line in sentences(case)))
        print()
    return 0


def case_as_json(case: Case) -> dict[str, Any]:
    """Return a case as plain values, its amounts as rho and epsilon too."""
    table = case.caps[0]
    left = max(0, table.cap - table.used)
    return asdict(case) | {
        "bytes": case.bytes,
        "fits": case.fits,
        "cost": amount_as_json(case.units, case.delta),
        "left_now": amount_as_json(left, case.delta),
        "left_after": amount_as_json(max(0, table.cap - table.after), case.delta),
        "sentences": sentences(case),
    }


def _standing(case: Case) -> str:
    since = datetime.fromtimestamp(case.since, UTC).strftime("%Y-%m-%d %H:%MZ")
    people = f" ({case.agreed} of {case.needed} agreed)" if case.needed else ""
    reason = f": {case.reason}" if case.reason else ""
    asked = f"since {since}" if case.waits else f"now; asked {since}"
    return f"{case.standing} {asked}{people}{reason}"
