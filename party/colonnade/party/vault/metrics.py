"""A party in numbers: what it shows to its own organization's Prometheus."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from colonnade.ledger.ledger import Ledger
from colonnade.party.vault.meter import Meter
from colonnade.party.vault.pacing import Pace
from colonnade.privacy.accounting import rho_from_units
from colonnade.wire.readings import Reading


def readings(
    ledger: Ledger,
    meter: Meter,
    pace: Pace,
    *,
    attached: bool,
    disk: Path,
) -> Sequence[Reading]:
    """Return budget, uplink, pace, session; only looks up single values, so any thread may call."""
    budget = ledger.budget()
    set_aside = ledger.state.reserved.get("", 0)
    units = {"cap": budget.cap, "spent": budget.spent, "set_aside": set_aside}
    return (
        Reading.one("colonnade_attached", "whether a session is open", float(attached)),
        Reading(
            "colonnade_budget_rho",
            "the ledger's cap, what is spent, and what running jobs may still spend",
            {(part,): rho_from_units(amount) for part, amount in units.items()},
            ("part",),
        ),
        Reading.one(
            "colonnade_ledger_entries", "entries in the ledger", ledger.head.seq, counts=True
        ),
        Reading.one(
            "colonnade_uplink_payload_bytes",
            "payload that left, ever",
            meter.payload_bytes,
            counts=True,
        ),
        Reading.one(
            "colonnade_uplink_wire_bytes",
            "bytes that left, ever, with framing and encryption",
            meter.wire_bytes,
            counts=True,
        ),
        Reading.one(
            "colonnade_answers_over_grid",
            "answers since the start that took longer to make than answer_grid_ms",
            pace.late,
            counts=True,
        ),
        Reading.one(
            "colonnade_disk_free_bytes",
            "free space where the ledger is; too little of it pauses answers",
            shutil.disk_usage(disk).free,
        ),
    )
