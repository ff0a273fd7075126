"""Signals that ask a command to stop, raised as an exception so that it cleans up on its way."""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """The process was asked to stop; like `KeyboardInterrupt`, no handler of errors sees it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    def report(self, *, json_wanted: bool) -> int:
        """Say so, and return the exit code that a shell gives for the signal."""
        text = f"stopped by {self.signal.name}"
        if json_wanted:
            print(json.dumps({"error": "stopped", "message": text}))
        print(f"colonnade: {text}", file=sys.stderr)
        return 128 + self.signal


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` where the main thread is when a signal asks it to stop.

    A signal that was ignored when the command began (``nohup``) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Stopped(number)
