"""What was bought of the columns of a table, as a ledger keeps it.

The job of a purchase names its columns by their places in the table, as in
``dataset-(version)-0..4,6``, so that a ledger says by itself what was asked for, also of a purchase
that was interrupted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from colonnade.ledger.entries import ReleaseKey
from colonnade.ledger.ledger import Ledger
from colonnade.methods.bounds import STEPS

KIND = "bounds"


@dataclass(frozen=True, slots=True)
class Purchase:
    """Bounds of some columns that were asked for at once, by their places in the table."""

    version: str
    columns: tuple[int, ...]

    @property
    def job(self) -> str:
        """The job under which a ledger keeps the purchase; it names the columns."""
        runs = (str(a) if a == b else f"{a}..{b}" for a, b in runs_of(self.columns))
        return f"{bounds_job(self.version)}-{','.join(runs)}"

    @property
    def keys(self) -> list[ReleaseKey]:
        """The releases, step by step."""
        return [ReleaseKey(self.job, step, KIND) for step in range(STEPS)]

    def is_done(self, ledger: Ledger) -> bool:
        """Return whether all that was asked for is there."""
        return all(map(ledger.has, self.keys))


def bounds_job(version: str) -> str:
    """Return how the jobs begin under which a ledger keeps the bounds of a version of a table."""
    return f"dataset-{version}"


def purchases(version: str, ledger: Ledger) -> Iterator[Purchase]:
    """Yield what was ever asked for of a version of a table, finished or not."""
    prefix = f"{bounds_job(version)}-"
    known = {job for job, _ in ledger.state.admitted} | ledger.state.closed
    for job in sorted(known):
        if job.startswith(prefix):
            yield Purchase(version, tuple(_places(job.removeprefix(prefix))))


def runs_of(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of neighbours."""
    begin = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != places[at - 1] + 1:
            yield places[begin], places[at - 1]
            begin = at


def _places(runs: str) -> Iterator[int]:
    """Read the places of columns out of the name of a purchase."""
    for run in runs.split(","):
        first, _, last = run.partition("..")
        yield from range(int(first), int(last or first) + 1)
