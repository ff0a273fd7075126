"""Progress: a bar on a terminal; of a job plain lines elsewhere, of the rest nothing."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tqdm import tqdm

if TYPE_CHECKING:  # bars need no network
    from colonnade.client import JobView

T = TypeVar("T")


def bar(steps: Iterable[T], *, what: str, unit: str = "step") -> Iterable[T]:
    """Show on a terminal how far the work on ``steps`` has come."""
    # disable=None: a bar on a terminal, nothing elsewhere.
    return tqdm(steps, desc=what, unit=unit, leave=False, file=sys.stderr, disable=None)


@contextmanager
def counter(total: int, *, what: str, unit: str = "step") -> Iterator[Callable[[int], None]]:
    """Yield what says how many of ``total`` are done."""
    with tqdm(
        total=total, desc=what, unit=unit, leave=False, file=sys.stderr, disable=None
    ) as shown:

        def show(done: int) -> None:
            shown.update(done - shown.n)

        yield show


def show_progress(views: "Iterable[JobView]", *, quiet: bool) -> "Iterator[JobView]":
    """Show each view and yield it."""
    if quiet:
        yield from views
        return
    terminal = sys.stderr.isatty()
    rounds = None
    told = None
    for view in views:
        if terminal:
            if rounds is None:
                rounds = tqdm(total=view.rounds, desc="rounds", unit="round", file=sys.stderr)
            rounds.n = view.rounds_done
            rounds.set_postfix_str(summary(view), refresh=True)
        elif (line := f"{view.state} {summary(view)}") != told:
            told = line
            print(f"round {view.rounds_done}/{view.rounds}  {line}", file=sys.stderr)
        yield view
    if rounds is not None:
        rounds.close()


def summary(view: "JobView") -> str:
    """Return uplink, what is left of the job's price by party, and who is awaited."""
    sent = sum(party.payload_bytes for party in view.parties)
    left = " ".join(
        f"{party.party} {100 * (1 - party.spent_units / party.max_units):.0f}%"
        for party in view.parties
        if party.max_units
    )
    away = [party.party for party in view.parties if not party.attached and not view.ended]
    waiting = f"; waiting for {', '.join(away)}" if away else ""
    deciding = [party.party for party in view.parties if party.waiting]
    waiting += f"; {', '.join(deciding)}: waits for approval" if deciding else ""
    whose = ", least of any client" if view.over_clients else ""
    price = f"; left of the job's price{whose}: {left}" if left else ""  # a prediction has none
    return f"uplink {sent} B{price}{waiting}"
