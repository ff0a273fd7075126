"""``clients``: federated ADMM with many registered clients, few of whom a round asks."""

import json
from pathlib import Path
from typing import Any

from colonnade.bench.admm.scale import ClientsScale, field_of
from colonnade.bench.scratch import say

REGISTERED, QUICK_REGISTERED = (1_000, 10_000, 100_000, 1_000_000), (1_000, 4_000)
ASKED, QUICK_ASKED = 10_000, 500
_FEATURES, _ROWS, _ROUNDS = 10, 2, 6


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return a row for each number of clients; the set-up, which reads them all, is not timed.

    ``peak_mb`` is the most memory that host and coordinator have had together, and by process.
    """
    rows = []
    for registered in QUICK_REGISTERED if quick else REGISTERED:
        asked = min(QUICK_ASKED if quick else ASKED, registered // 2)
        say(f"{asked} of {registered} clients")
        scale = ClientsScale(clients=registered, features=_FEATURES, rows_per_client=_ROWS)
        with field_of(folder / str(registered), scale) as field:
            timed = field.run(sampled=asked, rounds=_ROUNDS)
            memory = field.peak_rss_mb()
        cpu = {name: 1e6 * each for name, each in timed.cpu_seconds_per_answer.items()}
        rows.append(
            {
                "registered": registered,
                "asked": asked,
                "round_s": timed.seconds_per_round,
                "peak_mb": sum(memory.values()),
                "peak_mb_by_process": memory,
                "cpu_us_per_answer": cpu,
            }
        )
        say(json.dumps(rows[-1]))
    return {"clients": rows}
