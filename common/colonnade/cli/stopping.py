"""Signals that ask a command to stop, raised as an exception so that it cleans up on its way."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """The process was asked to stop: event loops and handlers of errors let it through."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` where the main thread is when a signal asks it to stop.

    A signal that was ignored when the command began (``nohup``) stays ignored. A library may turn
    what is raised inside it into an error of its own (DuckDB does); that is `Stopped` here again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    came = list[int]()

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise Stopped(number)

    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    except Exception:
        if came:
            raise Stopped(came[0]) from None
        raise
    finally:
        for number in handled:
            signal.signal(number, before[number])
