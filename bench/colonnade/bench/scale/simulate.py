"""``simulate``: how long a whole default simulation takes, and until its first round."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from colonnade.core.errors import JobEnded

ROWS, QUICK_ROWS = 20_000, 5_000


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Time `colonnade simulate` once, after one that fills the kernels' cache.

    Processor time is that of all its processes; ``first_round_s`` counts from the program's start.
    """
    rows = QUICK_ROWS if quick else ROWS
    if not quick:
        _run(folder / "before", rows)
    wall, cpu, first = _run(folder / "timed", rows)
    return {"simulate": {"rows": rows, "wall_s": wall, "cpu_s": cpu, "first_round_s": first}}


def _run(out: Path, rows: int) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "colonnade.cli.main", "simulate", "--json"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [*command, "--rows", str(rows), "--out", str(out)],
        capture_output=True,
        cwd=out.parent,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        check=False,
    )
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise JobEnded(f"the simulation ended with exit code {done.returncode}")
    result = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The program's clock starts once it has imported what it needs.
    return wall, cpu, wall - result["seconds"] + result["first_round_s"]
