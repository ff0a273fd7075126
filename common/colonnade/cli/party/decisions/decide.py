"""What ``colonnade party approve``, ``hold`` and ``refuse`` share: a decision, signed and left."""

import argparse
import fcntl
import json
import os
import time
from pathlib import Path

from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.ledger.decisions import APPROVE, MAX_REASON, signed_decision
from colonnade.ledger.job_entries import Decided
from colonnade.ledger.receipts import approver_key_from_file, public_bytes
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import PartyConfig, load_config
from colonnade.party.officer.inbox import DecisionFolder
from colonnade.party.officer.reading import case_of

_PATIENCE_S, _PAUSE_S = 5.0, 0.1


def add_decision_options(parser: argparse.ArgumentParser, *, reason: bool) -> None:
    """Add which job, whose key and why."""
    parser.description = (
        "The decision is signed with the approver's key and becomes an entry of the ledger as soon "
        "as the party runs. The coordinator is told the reason."
    )
    parser.add_argument("job", help="the job's name, or the beginning of it")
    parser.add_argument("--config", type=Path, required=True, help="the party's configuration file")
    parser.add_argument("--key", type=Path, required=True, help="the approver's private key (PEM)")
    parser.add_argument("--reason", default="", required=reason, help="why, for the record")


def decide(arguments: argparse.Namespace, verdict: str) -> int:
    """Sign a decision, leave it for the party, and say what became of it."""
    config = load_config(arguments.config)
    entry = sign(config, arguments.job, verdict, reason=arguments.reason, key=arguments.key)
    DecisionFolder(config.decisions).put(entry)
    place = _taken_up(config, entry)
    if arguments.json:
        print(json.dumps({"job": entry.job, "verdict": verdict, "entry": place}))
    elif place:
        print(f"{verdict}: job {entry.job[:12]}; signed, and entry {place} of the ledger")
    else:
        print(f"{verdict}: job {entry.job[:12]}; signed, and taken up as soon as the party runs")
    return 0


def sign(config: PartyConfig, prefix: str, verdict: str, *, reason: str, key: Path) -> Decided:
    """Return a decision that the ledger will take; `BadInput` says why it would not."""
    found = read_snapshot(config.ledger)
    case, approver = case_of(found, prefix), approver_key_from_file(key)
    if not case.fits and verdict == APPROVE and case.waits:
        over = next(cap.what for cap in case.caps if not cap.allows)
        raise BadInput(f"the job does not fit the cap of {over}; raise that cap first, or refuse")
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise BadInput(f"--reason has up to {MAX_REASON} printable characters")
    opened, docket = found.state.opened, found.state.docket
    if opened is None:
        raise BadInput("the ledger is empty")
    number = docket.next_number(case.job, public_bytes(approver).hex())
    entry = signed_decision(
        opened.ledger_id, case.job, verdict, reason=reason.strip(), number=number, key=approver
    )
    try:
        found.state.check_decision(entry)
    except (ValueError, ColonnadeError) as error:
        raise BadInput(f"the decision would not count: {error}") from None
    return entry


def _taken_up(config: PartyConfig, entry: Decided) -> int:
    """Return the place of a decision in the ledger; 0 if no running party took it up soon."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        found = read_snapshot(config.ledger)
        if entry in found.state.docket.decisions.get(entry.job, ()):
            signed = f'"signature":"{entry.signature}"'
            return next(at for at, line in enumerate(found.lines, start=1) if signed in line)
        if time.monotonic() > deadline or not running(config):
            return 0
        time.sleep(_PAUSE_S)


def running(config: PartyConfig) -> bool:
    """Return whether a process holds the ledger."""
    try:
        lock = os.open(config.ledger.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
