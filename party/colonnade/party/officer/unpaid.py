"""How many jobs a party notes in a day that are then asked nothing.

A job that is proposed is a few entries of the ledger, whether it is accepted or not (its
specification, its budget set aside and freed), and costs whoever proposed it nothing. Entries are
kept for good and read at every start, so that a coordinator which proposes without end would fill
the disk. What is answered is paid for and does not count.
"""

import datetime as dt
from collections.abc import Callable

from colonnade.core.errors import PolicyRefused

MAX_UNPAID = 200
"""Such jobs of a table with one account; an entry lists all accounts, so of many clients fewer."""

_LEAST = 10
_ACCOUNTS = 20_000


class UnpaidJobs:
    """The jobs noted today that cost nothing yet."""

    def __init__(self, today: Callable[[], dt.date], *, accounts: int) -> None:
        self._today, self._day = today, today()
        self.most = min(MAX_UNPAID, max(_LEAST, _ACCOUNTS // max(accounts, 1)))
        self._jobs: set[str] = set()

    def check(self) -> None:
        """Refuse another job if as many as a day may have were asked nothing."""
        if (today := self._today()) != self._day:
            self._day = today
            self._jobs.clear()
        if self.full:
            raise PolicyRefused(
                f"{self.most} jobs were proposed today and then asked nothing; propose fewer, or "
                "again tomorrow"
            )

    @property
    def full(self) -> bool:
        """Whether no more are noted today."""
        return len(self._jobs) >= self.most

    def count(self, job: str) -> None:
        """Count a job that was noted."""
        self._jobs.add(job)

    def paid(self, job: str) -> None:
        """Count a job no longer: its answers are charged."""
        self._jobs.discard(job)
