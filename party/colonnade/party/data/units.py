"""The unit of privacy of a party's table: whose accounts pay for what is released about it.

A whole table has one account, which protects every record alike. A table that is divided among
clients has an account for each, which protects all rows of that client.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from colonnade.core.errors import BadMessage
from colonnade.ledger.ledger import Ledger
from colonnade.methods.base import Unit
from colonnade.methods.holdout import rows_fitted
from colonnade.methods.job import Job
from colonnade.party.data.clients import TableClients, check_clients
from colonnade.privacy.accounting import Budget


class Units(Protocol):
    """Whose rows a table holds, and the accounts that pay for them."""

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""

    @property
    def population(self) -> int:
        """How many units of privacy the table holds. Public."""

    def rows(self) -> Sequence[slice]:
        """Return where the rows of each account are."""

    def accounts(self, ledger: Ledger) -> Sequence[str]:
        """Return the names of the ledger accounts."""

    def check(self, job: Job, party: str) -> None:
        """Refuse a job that is about other units than these."""

    def set_aside(self, ledger: Ledger, job: str, *, units: int, after: str = "") -> None:
        """Set a job's greatest price aside, of each account, or of what ``after`` kept for it."""


@dataclass(frozen=True, slots=True)
class WholeTable:
    """A table whose records are protected one by one; to a job over clients it is one client."""

    population: int = 0

    @property
    def unit(self) -> Unit:
        """Records."""
        return Unit.RECORD

    def rows(self) -> Sequence[slice]:
        """Return all rows."""
        return [slice(None)]

    def accounts(self, ledger: Ledger) -> Sequence[str]:  # noqa: ARG002
        """Return the default account."""
        return [""]

    def check(self, job: Job, party: str) -> None:
        """Refuse a job with another number of rows, or with several clients here."""
        if job.unit is Unit.CLIENT:
            check_clients(job, party, 1)
        elif job.population != (count := rows_fitted(self.population, job.holdout)):
            out = f" and keeps {self.population - count} out" if job.holdout else ""
            raise BadMessage(f"the job has {job.population} rows{out}, the table {self.population}")

    def set_aside(self, ledger: Ledger, job: str, *, units: int, after: str = "") -> None:
        """Set a job's greatest price aside."""
        ledger.admit(job, units=units, after=after)


def units_of(n_rows: int, clients: TableClients | None) -> Units:
    """Return the unit of privacy of a table."""
    return WholeTable(n_rows) if clients is None else clients


def fullest(units: Units, ledger: Ledger) -> tuple[Budget, int]:
    """Return the budget of the account that has most left, and what open jobs set aside of it."""
    state = ledger.state
    found = ((state.budget(name), state.reserved.get(name, 0)) for name in units.accounts(ledger))
    return max(found, key=lambda each: each[0].remaining - each[1])
