"""Progress of a job: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colonnade.client.client import JobView


def show_progress(views: "Iterable[JobView]", *, quiet: bool) -> "Iterator[JobView]":
    """Show each view and yield it."""
    from tqdm import tqdm

    if quiet:
        yield from views
        return
    terminal = sys.stderr.isatty()
    bar = None
    told = None
    for view in views:
        if terminal:
            if bar is None:
                bar = tqdm(total=view.rounds, desc="rounds", unit="round", file=sys.stderr)
            bar.n = view.rounds_done
            bar.set_postfix_str(summary(view), refresh=True)
        elif (line := f"{view.state} {summary(view)}") != told:
            told = line
            print(f"round {view.rounds_done}/{view.rounds}  {line}", file=sys.stderr)
        yield view
    if bar is not None:
        bar.close()


def summary(view: "JobView") -> str:
    """Return uplink, budget left for the job by party, and who is awaited."""
    sent = sum(party.payload_bytes for party in view.parties)
    left = " ".join(
        f"{party.party} {100 * (1 - party.spent_units / party.max_units):.0f}%"
        for party in view.parties
        if party.max_units
    )
    away = [party.party for party in view.parties if not party.attached and not view.ended]
    waiting = f"; waiting for {', '.join(away)}" if away else ""
    whose = ", least of any client:" if view.over_clients else ""
    return f"uplink {sent} B; budget left{whose} {left}{waiting}"
