"""What a long run says while it goes on, and how a signal ends it without losing its figures."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tqdm import tqdm

from colonnade.cli.stopping import Stopped
from colonnade.core.errors import EXIT_SIGNAL

_EVERY_S = 20.0


def told(name: str, total: int | None = None) -> Callable[[int], None]:
    """Return what is told how much of ``name`` is done, and says so on standard error.

    A terminal shows a bar. A log gets a line at once, one now and then, and one when all of
    ``total`` is done.
    """
    if sys.stderr.isatty():
        bar = tqdm(desc=name, total=total, unit="")

        def show(done: int) -> None:
            bar.update(done - bar.n)

        return show
    began = time.monotonic()
    due = began

    def tell(done: int) -> None:
        nonlocal due
        now = time.monotonic()
        if done == total or now >= due:
            due = now + _EVERY_S
            of = "" if total is None else f" of {total}"
            print(f"{name}: {done}{of} in {now - began:.0f} s", file=sys.stderr, flush=True)

    return tell


@dataclass(slots=True)
class Ending:
    """The signal that ended a run early, if one did."""

    by: list[signal.Signals] = field(default_factory=list)

    @property
    def fields(self) -> dict[str, Any]:
        """What the JSON of figures says in addition: the error of every stopped command."""
        if not self.by:
            return {}
        text = f"stopped by {self.by[0].name}; the figures are of what was done until then"
        return {"error": "stopped", "message": text}

    def exit_code(self, otherwise: int) -> int:
        """Return the exit code of a run that came to ``otherwise``; tell of the signal."""
        if not self.by:
            return otherwise
        print(f"colonnade: {self.fields['message']}", file=sys.stderr, flush=True)
        return EXIT_SIGNAL + self.by[0]


@contextmanager
def keeping_figures() -> Iterator[Ending]:
    """Let a signal end what is inside, and go on behind it: with the figures so far."""
    ending = Ending()
    try:
        yield ending
    except Stopped as stopped:
        ending.by.append(stopped.signal)
    except KeyboardInterrupt:
        ending.by.append(signal.SIGINT)


@contextmanager
def stopped_between() -> Iterator[Callable[[], None]]:
    """Yield what raises `Stopped` if a signal came since; until it is called, a first one waits.

    For what would take an exception inside it for a fault under test. A second signal is raised at
    once, by what handled signals before.
    """
    came: list[int] = []
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if callable(signal.getsignal(number))
    ]
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    def check() -> None:
        if came:
            raise Stopped(came[0])

    for number in numbers:
        signal.signal(number, note)
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
