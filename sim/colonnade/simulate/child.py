"""Run a command of ours that ends when the process that started it does, even if that was killed.

Standard input must be a pipe whose other end that process alone has: the pipe ends with it.

    python -m colonnade.simulate.child party run --config party.toml
"""

import os
import runpy
import signal
import sys
import threading
import time

_STOP_S = 10.0


def _follow() -> None:
    """Stop this process, gently first, when standard input ends."""
    while os.read(sys.stdin.fileno(), 4096):  # not the buffered reader: its lock outlives a thread
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_S)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_follow, daemon=True).start()
    runpy.run_module("colonnade.cli.main", run_name="__main__", alter_sys=True)
