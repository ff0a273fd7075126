"""Make a temporary folder, print its path, and remove it when standard input ends.

A program for `colonnade.core.scratch`, of the standard library alone, so it starts at once.
"""

import contextlib
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

_TRY_AGAIN_S = 0.05
_TRY_FOR_S = 60.0  # processes of the run may still be writing while they end


def main() -> None:
    """Serve one run."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(tempfile.mkdtemp(prefix="colonnade-"))
    with contextlib.suppress(BrokenPipeError):  # the run is gone already
        sys.stdout.write(f"{folder}\n")
        sys.stdout.flush()
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _TRY_FOR_S
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            time.sleep(_TRY_AGAIN_S)


if __name__ == "__main__":
    main()
