"""``colonnade party approve``, ``hold`` and ``refuse``: sign a decision, left for the party."""

import argparse
import json
from pathlib import Path

from colonnade.ledger.decisions import APPROVE
from colonnade.ledger.receipts import approver_key_from_file
from colonnade.party.config import load_config
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.officer.signing import sign, taken_up


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which job, whose key and why; the verb is the verdict."""
    verdict = parser.prog.split()[-1]
    parser.set_defaults(verdict=verdict)
    parser.description = (
        "The decision is signed with the approver's key and becomes an entry of the ledger as soon "
        "as the party runs. The coordinator is told the reason."
    )
    parser.add_argument("job", help="the job's name, or the beginning of it")
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")
    parser.add_argument("--key", type=Path, required=True, help="the approver's private key (PEM)")
    needs_reason = verdict != APPROVE
    parser.add_argument("--reason", default="", required=needs_reason, help="why, for the record")


def run(arguments: argparse.Namespace) -> int:
    """Sign a decision, leave it for the party, and say what became of it."""
    config, verdict = load_config(arguments.config), arguments.verdict
    approver = approver_key_from_file(arguments.key)
    entry = sign(config, arguments.job, verdict, reason=arguments.reason, approver=approver)
    DecisionFolder(config.decisions).put(entry)
    place = taken_up(config, entry)
    if arguments.json:
        print(json.dumps({"job": entry.job, "verdict": verdict, "entry": place}))
    elif place:
        print(f"{verdict}: job {entry.job[:12]}; signed, and entry {place} of the ledger")
    else:
        print(f"{verdict}: job {entry.job[:12]}; signed, and taken up as soon as the party runs")
    return 0
