"""The bytes that parties sent for a job, as its report lists them."""

from collections.abc import Sequence
from typing import Any

from colonnade.server.engine.metering import CONTROL
from colonnade.server.engine.rounds import Run
from colonnade.server.methods.base import Findings
from colonnade.server.store.base import UplinkRow

Report = dict[str, Any]


def uplink_of(run: Run, rows: Sequence[UplinkRow], found: Findings) -> Report:
    """Return what was counted for a job beside what was predicted, by round, party and kind."""
    listed = dict[tuple[int, str, str], Report]()
    for row in rows:
        size = 0 if row.kind == CONTROL else _body_bytes(run, row, found)
        # Several drawings may belong to one round.
        round_ = found.round_of.get(row.round, row.round)
        key = {"round": round_, "party": row.party, "kind": row.kind}
        counts = {
            "payload_bytes": row.payload_bytes,
            "predicted_bytes": size * row.messages,
            "wire_bytes": row.wire_bytes,
            "messages": row.messages,
            "retry_bytes": row.retry_bytes,
        }
        known = listed.setdefault((round_, row.party, row.kind), key | dict.fromkeys(counts, 0))
        for name, count in counts.items():
            known[name] += count
    sums = ("payload_bytes", "predicted_bytes", "wire_bytes", "retry_bytes")
    totals = {name: sum(row[name] for row in listed.values()) for name in sums}
    return {**totals, **found.uplink, "rows": list(listed.values())}


def _body_bytes(run: Run, row: UplinkRow, found: Findings) -> int:
    if found.body_bytes is not None:
        return found.body_bytes(row)
    return run.algorithm.body_bytes(row.party, row.kind)
