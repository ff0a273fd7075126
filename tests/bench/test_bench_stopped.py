"""Long runs say how far they are, and a signal ends them with their figures so far."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colonnade.core.errors import EXIT_SIGNAL

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
# A runner in the background ignores SIGINT, and its children would inherit that.
START = """import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
MANY = "100000000"
HARM = ("double_spent", "under_counted", "re_drawn", "mutated_ok", "stranded")


def started_for(folder: Path) -> list[str]:
    """Return the processes whose command names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


@pytest.mark.parametrize(
    ("words", "number", "counted", "none"),
    [
        (
            f"colonnade.cli.main bench crash --kills {MANY} --json --folder",
            signal.SIGTERM,
            "kills",
            (*HARM, "opened_with_more_budget", "images"),
        ),
        (
            f"colonnade.cli.main bench crash --kills {MANY} --workers 2 --json --folder",
            signal.SIGINT,
            "kills",
            (*HARM, "opened_with_more_budget", "images"),
        ),
        (
            f"colonnade.cli.main bench faults --small --seeds {MANY} --json --folder",
            signal.SIGINT,
            "seeds",
            ("violations",),
        ),
        (
            f"colonnade.bench.isolation.frames --frames {MANY}",
            signal.SIGTERM,
            "frames",
            ("violations",),
        ),
        (
            "fuzz.run --random --only mirror --seconds 600 --json",
            signal.SIGINT,
            "executions",
            ("crashes",),
        ),
        (
            "colonnade.cli.main bench soak --minutes 60 --json --folder",
            signal.SIGTERM,
            "jobs_started",
            (),
        ),
    ],
    ids=["crash", "crash-workers", "faults", "frames", "fuzz", "soak"],
)
def test_a_run_that_is_stopped_prints_what_it_has_done(
    words: str, number: signal.Signals, counted: str, none: tuple[str, ...], tmp_path: Path
) -> None:
    asked = [*words.split(), *([str(tmp_path)] if words.endswith("--folder") else [])]
    with subprocess.Popen(
        [sys.executable, "-c", START, *asked],
        cwd=ROOT / "tests",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(number)
        said, rest = process.communicate(timeout=400)
    assert " in " in first, first + rest  # how many in how many seconds
    assert process.returncode == EXIT_SIGNAL + number, rest
    figures = json.loads(said)  # one document: the figures and the error
    assert 0 < figures[counted] < int(MANY)
    assert {name: figures[name] for name in none} == dict.fromkeys(none, 0)
    assert figures["error"] == "stopped"
    assert f"stopped by {number.name}" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []
    for _ in range(400):  # a party that was being killed ends by itself
        if not started_for(tmp_path):
            break
        time.sleep(0.05)
    assert not started_for(tmp_path)
