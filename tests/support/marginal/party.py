"""A party's side of marginal regression: two releases, both through the gate."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.core.arrays import Int16Array, IntArray
from colonnade.core.errors import BadMessage
from colonnade.core.fixedpoint import GRID
from colonnade.ledger.entries import ReleaseKey
from colonnade.linear.sums import sums
from colonnade.party.methods.base import JobContext
from colonnade.wire.codec import Releases
from support.marginal.method import MEANS, PRODUCTS, MarginalSpec
from support.marginal.tasks import task_from_bytes

_SHIFT = GRID.bit_length() - 1


@dataclass(frozen=True, slots=True)
class MarginalAnswers:
    """Answers the tasks of one job."""

    spec: MarginalSpec
    context: JobContext

    def answer(self, round_: int, body: bytes) -> Releases:
        """Release what a task asks for."""
        centre = task_from_bytes(body)
        if round_ not in (0, 1):
            raise BadMessage(f"the job has no round {round_}")
        kind = (MEANS, PRODUCTS)[round_]
        mechanism, code = self.spec.made(self.context.party, kind)
        compute: Callable[[], IntArray] = (self._sums, lambda: self._products(centre))[round_]
        released = self.context.gate.release(
            ReleaseKey(self.context.job_id, round_, kind),
            self.context.request(body),
            mechanism,
            compute,
            encode=code.encode,
        )
        return Releases([released])

    def _sums(self) -> IntArray:
        pairs = [sums(column) for column in (*self.context.columns.features, self._label())]
        return np.array([part for half in zip(*pairs, strict=True) for part in half], np.int64)

    def _products(self, centre: int) -> IntArray:
        label = np.clip(self._label().astype(np.int64) - centre, -GRID, GRID)
        features = self.context.columns.features.astype(np.int64)
        found: IntArray = (features * label >> _SHIFT).sum(axis=1)
        return found

    def _label(self) -> Int16Array:
        if self.context.columns.label is None:
            raise TypeError("every member of such a job holds the label")
        return self.context.columns.label
