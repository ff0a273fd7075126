"""Sign a decision with an approver's key, and see the running party take it up."""

import fcntl
import os
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from colonnade.core.errors import BadInput, ColonnadeError
from colonnade.ledger.decisions import APPROVE, MAX_REASON, signed_decision
from colonnade.ledger.job_entries import Decided
from colonnade.ledger.receipts import public_bytes
from colonnade.ledger.rules.fold import check_decision
from colonnade.ledger.storage.snapshot import read_snapshot
from colonnade.party.config import PartyConfig
from colonnade.party.officer.reading import case_of

_PATIENCE_S, _PAUSE_S = 5.0, 0.1


def sign(
    config: PartyConfig, prefix: str, verdict: str, *, reason: str, approver: Ed25519PrivateKey
) -> Decided:
    """Return a decision that the ledger will take; `BadInput` says why it would not."""
    found = read_snapshot(config.ledger)
    case = case_of(found, prefix)
    if not case.fits and verdict == APPROVE and case.waits:
        over = next(cap.what for cap in case.caps if not cap.allows)
        raise BadInput(f"the job does not fit the cap of {over}; raise that cap first, or refuse")
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise BadInput(f"a reason has up to {MAX_REASON} printable characters")
    opened, docket = found.state.opened, found.state.docket
    if opened is None:
        raise BadInput("the ledger is empty")
    number = docket.next_number(case.job, public_bytes(approver).hex())
    entry = signed_decision(
        opened.ledger_id, case.job, verdict, reason=reason.strip(), number=number, key=approver
    )
    try:
        check_decision(found.state, entry)
    except (ValueError, ColonnadeError) as error:
        raise BadInput(f"the decision would not count: {error}") from None
    return entry


def taken_up(config: PartyConfig, entry: Decided) -> int:
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
