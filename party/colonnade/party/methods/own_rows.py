"""A party's columns as jobs over moments see them: means, and rows projected into a ball.

Privacy: what a job counts on and the table lacks is refused before anything is charged
(`OwnRows.check`). Rows of people whom the party does not have are 0 throughout.
"""

from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import GRID
from colonnade.linear.ball import Projection, project
from colonnade.linear.sums import sums
from colonnade.party.data.columns import Columns


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The columns of one party in one job."""

    columns: Columns
    holds_label: bool
    uses_presence: bool

    def check(self) -> None:
        """Refuse a job that counts on what the table does not have."""
        self.label()
        self.presence()

    def label(self) -> Int16Array | None:
        """Return the label, where the party holds it."""
        if not self.holds_label:
            return None
        if self.columns.label is None:
            raise BadMessage("the job counts on this party's label but its table has none")
        return self.columns.label

    def presence(self) -> Int16Array | None:
        """Return whom the party has, where the job counts on it."""
        if not self.uses_presence:
            return None
        if self.columns.presence is None:
            raise BadMessage("the job asks whom this party has, but its table does not tell")
        return self.columns.presence

    def present(self) -> Int16Array | None:
        """Return 1 for people whom the party has and 0 for others; None if all rows count."""
        presence = self.presence()
        return None if presence is None else (presence > 0).astype(np.int16)

    def sums(self, *, label: bool) -> IntArray:
        """Return sums of columns, with the label last if asked and then presence, then of squares.

        Columns are in the order of the job.
        """
        columns, own = list(self.columns.features), self.label()
        if own is not None and label:
            columns.append(own)
        if (present := self.present()) is not None:
            columns = [column * present for column in columns]
            columns.append(present * np.int16(GRID))
        pairs = [sums(column) for column in columns]
        return np.array([part for half in zip(*pairs, strict=True) for part in half], np.int64)

    def project(self, projection: Projection | None) -> Int16Array:
        """Return every row's image in the ball."""
        if projection is None:
            raise BadMessage("a task has no projection")
        features, label = self.columns.features, self.label()
        return project(features, label, projection, presence=self.presence())
